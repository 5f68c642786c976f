"""Segments of persons, for linear choices and for rankings: EM, draws, their number, predictions, refusals, files."""

import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import approx_fprime, minimize
from scipy.special import logsumexp, softmax
from sklearn.base import clone

from plackett import (
    EM,
    Bootstrap,
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceRanker,
    Rankings,
    Segments,
    Tastes,
    load,
    plots,
)
from plackett.data.choice_outcomes import chosen
from plackett.data.observations import Observations
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.linear import LinearUtility
from plackett.output.summary import as_html
from plackett.priors import GIG
from plackett.report import write_report
from plackett.responses import Outcomes, make_response
from plackett.segments.choices import ChoicesOfPersons
from plackett.segments.em import Place, climb, maximum, memberships
from plackett.segments.rankings import rankings_of_persons
from plackett.tastes.panel import make_panel
from test_report_situations import Tables

BETA = np.array([[-1.5, -0.2], [0.3, -1.2]])  # of price and time, by segment
SHARES = np.array([0.65, 0.35])
ITEMS = list("abcd")
LOG_WORTHS = np.array([[1.5, 0.5, -0.5, -1.5], [-1.2, -0.8, 0.8, 1.2]])


def travellers(n_persons=60, each=6, seed=0, beta=BETA, shares=SHARES):
    """Choices among three modes by price and time, who made them, and the segment of each person."""
    rng = np.random.default_rng(seed)
    n = n_persons * each
    wide = pd.DataFrame({f"{x}_{a}": rng.normal(size=n) for a in ("bus", "car", "walk") for x in ("price", "time")})
    X = ChoiceSets.from_wide(wide, alternatives=["bus", "car", "walk"], attributes=["price", "time"])
    segment = (rng.random(n_persons) < shares[1]).astype(int)
    utility = (X.values * beta[np.repeat(segment, 3 * each)]).sum(axis=1) + rng.gumbel(size=3 * n)
    who = np.repeat([f"p{i:03}" for i in range(n_persons)], each)
    return X, X.alternatives[np.argmax(utility.reshape(n, 3), axis=1)], who, segment


def rankers(n_persons=60, each=3, seed=0, log_worths=LOG_WORTHS, shares=SHARES):
    """Rankings of the three best of four items, who gave them, and the segment of each person."""
    rng = np.random.default_rng(seed)
    segment = np.repeat((rng.random(n_persons) < shares[1]).astype(int), each)
    order = np.argsort(-(log_worths[segment] + rng.gumbel(size=(len(segment), 4))), axis=1)[:, :3]
    R = Rankings.from_orders([[ITEMS[k] for k in row] for row in order], unranked="last")
    return R, np.repeat([f"p{i:03}" for i in range(n_persons)], each), segment[::each]


def chooser(inference="em", segments=2, **settings):
    features = settings.pop("features", LinearUtility(constants=False))
    return PlackettLuceChooser(inference, features=features, segments=segments, random_state=0, **settings)


def choices_of_persons(own=(True, True), ignored=(False, False), precision=0.0, **settings):
    X, y, who, _ = travellers(**settings)
    design = ChoiceDesign(constants=False, person=False).fit(X)
    Z = design.transform(EntryTable.of(X))
    entry = chosen(X, y).entry
    person = np.unique(who, return_inverse=True)[1]
    panel = make_panel(Z, Outcomes.choices(np.diff(X.start)), entry, person, np.ones(2))
    return ChoicesOfPersons(panel.packed, panel.owned, np.array(own), np.array(ignored), precision)


def persons_with_rankings(shape=1.2, **settings):
    R, who, _ = rankers(**settings)
    seen = Observations.of_rankings(R.outcomes, R.item, make_response("ranking"), 4)
    return rankings_of_persons(seen, np.unique(who, return_inverse=True)[1], shape)


PERSONS = {
    "choices": choices_of_persons,
    "some shared": lambda: choices_of_persons(own=(True, False), precision=0.1),
    "some ignored": lambda: choices_of_persons(ignored=(True, False)),
    "rankings": persons_with_rankings,
    "likelihood of rankings": lambda: persons_with_rankings(shape=1.0),
}


@pytest.mark.brief("some ignored", "rankings")
@pytest.mark.parametrize("name", PERSONS)
def test_em_never_falls_and_ends_where_a_step_moves_nothing(name):
    persons, rng = PERSONS[name](), np.random.default_rng(1)
    for segments in (1, 2, 3):
        base, equal = persons.base(), np.full(segments, -np.log(segments))
        found = climb(persons, Place(persons.normalised(persons.disturbed(base, segments, rng)), equal), 1e-8, 500)
        gains = np.diff(found.trace)
        assert len(gains) > 2 or segments == 1
        assert (gains >= -1e-11 * np.abs(found.trace[0])).all(), gains.min()
        assert np.allclose(found.member.sum(axis=1), 1)
        best = maximum(persons, segments, 4, rng, 1e-8, 500)
        assert best.converged and best.value >= found.value - 1e-6


def mixture_of_choices(free, X, start, person, segments=2):
    """The log-likelihood of segments from its definition; the chosen entry of each situation is the first."""
    beta, logits = free[: 2 * segments].reshape(segments, 2), np.append(0.0, free[2 * segments :])
    utility = (X @ beta.T).reshape(-1, 3, segments)
    values = utility[:, 0] - logsumexp(utility, axis=1)
    by_person = np.zeros((person.max() + 1, segments))
    np.add.at(by_person, person, values)
    return logsumexp(by_person + logits - logsumexp(logits), axis=1).sum()


def test_the_maximum_and_its_errors_are_those_of_scipy():
    X, y, who, _ = travellers()
    model = chooser().fit(X, y, groups=who)
    table = model.coefficients()
    found = table["coefficient"].to_numpy()
    shares = model.segments_["share"].to_numpy()
    place = np.append(found, np.log(shares[1:] / shares[0]))
    person = np.unique(who, return_inverse=True)[1]
    rows = X.values[chosen(X, y).entry]

    def lost(free):
        return -mixture_of_choices(free, rows, None, person)

    other = minimize(lost, place + 0.1, method="BFGS", options={"gtol": 1e-6})
    np.testing.assert_allclose(place, other.x, atol=2e-5)
    statistics = model.fit_statistics(X, y, groups=who)
    np.testing.assert_allclose(statistics.log_likelihood, -other.fun, atol=1e-7)
    assert statistics.parameters == 5 and statistics.n == len(X)
    np.testing.assert_allclose(statistics.aic, 2 * 5 + 2 * other.fun, atol=1e-6)

    def gradient(free):
        return np.array([(lost(free + h) - lost(free - h)) / 2e-4 for h in 1e-4 * np.eye(5)])

    curvature = np.stack([(gradient(place + h) - gradient(place - h)) / 2e-3 for h in 1e-3 * np.eye(5)])
    inverse = np.linalg.inv(curvature)
    np.testing.assert_allclose(table["std_error"], np.sqrt(np.diag(inverse))[:4], rtol=1e-3)
    scores = np.stack(  # of each person, for the sandwich
        [
            approx_fprime(place, lambda free, p=p: mixture_of_choices(
                free, rows.reshape(-1, 3, 2)[person == p].reshape(-1, 2), None, np.zeros((person == p).sum(), dtype=int)
            ), 1e-6)
            for p in range(person.max() + 1)
        ]
    )  # fmt: skip
    robust = np.sqrt(np.diag(inverse @ scores.T @ scores @ inverse))[:4]
    np.testing.assert_allclose(model.coefficients(errors="robust")["std_error"], robust, rtol=2e-3)
    with pytest.raises(ValueError, match="one of \\['classical', 'robust'\\] with segments"):
        model.coefficients(errors="person")


def test_the_mode_of_rankings_is_that_of_scipy():
    R, who, _ = rankers()
    model = PlackettLuceRanker(EM(), shape=1.5, segments=2, random_state=0).fit(None, R, groups=who)
    person = np.unique(who, return_inverse=True)[1]
    items = R.item.reshape(-1, 4)

    def lost(free):
        x = free[:8].reshape(2, 4)
        x = x - logsumexp(x, axis=1, keepdims=True)
        logits = np.append(0.0, free[8:])
        u = x[:, items]  # (segment, ranking, place)
        values = sum(u[:, :, s] - logsumexp(u[:, :, s:], axis=2) for s in range(3))
        by_person = np.zeros((person.max() + 1, 2))
        np.add.at(by_person, person, values.T)
        prior = 0.5 * x.sum()
        return -logsumexp(by_person + logits - logsumexp(logits), axis=1).sum() - prior

    x = model.posterior_.of_segments.parameters[0, 0]
    shares = model.segments_["share"].to_numpy()
    place = np.append(x, np.log(shares[1] / shares[0]))
    other = minimize(lost, place + 0.05 * np.random.default_rng(0).normal(size=9), method="BFGS")
    np.testing.assert_allclose(lost(place), other.fun, atol=1e-6)
    np.testing.assert_allclose(-model.trace_[-1], other.fun, atol=1e-6)


def same_segments(found, truth):
    """Estimates (C, …) and the truth in the order that fits best."""
    return found if np.abs(found - truth).sum() <= np.abs(found[::-1] - truth).sum() else found[::-1]


def test_simulated_segments_are_recovered():
    """Within four standard errors, or deviations of the posterior."""
    X, y, who, segment = travellers(n_persons=250)
    for inference in ("em", Gibbs(draws=300, tune=150, chains=2)):
        model = chooser(inference, features=LinearUtility(constants=False)).fit(X, y, groups=who)
        table = model.coefficients()
        centre = table["coefficient" if inference == "em" else "mean"].to_numpy().reshape(2, 2)
        error = table["std_error" if inference == "em" else "sd"].to_numpy().reshape(2, 2)
        assert (np.abs(centre - BETA) < 4 * error).all() and (error < 0.25).all()
        shares = model.segments_
        np.testing.assert_allclose(shares["share"], SHARES, atol=4 * 0.035)
        assert (shares["lower"] < shares["share"]).all() and (shares["share"] < shares["upper"]).all()
        found = model.segment_proba(X, y, groups=who)
        assert found.index.tolist() == sorted(set(who)) and found.columns.tolist() == [1, 2]
        true = Place(BETA, np.log(SHARES))
        utility = (X.values @ BETA.T).reshape(len(X), 3, 2)
        values = np.take_along_axis(utility, X.chosen(y)[:, None, None] % 3, axis=1)[:, 0] - logsumexp(utility, axis=1)
        best = memberships(values.reshape(250, 6, 2).sum(axis=1), true.log_shares)[0]
        agrees = found[2].gt(0.5).to_numpy() == (best[:, 1] > 0.5)
        assert agrees.mean() > 0.93 and (found[2].gt(0.5).to_numpy() == segment).mean() > 0.8
        assert "2 segments with shares" in repr(model)


def test_simulated_rankers_are_recovered():
    R, who, segment = rankers(n_persons=250)
    model = PlackettLuceRanker(Gibbs(draws=300, tune=150, chains=2), segments=2, random_state=0).fit(
        None, R, groups=who
    )
    table = model.worth(prob=0.95)
    assert table.index.names == ["segment", "item"] and len(table) == 8
    deviation = (table["upper"] - table["lower"]) / 3.92
    found = table["log_worth"].unstack()[ITEMS].to_numpy()
    assert (np.abs(found - LOG_WORTHS) < 4 * deviation.unstack()[ITEMS].to_numpy()).all()
    member = model.segment_proba(None, R, groups=who)
    assert (member[2].gt(0.5).to_numpy() == segment).mean() > 0.9
    mixed = SHARES @ softmax(LOG_WORTHS, axis=1)
    np.testing.assert_allclose(model.predict_proba(), mixed, atol=0.08)
    lower, upper = model.predict_interval()
    assert (
        (lower < model.predict_proba()).all() and (model.predict_proba() < upper).all() and (upper - lower).max() < 0.2
    )
    assert model.summary()["segment"].tolist() == [1] * 4 + [2] * 4


def test_one_segment_is_the_plain_model():
    X, y, who, _ = travellers(beta=BETA[[0, 0]], n_persons=30)
    model = chooser(segments=Segments("auto", most=2, folds=3, starts=2)).fit(X, y, groups=who)
    losses = model.segment_log_loss_
    assert list(losses) == [1, 2] and min(losses, key=losses.get) == 1
    assert f"their number is chosen by the log-loss of a held-out person (1: {losses[1]:.4f}, 2:" in repr(model)
    plain = chooser(segments=1).fit(X, y)
    one, other = model.coefficients(), plain.coefficients()
    for name in ("coefficient", "std_error", "lower"):
        np.testing.assert_allclose(one[name], other[name], rtol=1e-6)
    statistics = model.fit_statistics(X, y, groups=who)
    np.testing.assert_allclose(statistics.log_likelihood, plain.fit_statistics(X, y).log_likelihood, rtol=1e-10)
    assert statistics.parameters == 2
    persons = persons_with_rankings(shape=1.3)
    R, who, _ = rankers()
    best = maximum(persons, 1, 1, np.random.default_rng(0), 1e-12, 500).place.parameters[0]
    plain = PlackettLuceRanker(EM(tol=1e-12), shape=1.3).fit(None, R)
    np.testing.assert_allclose(np.exp(best), plain.weights_[:, 0], atol=1e-9)


def test_the_number_is_found_by_held_out_persons():
    R, who, _ = rankers()
    model = PlackettLuceRanker("em", shape=1.2, segments="auto", random_state=0).fit(None, R, groups=who)
    losses = model.segment_log_loss_
    assert list(losses) == [1, 2, 3, 4] and len(model.segments_) == min(losses, key=losses.get) == 2
    assert "tries more" not in repr(model)
    most = PlackettLuceRanker("em", shape=1.2, segments=Segments("auto", most=2, folds=2), random_state=0)
    assert "it is the largest that was tried: Segments('auto', most=...) tries more" in repr(
        most.fit(None, R, groups=who)
    )
    learned = PlackettLuceRanker(EM(shapes=(2.0, 1.2), cv=2), segments=2, random_state=0).fit(None, R, groups=who)
    assert set(learned.cv_log_loss_) == {2.0, 1.2} and learned.shape_ in (2.0, 1.2)


def test_known_persons_are_predicted_by_their_memberships():
    X, y, who, _ = travellers(n_persons=20)
    some = X[:12]
    for inference in ("em", Gibbs(draws=40, tune=60, chains=2)):
        model = fitted_quietly(chooser(inference), X, y, who)
        posterior = model.posterior_.of_segments
        C, d = posterior.segments, 2
        beta, shares = posterior.parameters.reshape(-1, C, d), posterior.shares.reshape(-1, C)
        p = softmax((model._rows(some).Z @ beta.transpose(0, 2, 1)).reshape(len(beta), 12, 3, C), axis=2)
        np.testing.assert_allclose(
            model.predict_proba(some), np.einsum("sc,stac->ta", shares, p) / len(beta), atol=1e-10
        )
        member = posterior.membership.reshape(-1, 20, C)
        own = member[:, np.unique(who, return_inverse=True)[1][:12]]
        found = model.predict_proba(some, groups=who[:12])
        np.testing.assert_allclose(found, np.einsum("stc,stac->ta", own, p) / len(beta), atol=1e-6)
        strange = np.where(np.arange(12) % 2, who[:12], "nobody")
        both = model.predict_proba(some, groups=strange)
        np.testing.assert_allclose(both[1::2], found[1::2], atol=1e-12)
        np.testing.assert_allclose(both[::2], model.predict_proba(some)[::2], atol=1e-12)
        assert model.log_likelihood(X, y, who).sum() > model.log_likelihood(X, y).sum() + 5
        np.testing.assert_allclose(model.segment_proba(X, y, who).to_numpy(), member.mean(axis=0), atol=1e-5)
        lower, upper = model.predict_interval(some, groups=who[:12])
        assert (lower <= found + 1e-12).all() and (found <= upper + 1e-12).all()
        if inference != "em":
            values = model.posterior_.log_values(model._rows(some), chosen(some, y[:12]))
            expected = np.exp(model.log_likelihood(some, y[:12]))
            np.testing.assert_allclose(np.exp(values).mean(axis=0), expected, rtol=1e-8)
    alone = fitted_quietly(chooser(), X, y, None)
    with pytest.raises(ValueError, match="memberships are known of persons of the fit"):
        alone.predict_proba(some, groups=who[:12])


def fitted_quietly(model, X, y, who):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y, groups=who)


def test_known_rankers_are_predicted_by_their_memberships():
    R, who, _ = rankers(n_persons=20)
    model = PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0).fit(None, R, groups=who)
    found = model.predict_proba(groups=["p003", "p011"])
    member = model.segment_proba(None, R, groups=who).loc[["p003", "p011"]].to_numpy()
    worths = model.worth()["worth"].unstack()[ITEMS].to_numpy()
    np.testing.assert_allclose(found, member @ worths, atol=1e-6)
    with pytest.raises(ValueError, match="'nobody' is not among the 20 persons"):
        model.predict_proba(groups=["nobody"])
    persons = model.log_likelihood(None, R)
    mixed = logsumexp([np.log(share) + values for share, values in zip(
        model.segments_["share"], _values_by_segment(R, np.log(worths)), strict=True)], axis=0)  # fmt: skip
    np.testing.assert_allclose(persons, mixed, atol=1e-8)
    with pytest.raises(ValueError, match="a single segment; fit with"):
        PlackettLuceRanker("em", shape=1.2).fit(None, R).predict_proba(groups=who)
    elo = model.worth(scale="elo", anchor={"a": 1000})
    np.testing.assert_allclose(elo.xs("a", level="item")["elo"], 1000)
    ahead = model.prob_better(of="ranking").loc[ITEMS, ITEMS].to_numpy()
    odds = worths[:, :, None] / (worths[:, :, None] + worths[:, None, :])
    expected = np.tensordot(model.segments_["share"].to_numpy(), odds, 1)
    np.testing.assert_allclose(ahead[~np.eye(4, dtype=bool)], expected[~np.eye(4, dtype=bool)], atol=1e-8)
    places = 1 + (1 - expected - np.diag(1 - np.diag(expected))).sum(axis=1)
    assert model.predict().tolist() == [ITEMS[k] for k in np.argsort(places)]
    shown = model.rank_distribution(of="ranking")
    np.testing.assert_allclose(shown.loc[ITEMS, 1], model.predict_proba(), atol=5 * shown.attrs["error"])


def _values_by_segment(R, log_worths):
    x = log_worths[:, R.item.reshape(-1, 4)]
    return sum(x[:, :, s] - logsumexp(x[:, :, s:], axis=2) for s in range(3))


def test_counts_are_persons_and_the_order_of_rows_does_not_matter():
    R, who, _ = rankers(each=1)
    settings = {"shape": 1.2, "segments": 2, "random_state": 0}
    one = PlackettLuceRanker("em", **settings).fit(None, R, groups=np.arange(len(R)))
    orders = [tuple(order) for order in R.to_orders()]
    distinct = sorted(set(orders), key=str)
    counted = Rankings.from_orders(
        [order[:3] for order in map(list, distinct)],
        counts=[orders.count(order) for order in distinct],
        unranked="last",
    )
    other = PlackettLuceRanker("em", **settings).fit(None, counted)
    np.testing.assert_allclose(one.trace_[-1], other.trace_[-1], rtol=1e-10)
    shuffled = np.random.default_rng(0).permutation(len(R))
    gibbs = Gibbs(draws=20, tune=20, chains=1)
    for a, b in (((R, None), (R[shuffled], None)), ((R, who), (R[shuffled], who[shuffled]))):
        pair = [
            fitted_quietly(PlackettLuceRanker(gibbs, segments=2, random_state=0), None, rankings, groups)
            for rankings, groups in (a, b)
        ]
        np.testing.assert_array_equal(pair[0].trace_, pair[1].trace_)
    X, y, who, _ = travellers(n_persons=15)
    shuffled = np.random.default_rng(0).permutation(len(X))
    pair = [fitted_quietly(chooser(gibbs), X[s], y[s], who[s]) for s in (np.arange(len(X)), shuffled)]
    np.testing.assert_allclose(pair[0].trace_, pair[1].trace_, rtol=1e-9)


def test_columns_may_be_shared_or_ignored():
    X, y, who, _ = travellers()
    model = chooser(segments=Segments(2, by=["price"], ignored=["price"])).fit(X, y, groups=who)
    table = model.coefficients()
    assert table["segment"].tolist() == ["all", 1] or table["segment"].tolist() == ["all", 2]
    assert table["column"].tolist() == ["time", "price"]
    assert model.fit_statistics(X, y, groups=who).parameters == 3
    full = chooser().fit(X, y, groups=who)
    values = [each.fit_statistics(X, y, groups=who).log_likelihood for each in (model, full)]
    assert values[0] < values[1] - 1
    worth = full.willingness_to_pay("time", "price")
    wide = full.coefficients().pivot(index="segment", columns="column", values="coefficient")
    np.testing.assert_allclose(worth["value"], wide["time"] / wide["price"], rtol=1e-3)
    with pytest.raises(ValueError, match="X and groups would be ignored"):
        full.willingness_to_pay("time", "price", X)


def test_columns_must_be_identified_and_may_be_of_alternatives():
    X, y, who, _ = travellers(n_persons=20)
    twice = ChoiceSets(
        X.alternatives, X.situations, X.start, X.alternative, X.values[:, [0, 1, 0]], X.context,
        (*X.attribute_columns, replace(X.attribute_columns[0], name="again")), X.person_columns,
    )  # fmt: skip
    with pytest.raises(ValueError, match="'price', 'again' is constant within every situation. Leave columns out"):
        chooser().fit(twice, y, groups=who)
    model = fitted_quietly(chooser(features=LinearUtility(constants=False, spread=3.0)), twice, y, who)
    assert model.fit_statistics(twice, y, groups=who).parameters == 7  # six coefficients and a share
    own = chooser(segments=Segments(2, by=["time"]), weights="alternative")
    own = fitted_quietly(own, X, y, who)
    table = own.coefficients()
    assert (table["segment"] == "all").sum() == 3 and set(table["column"][table["segment"] == 1]) == {
        "time: bus", "time: car", "time: walk"
    }  # fmt: skip
    assert "<td>all</td>" in as_html(own) and "segments" in repr(own)
    with pytest.raises(ValueError, match="ratios differ by alternative"):
        own.willingness_to_pay("time", "price")


def test_rankings_of_alternatives_and_ties_of_unknown_order():
    X, y, who, _ = travellers(n_persons=30)
    others = {"bus": ["car", "walk"], "car": ["walk", "bus"], "walk": ["bus", "car"]}
    R = Rankings.from_orders([[first, *others[first]] for first in y])
    model = chooser().fit(X, R, groups=who)
    assert np.isfinite(model.log_likelihood(X, R, who)).all()
    tied = Rankings.from_orders([["a", {"b", "c"}, "d"], [{"c", "d"}, "a", "b"]] * 20, unranked="absent")
    m = PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0).fit(None, tied)
    assert (np.diff(m.trace_) >= -1e-9).all() and m.trace_[-1] > m.trace_[0] + 1
    drawn = fitted_quietly(
        PlackettLuceRanker(Gibbs(draws=20, tune=50, chains=1), segments=2, random_state=0), None, tied, None
    )
    np.testing.assert_allclose(drawn.segments_["share"], 0.5, atol=0.2)


PAIRS = Rankings.from_pairs(list("abab"), list("bcca"), first=list("abab"))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"features": "learned"}, "segments are of persons with linear utilities"),
        ({"features": Tastes(), "inference": "gibbs"}, "segments are of persons with linear utilities"),
        ({"nests": {"one": ["bus", "car"]}}, "segments have no nests"),
        ({"inference": "variational"}, "neither a variational approximation nor a bootstrap"),
        ({"engine": "numpy"}, "compiled for situations in memory"),
        ({"segments": 0}, "segments must be a whole number"),
        ({"segments": "many"}, "segments must be a whole number"),
        ({"segments": Segments(2, most=3)}, "would be ignored: it is for count='auto'"),
        ({"segments": Segments(2, by=["speed"])}, "names 'speed', and the columns are"),
        ({"segments": Segments(2, by=["time"], ignored=["price"])}, "the same in all segments"),
        ({"segments": Segments(2, by="time")}, "must be a list of names"),
        ({"segments": Segments(2, by=[])}, "leaves nothing that differs"),
        ({"segments": Segments(2, starts=0)}, "starts"),
        ({"segments": Segments(2, concentration=-1.0)}, "concentration"),
        ({"sample_weight": np.ones(360) * 2}, "sample_weight would be ambiguous with segments"),
        ({"weights": "person"}, "same coefficients for all persons"),
        ({"inference": EM(accelerate=False)}, "accelerate"),
        ({"inference": Gibbs(moves="exchange")}, "moves"),
    ],
)
def test_what_choosers_with_segments_refuse(settings, said):
    X, y, who, _ = travellers()
    weight = settings.pop("sample_weight", None)
    with pytest.raises(ValueError, match=said):
        chooser(**settings).fit(X, y, groups=who, sample_weight=weight)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"X": np.ones((4, 1)) * np.arange(4)[:, None]}, "segments are of rankers without covariates"),
        ({"ties": "race"}, "ties='race' needs more"),
        ({"ties": "davidson"}, "ties='davidson' needs more"),
        ({"order_effect": True}, "order_effect=True needs more"),
        ({"inference": "variational"}, "found by EM or drawn"),
        ({"inference": Bootstrap()}, "found by EM or drawn"),
        ({"engine": "numpy"}, "compiled for rankings in memory"),
        ({"engine": "dask"}, "compiled for rankings in memory"),
        ({"prior": GIG(0.5, 0.1, 1.0)}, "segments have the Gamma prior"),
        ({"segments": Segments(2, by=["a"])}, "about columns of choices"),
        ({"inference": "em", "shape": 0.5}, "a shape of at least 1"),
        ({"inference": EM(shapes=(0.5, 2.0))}, "takes shapes of at least 1"),
        ({"inference": EM(accelerate=False), "shape": 2.0}, "an extrapolation of its own"),
        ({"inference": Gibbs(moves="walk")}, "without moves"),
        ({"groups": None}, "a single comparison of each person"),
        ({"sample_weight": np.ones(4)}, "sample_weight would be ambiguous with segments"),
    ],
)
def test_what_rankers_with_segments_refuse(settings, said):
    settings = {"segments": 2, "X": None, "groups": np.array([0, 0, 1, 1]), "sample_weight": None} | settings
    given = {name: settings.pop(name) for name in ("X", "groups", "sample_weight")}
    with pytest.raises(ValueError, match=said):
        PlackettLuceRanker(**settings).fit(given["X"], PAIRS, given["sample_weight"], given["groups"])


def test_what_fitted_models_refuse_in_words():
    R, who, _ = rankers(n_persons=20)
    model = PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0).fit(None, R, groups=who)
    for ask in (model.prob_better, model.rank_distribution):
        with pytest.raises(ValueError, match="worths differ between segments"):
            ask()
    with pytest.raises(ValueError, match="draws of a Markov chain"):
        model.to_arviz()
    plain = PlackettLuceRanker("em", shape=1.2).fit(None, R)
    assert not hasattr(plain, "segments_")
    with pytest.raises(ValueError, match="a single segment; fit with segments=2"):
        plain.segment_proba(None, R)
    X, y, who, _ = travellers(n_persons=20)
    model = chooser().fit(X, y, groups=who)
    with pytest.raises(ValueError, match="every person counts once"):
        model.fit_statistics(X, y, sample_weight=np.ones(len(X)))


def test_warnings_name_the_line_of_the_user():
    X, y, who, _ = travellers(n_persons=12, each=1, beta=BETA[[0, 0]])
    R, rankers_, _ = rankers(n_persons=12)
    few = Gibbs(draws=8, tune=5, chains=2, target_ess=1e6, max_draws=12)
    for said, fit in (
        ("are more than these choices tell apart", lambda: chooser(segments=4).fit(X, y, groups=who)),
        ("EM did not converge in 1 cycles", lambda: chooser(EM(max_iter=1)).fit(X, y, groups=who)),
        ("max_draws", lambda: chooser(few).fit(X, y, groups=who)),
        (
            "EM did not converge in 1 cycles",
            lambda: PlackettLuceRanker(EM(max_iter=1), shape=1.2, segments=2).fit(None, R, groups=rankers_),
        ),
        ("max_draws", lambda: PlackettLuceRanker(few, segments=2).fit(None, R, groups=rankers_)),
    ):
        with pytest.warns(UserWarning, match=said) as caught:
            fit()
        assert {each.filename for each in caught} == {__file__}


def test_settings_are_parameters_of_scikit_learn(tmp_path):
    X, y, who, _ = travellers(n_persons=20)
    model = chooser(segments=Segments(2, by=["time"]))
    copy = clone(model).set_params(segments__starts=3)
    assert copy.get_params()["segments__by"] == ["time"] and copy.segments.starts == 3
    assert model.segments.starts == 10
    copy.fit(X, y, groups=who)
    copy.save(tmp_path / "model.plk")
    again = load(tmp_path / "model.plk")
    assert repr(again) == repr(copy)
    np.testing.assert_array_equal(again.predict_proba(X, who), copy.predict_proba(X, who))
    pd.testing.assert_frame_equal(again.coefficients(), copy.coefficients())
    pd.testing.assert_frame_equal(again.segments_, copy.segments_)
    R, who, _ = rankers(n_persons=20)
    ranker = clone(PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0)).fit(None, R, groups=who)
    ranker.save(tmp_path / "ranker.plk")
    again = load(tmp_path / "ranker.plk")
    pd.testing.assert_frame_equal(again.worth(), ranker.worth())
    np.testing.assert_array_equal(again.predict_proba(groups=who), ranker.predict_proba(groups=who))


def test_memberships_are_those_of_bayes():
    values, log_shares = np.array([[-1.0, -2.0], [-800.0, -700.0]]), np.log([0.25, 0.75])
    member, total = memberships(values, log_shares)
    np.testing.assert_allclose(member[0], np.array([0.25, 0.75 / np.e]) / (0.25 + 0.75 / np.e))
    np.testing.assert_allclose(total[1], -700.0 + np.log(0.75), rtol=1e-12)


def test_segments_are_in_the_report_and_in_plots(tmp_path):
    R, who, _ = rankers(n_persons=20)
    X, y, persons, _ = travellers(n_persons=20)
    few = Segments("auto", most=2, folds=2, starts=2)
    for model, seen in (
        (PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0).fit(None, R, groups=who), (None, R)),
        (fitted_quietly(chooser(Gibbs(draws=20, tune=20, chains=2), few), X, y, persons), (X, y)),
    ):
        write_report(model, *seen, tmp_path / "report.html")
        page = Tables((tmp_path / "report.html").read_text(encoding="utf-8"))
        shares = model.segments_["share"]
        found = [float(row[1]) for row in page.tables["Segments"][1:]]
        np.testing.assert_allclose(found, shares, rtol=6e-3)
        assert "Segments" in page.headings and ("Number of segments" in page.tables) == (model.segments is few)
        assert as_html(model)
    assert [row[0] for row in page.tables["Coefficients"][1:]] == model.coefficients()["segment"].astype(str).tolist()
    m = PlackettLuceRanker("em", shape=1.2, segments=2, random_state=0).fit(None, R, groups=who)
    labels = [text.get_text() for text in plots.worth(m).get_yticklabels()]
    assert labels == [f"{item} ({segment})" for segment, item in m.worth().index]
