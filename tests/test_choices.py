"""What follows from log-rates of entries: probabilities, effects, elasticities, willingness to pay, diversion.

Of one component and one set of weights everything is known: that is conditional logit.
"""

from types import SimpleNamespace

import numpy as np
import pytest

from plackett.chooser import PlackettLuceChooser
from plackett.data.columns import Number
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.model.mixture import Entries, log_rates
from plackett.output.choice_effects import Survey, diversion, effects, elasticities, willingness_to_pay
from plackett.posterior.choice_reasons import explain_choice
from plackett.posterior.choosers import LearnedChoices
from plackett.posterior.directions import DirectionDraws, DirectionPoint
from plackett.posterior.pool import Pool
from plackett.posterior.weights import WeightMembers

A, T = 4, 60
TIGHT = {"rtol": 2e-3, "atol": 1e-9}  # of numbers that were rounded to four digits


def choice_sets(seed=0, full=False):
    """Situations of 2 to 4 alternatives, two attributes and one column of the person."""
    rng = np.random.default_rng(seed)
    size = np.full(T, A) if full else rng.integers(2, A + 1, T)
    alternative = np.concatenate([np.sort(rng.choice(A, n, replace=False)) for n in size])
    start = np.append(0, np.cumsum(size))
    values = np.column_stack([rng.gamma(3, 2, start[-1]), rng.normal(10, 4, start[-1])])
    return FakeSets(
        start=start,
        alternative=alternative,
        values=values,
        context=rng.normal(40, 10, (T, 1)),
        alternatives=np.array(["air", "bus", "car", "train"]),
        attributes=["cost", "time"],
        person=["income"],
        attribute_columns=(Number("cost", 5.0, False), Number("time", 10.0, False)),
        person_columns=(Number("income", 40.0, False),),
    )


class FakeSets(SimpleNamespace):
    def __len__(self):
        return len(self.start) - 1


def logit_model(X, seed=1, draws=1, components=1, **design):
    """A chooser with directions as drawn, and the coefficients of its columns in their own units."""
    rng = np.random.default_rng(seed)
    model = PlackettLuceChooser()
    model.design_ = ChoiceDesign(**design).fit(X)
    d = len(model.design_.names_)
    model.alternatives_, model.attributes_, model.person_ = X.alternatives, X.attributes, X.person
    model.schema_, model.group_labels_ = X, np.array(["all"])
    kind = DirectionPoint if draws == 1 else DirectionDraws
    beta = rng.normal(0, 0.7, (1, draws, components, d))
    model.posterior_ = LearnedChoices(
        kind(beta, np.log(np.full((1, draws, 1, components), 1 / components)), np.ones((1, draws, d)))
    )
    return model, beta[0, :, 0] / model.design_.scale_


def logit(X, table, model, coefficient):
    """Conditional logit by hand, (T, A)."""
    utility = model.design_.columns(table) @ coefficient
    wide = np.full((T, A), -np.inf)
    wide[table.situation, table.alternative] = utility
    p = np.exp(wide - wide.max(axis=1, keepdims=True))
    return p / p.sum(axis=1, keepdims=True)


def explained(model, row):
    entries = model._entries(row, np.array([-1]))
    return explain_choice(model, model.posterior_.members(), row, entries, 0.9)


def predicted(model, table):
    return model.posterior_.predict(model._entries(table, np.full(len(table.context), -1)))


def test_one_component_is_conditional_logit_with_constants_and_interactions():
    X = choice_sets()
    model, coefficient = logit_model(X)
    table = EntryTable.of(X)
    p = predicted(model, table)
    np.testing.assert_allclose(p, logit(X, table, model, coefficient[0]), atol=1e-12)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    available = np.zeros((T, A), dtype=bool)
    available[table.situation, X.alternative] = True
    assert (p[~available] == 0).all() and (p[available] > 0).all()
    constants, d = [str(name) for name in model.design_.names_], len(model.design_.names_)
    assert sum(name.startswith("constant: ") for name in constants) == A - 1
    assert d == (A - 1) + 2 + 1 + (A - 1)
    flat = model.design_.columns(table)[:, constants.index("income")]
    moved = table.with_person(0, np.zeros(T))  # what is the same for all entries cancels, interactions do not
    assert not np.allclose(predicted(model, moved), p)
    assert len(np.unique(flat)) == T


def test_the_coefficients_of_one_component_are_its_own():
    X = choice_sets()
    model, coefficient = logit_model(X)
    unit = model.design_.unit_ / model.design_.scale_
    table = model.posterior_.table(model, 0.9)
    np.testing.assert_allclose(table["coefficient"], coefficient[0] / unit, **TIGHT)


@pytest.mark.parametrize("bend", ["none", "hinges", "scores"])
def test_columns_bend_where_they_are_asked_to(bend):
    X = choice_sets()
    design = ChoiceDesign(bend=bend).fit(X)
    Z = design.transform(EntryTable.of(X))
    assert Z.shape[1] == len(design.names_) == len(design.source_)
    np.testing.assert_allclose(Z.mean(axis=0), 0, atol=1e-12)
    np.testing.assert_allclose(Z.std(axis=0), 1)
    cost = design.columns(EntryTable.of(X))[:, design.source_ == "cost"]
    order = np.argsort(X.values[:, 0])
    assert (np.diff(cost[order], axis=0) >= 0).all()
    assert cost.shape[1] == (4 if bend == "hinges" else 1)


def test_alternatives_that_never_come_back_have_no_constants():
    X = choice_sets()
    X.alternatives = np.arange(X.start[-1])
    X.alternative = np.arange(X.start[-1])
    assert ChoiceDesign().fit(X).names_.tolist() == ["cost", "time", "income"]


def test_effects_of_logit_are_known():
    X = choice_sets()
    model, coefficient = logit_model(X)
    table = EntryTable.of(X)
    p = logit(X, table, model, coefficient[0])
    found = effects(Survey(model, table, np.full(T, -1)), 0.9)
    by_name = dict(zip(model.design_.names_, coefficient[0], strict=True))
    seen = 0
    for attribute, of, b, effect in zip(
        *(found[name] for name in ("attribute", "of", "alternative", "effect")), strict=True
    ):
        if of == "person":
            continue
        a, k = X.alternatives.tolist().index(of), X.alternatives.tolist().index(b)
        there = p[:, a] > 0
        expected = (by_name[attribute] * p[:, a] * ((a == k) - p[:, k]))[there].mean()
        np.testing.assert_allclose(effect, expected, rtol=3e-3, atol=1e-6)
        seen += 1
    assert seen == 2 * A * A
    person = found["effect"][found["of"] == "person"]
    np.testing.assert_allclose(person.sum(), 0, atol=1e-4)
    h = 1e-4
    up, down = (logit(X, table.with_person(0, table.context[:, 0] + s * h), model, coefficient[0]) for s in (1, -1))
    np.testing.assert_allclose(person, (up - down).mean(axis=0) / (2 * h), rtol=3e-3)


def test_elasticities_of_logit_are_known():
    X = choice_sets()
    model, coefficient = logit_model(X)
    table = EntryTable.of(X)
    p = logit(X, table, model, coefficient[0])
    beta = coefficient[0][model.design_.names_.tolist().index("cost")]
    cost = np.zeros((T, A))
    cost[table.situation, table.alternative] = X.values[:, 0]
    found = elasticities(Survey(model, table, np.full(T, -1)), 0, 0.9)
    for of, b, elasticity in zip(found["of"], found["alternative"], found["elasticity"], strict=True):
        a, k = X.alternatives.tolist().index(of), X.alternatives.tolist().index(b)
        both = (p[:, a] > 0) & (p[:, k] > 0)
        each = beta * cost[:, a] * ((a == k) - p[:, a])
        np.testing.assert_allclose(elasticity, np.average(each[both], weights=p[both, k]), rtol=3e-3)


def test_diversion_of_logit_is_in_proportion_and_adds_up():
    X = choice_sets()
    model, coefficient = logit_model(X)
    table = EntryTable.of(X)
    p = logit(X, table, model, coefficient[0])
    found = diversion(Survey(model, table, np.full(T, -1)), 2, 0.9)
    there = p[:, 2] > 0
    gained = (p * (p[:, [2]] / (1 - p[:, [2]])))[there].sum(axis=0)
    np.testing.assert_allclose(found["share"], np.delete(gained, 2) / p[there, 2].sum(), **TIGHT)
    np.testing.assert_allclose(found["share"].sum(), 1, atol=1e-3)
    assert found["alternative"].tolist() == ["air", "bus", "train"]


def test_willingness_to_pay_of_logit_is_the_ratio_of_coefficients():
    X = choice_sets()
    model, coefficient = logit_model(X, draws=300, seed=3)
    model.posterior_ = LearnedChoices(
        DirectionDraws(
            np.abs(model.posterior_.of_directions.directions) + 0.5,  # a cost that is never 0
            model.posterior_.of_directions.log_weights,
            model.posterior_.of_directions.scales,
        )
    )
    names = model.design_.names_.tolist()
    beta = model.posterior_.of_directions.directions[0, :, 0] / model.design_.scale_
    ratio = beta[:, names.index("time")] / beta[:, names.index("cost")]
    lower, median, upper = np.quantile(ratio, [0.05, 0.5, 0.95])
    for survey, weight in (
        (Survey(model, EntryTable.of(X), np.full(T, -1)), None),
        (Survey(model, model.design_.average(), np.array([-1])), model.design_.shares_[None]),
    ):
        found = willingness_to_pay(survey, 1, 0, weight, 0.9)
        assert found["alternative"].tolist() == ["all", "air", "bus", "car", "train"]
        np.testing.assert_allclose(found["value"], median, **TIGHT)
        np.testing.assert_allclose(found["lower"], lower, **TIGHT)
        np.testing.assert_allclose(found["upper"], upper, **TIGHT)


def test_a_cost_of_either_sign_is_warned_of():
    X = choice_sets()
    model, _ = logit_model(X, draws=300)
    survey = Survey(model, EntryTable.of(X), np.full(T, -1))
    with pytest.warns(UserWarning, match=r"% of the draws 'cost' has the opposite effect"):
        willingness_to_pay(survey, 1, 0, None, 0.9)


def test_a_mode_beside_the_draws_and_a_power_are_in_the_prediction():
    rng = np.random.default_rng(0)
    log_rates, available = rng.normal(size=(4, 3, A)), np.array([[True] * A, [True, True, False, False], [True] * A])
    share = np.array([0.2, 0.2, 0.2, 0.4])
    pool = Pool(log_rates, available, share, modes=1, power=1.5)
    p = np.exp(np.where(available, log_rates, -np.inf))
    p /= p.sum(axis=2, keepdims=True)
    mixed = np.tensordot(share, p, 1) ** 1.5
    centre, draws = pool.both()
    np.testing.assert_allclose(centre, mixed / mixed.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(centre, pool.prediction())
    assert draws.shape == (3, 3, A)
    np.testing.assert_allclose(draws, p[:3] ** 1.5 / (p[:3] ** 1.5).sum(axis=2, keepdims=True))


def test_where_nothing_has_a_rate_all_are_equal():
    pool = Pool(np.full((1, 1, A), -np.inf), np.array([[True, True, False, True]]), np.ones(1))
    np.testing.assert_allclose(pool.prediction(), [[1 / 3, 1 / 3, 0, 1 / 3]])


def test_log_rates_are_sums_over_components():
    rng = np.random.default_rng(0)
    Z, beta, log_weights = rng.normal(size=(7, 3)), rng.normal(size=(5, 2, 3)), rng.normal(size=(5, 4, 2))
    group = rng.integers(4, size=7)
    expected = np.log((np.exp(np.einsum("ef,smf->sem", Z, beta)) * np.exp(log_weights)[:, group]).sum(axis=2))
    np.testing.assert_allclose(log_rates(beta, log_weights, Z, group), expected)
    groups = np.tile(group, (5, 1))
    np.testing.assert_allclose(log_rates(beta, log_weights, Z, groups), expected)
    weights = np.exp(rng.normal(size=(5, 4, 3)))
    expected = np.log(np.einsum("ef,sef->se", np.exp(Z), weights[:, group]))
    entries = Entries(Z, group, np.arange(7), np.array([0, 3, 7]), logs=True)
    members = WeightMembers(np.full(5, 0.2), weights)
    np.testing.assert_allclose(members.log_rates(entries), expected)
    np.testing.assert_allclose(members.log_rates(entries._replace(Z=np.exp(Z), logs=False)), expected)
    twice = entries._replace(group=np.tile(group, 2), row=np.tile(np.arange(7), 2), start=np.array([0, 7, 14]))
    np.testing.assert_allclose(members.log_rates(twice), np.tile(expected, 2))  # entries that share rows
    far = members.log_rates(entries._replace(Z=Z - 1e4))  # rates that underflow keep their ratios
    np.testing.assert_allclose(far, expected - 1e4)


@pytest.mark.parametrize("components", [1, 3])
@pytest.mark.parametrize("bend", ["none", "hinges"])
def test_contributions_add_up_to_the_log_odds_of_the_prediction(components, bend):
    X = choice_sets()
    model, _ = logit_model(X, draws=50, components=components, bend=bend)
    for t in (0, 7, 20):
        row = EntryTable.of(X).take(np.array([t]))
        columns, attributes = explained(model, row)
        p = predicted(model, row)[0]
        k = X.alternatives.tolist().index(attributes["class"])
        assert k == np.argmax(p)
        total = attributes["reference"] + columns["contribution"].sum()
        np.testing.assert_allclose(total, attributes["prediction"])
        np.testing.assert_allclose(total, np.log(p[k]) - np.log1p(-p[k]), rtol=1e-6)
        assert len(columns["feature"]) == 2 * len(row.alternative) + 1
        assert (columns["lower"] <= columns["contribution"]).all() and (
            columns["contribution"] <= columns["upper"]
        ).all()
        rest = row._replace(values=model.design_.typical_[row.alternative], context=model.design_.centre_[None])
        q = predicted(model, rest)[0, k]
        np.testing.assert_allclose(attributes["reference"], np.log(q) - np.log1p(-q), rtol=1e-6)


def test_what_an_explanation_leaves_to_share_out_is_little():
    X = choice_sets()
    model, _ = logit_model(X, draws=50, components=3)
    row = EntryTable.of(X).take(np.array([3]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("plackett.posterior.contributions.exact", lambda parts, total: parts)
        columns, attributes = explained(model, row)
    left = attributes["prediction"] - attributes["reference"] - columns["contribution"].sum()
    assert abs(left) < 1e-6


def test_a_contribution_of_two_alternatives_under_logit_is_the_difference_of_utilities():
    X = choice_sets()
    model, coefficient = logit_model(X)
    t = int(np.flatnonzero(np.diff(X.start) == 2)[0])
    row = EntryTable.of(X).take(np.array([t]))
    columns, attributes = explained(model, row)
    by_name = dict(zip(model.design_.names_, coefficient[0], strict=True))
    for name, of, value, part in zip(*(columns[c] for c in ("feature", "of", "value", "contribution")), strict=True):
        if of != "person":
            a = X.alternatives.tolist().index(of)
            typical = model.design_.typical_[a, X.attributes.index(name)]
            sign = 1 if of == attributes["class"] else -1
            np.testing.assert_allclose(part, sign * by_name[name] * (value - typical), atol=1e-9)
    assert np.isnan(columns["lower"]).all()
