"""The face for choices: fitted to small sets, asked everything, split, saved and refused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GroupKFold, KFold, cross_val_score, train_test_split

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, Rankings, explain, load
from plackett.directions import LearnedDirections
from plackett.features.choice_design import EntryTable

LABELS = ["bus", "car", "walk"]
COEFFICIENTS = {"cost": -0.5, "time": -1.0}


def trips(n=300, seed=0, absent=True):
    """Conditional logit, with a person's column that speaks for the car; one alternative is not always there.

    Attributes have four values, too few to bend.
    """
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, n) / 1.0 for a in LABELS for x in COEFFICIENTS})
    frame["income"] = rng.normal(size=n)
    for a in LABELS:
        frame[f"there_{a}"] = 1
    if absent:
        frame.loc[rng.random(n) < 0.3, "there_walk"] = 0
    utility = np.column_stack([sum(b * frame[f"{x}_{a}"] for x, b in COEFFICIENTS.items()) for a in LABELS])
    utility[:, 1] += 0.8 * frame.income
    utility[frame.there_walk == 0, 2] = -np.inf
    y = np.array(LABELS)[np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)]
    X = ChoiceSets.from_wide(
        frame, alternatives=LABELS, attributes=list(COEFFICIENTS), person=["income"], available="there"
    )
    return X, y


@pytest.fixture(scope="module")
def em():
    X, y = trips()
    return PlackettLuceChooser(EM(max_iter=200, cv=2), features=LearnedDirections(components=1)).fit(X, y), X, y


@pytest.fixture(scope="module")
def drawn():
    X, y = trips(80)
    inference = Gibbs(draws=60, tune=30, chains=2)
    with warnings.catch_warnings(action="ignore", category=ConvergenceWarning):
        model = PlackettLuceChooser(inference, features=LearnedDirections(components=2), random_state=0)
        model.fit(X, y, groups=np.arange(80) // 8)  # persons who are too few to hold some out
    return model, X, y


@pytest.mark.parametrize("fitted", ["em", "drawn"])
def test_probabilities_are_wide_and_zero_where_something_is_not_available(fitted, request):
    model, X, y = request.getfixturevalue(fitted)
    p = model.predict_proba(X)
    assert p.shape == (len(X), 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    np.testing.assert_array_equal(p > 0, X.available)
    np.testing.assert_array_equal(model.predict(X), np.array(LABELS)[p.argmax(axis=1)])
    assert model.score(X, y) == (model.predict(X) == y).mean() > 0.5
    chosen = p[np.arange(len(X)), [LABELS.index(label) for label in y]]
    np.testing.assert_allclose(model.log_likelihood(X, y), np.log(chosen))


def test_the_coefficients_come_back(em):
    model, X, _ = em
    table = model.summary().set_index("column")["coefficient"]
    for name, beta in COEFFICIENTS.items():
        assert abs(table[name] - beta) < 0.3
    assert table["income: car"] > 0.4 if "income: car" in table else table["income: bus"] < -0.4
    found = model.willingness_to_pay("time", "cost")
    np.testing.assert_allclose(found.value, table["time"] / table["cost"], rtol=2e-3)
    assert found.lower.isna().all()


def test_what_analysts_ask(drawn):
    model, X, _ = drawn
    effects = model.effects(X)
    numbers = ["effect", "lower", "upper", "positive", "effect_per_sd"]
    assert effects.columns.tolist() == ["attribute", "of", "alternative", *numbers]
    assert len(effects) == (2 * 3 + 1) * 3
    sums = effects.groupby(["attribute", "of"]).effect.sum()
    np.testing.assert_allclose(sums, 0, atol=1e-3)
    own = effects[(effects.of == effects.alternative)]
    assert (own.effect < 0).all() and (own.positive < 0.5).all()
    assert ((effects.lower <= effects.effect) & (effects.effect <= effects.upper)).all()
    elastic = model.elasticities(X, "cost")
    assert (elastic.elasticity[elastic.of == elastic.alternative] < 0).all()
    assert (elastic.elasticity[elastic.of != elastic.alternative] > 0).all()
    gone = model.diversion(X, drop="car")
    np.testing.assert_allclose(gone.share.sum(), 1, atol=1e-3)
    np.testing.assert_allclose(gone.after.sum(), 1, atol=1e-3)
    worth = model.willingness_to_pay("time", "cost", X)
    assert worth.alternative.tolist() == ["all", *LABELS]
    lower, upper = model.predict_interval(X)
    p = model.predict_proba(X)
    assert ((lower <= p) & (p <= upper)).all() and (upper - lower)[X.available].mean() > 0.01
    assert (upper[~X.available] == 0).all()


@pytest.mark.parametrize("fitted", ["em", "drawn"])
def test_explanations_add_up(fitted, request):
    model, X, _ = request.getfixturevalue(fitted)
    why = explain(model, X[3])
    p = model.predict_proba(X[3])[0, LABELS.index(why.attrs["class"])]
    np.testing.assert_allclose(why.attrs["reference"] + why.contribution.sum(), np.log(p) - np.log1p(-p), rtol=1e-6)
    with pytest.raises(ValueError, match="expected one situation, got 2"):
        explain(model, X[:2])


def test_levels_of_a_text_belong_together():
    rng = np.random.default_rng(0)
    seats = {f"seat_{a}": rng.choice(["best", "good", "poor"], 60, p=[0.2, 0.5, 0.3]) for a in LABELS}
    frame = pd.DataFrame(seats | {f"cost_{a}": rng.integers(1, 5, 60) / 1.0 for a in LABELS})
    frame["home"] = rng.choice(["farm", "town"], 60, p=[0.3, 0.7])
    X = ChoiceSets.from_wide(frame, alternatives=LABELS, attributes=["seat", "cost"], person=["home"])
    worth = {"best": 1.0, "good": 0.5, "poor": -1.0}
    utility = np.column_stack([frame[f"seat_{a}"].map(worth) - frame[f"cost_{a}"] / 2 for a in LABELS])
    y = np.array(LABELS)[np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)]
    model = PlackettLuceChooser(EM(max_iter=100, cv=2), features=LearnedDirections(components=1)).fit(X, y)
    found = model.effects(X)
    lines = ["seat: best vs good", "seat: poor vs good", "cost", "home: farm vs town"]
    assert found.attribute.unique().tolist() == lines
    best, good = (
        ChoiceSets.from_wide(
            frame.assign(seat_car=level), alternatives=LABELS, attributes=["seat", "cost"], person=["home"]
        )
        for level in ("best", "good")
    )
    moved = (model.predict_proba(best) - model.predict_proba(good)).mean(axis=0)
    of_car = found[(found.attribute == lines[0]) & (found.of == "car")]
    assert of_car.alternative.tolist() == LABELS
    np.testing.assert_allclose(of_car.effect, moved, atol=2e-4)
    why = explain(model, X[0])
    assert sorted(why.feature) == ["cost"] * 3 + ["home"] + ["seat"] * 3
    held = why[why.feature == "seat"].set_index("of")["value"]
    assert held[LABELS].tolist() == frame.loc[0, list(seats)].tolist()
    p = model.predict_proba(X[0])[0, LABELS.index(why.attrs["class"])]
    np.testing.assert_allclose(why.attrs["reference"] + why.contribution.sum(), np.log(p) - np.log1p(-p), rtol=1e-6)


@pytest.mark.parametrize("fitted", ["em", "drawn"])
def test_a_model_file_predicts_the_same(fitted, request, tmp_path):
    model, X, y = request.getfixturevalue(fitted)
    model.save(tmp_path / "trips.plk")
    same = load(tmp_path / "trips.plk")
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    assert repr(same) == repr(model)
    assert "alternatives" in repr(model) and "<table>" in model._repr_html_()


def test_arviz_has_loo_by_situation(drawn):
    import arviz as az

    model, X, y = drawn
    found = model.to_arviz(X, y)
    assert found.posterior["probability"].shape == (2, 60, 20, 3)
    log_likelihood = found.log_likelihood["y"].to_numpy()
    assert log_likelihood.shape == (2, 60, len(X)) and np.isfinite(log_likelihood).all()
    codes = found.observed_data["y"].to_numpy()
    np.testing.assert_array_equal(np.array(LABELS)[codes], y)
    drawn_codes = found.posterior_predictive["y"].to_numpy().astype(int)
    assert X.available[np.arange(len(X)), drawn_codes].all()
    averaged = np.log(np.exp(log_likelihood).mean(axis=(0, 1)))  # there is no mode beside these draws
    np.testing.assert_allclose(averaged, model.log_likelihood(X, y), atol=1e-9)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # so few draws
        loo = az.loo(found, pointwise=True)
    assert len(loo.loo_i if hasattr(loo, "loo_i") else loo.elpd_i) == len(X)


def test_rankings_of_alternatives_are_more_than_choices():
    X, _ = trips(200, absent=False)
    rng = np.random.default_rng(5)
    utility = X.values @ np.array(list(COEFFICIENTS.values()))
    noisy = (utility + rng.gumbel(size=len(utility))).reshape(-1, 3)
    R = Rankings.from_orders([[LABELS[k] for k in order] for order in np.argsort(-noisy, axis=1)])
    first = np.array(LABELS)[noisy.argmax(axis=1)]
    settings = {"inference": EM(max_iter=100, cv=2), "features": LearnedDirections(components=1)}
    ranked, chosen = (PlackettLuceChooser(**settings).fit(X, seen) for seen in (R, first))
    assert ranked.score(X, R) == (ranked.predict(X) == first).mean()
    assert ranked.log_likelihood(X, R).shape == (200,)
    assert (ranked.log_likelihood(X, R) < ranked.log_likelihood(X, first) + 1e-12).all()
    fresh, _ = trips(2000, seed=9, absent=False)
    truth = np.exp((fresh.values @ np.array(list(COEFFICIENTS.values()))).reshape(-1, 3))
    truth /= truth.sum(axis=1, keepdims=True)
    off = [np.abs(model.predict_proba(fresh) - truth).mean() for model in (ranked, chosen)]
    assert off[0] < off[1] < 0.1  # three places tell more than one


def test_an_alternative_that_came_last_where_it_was_not_is_left_out():
    X, _ = trips(60)
    top = [[LABELS[k]] for k in X.alternative[X.start[:-1] + np.arange(60) % 2]]
    last = PlackettLuceChooser(EM(max_iter=50, cv=2), features=LearnedDirections(components=1))
    last.fit(X, Rankings.from_orders(top, unranked="last", items=LABELS))
    same = PlackettLuceChooser(EM(max_iter=50, cv=2), features=LearnedDirections(components=1))
    same.fit(X, np.array([label for (label,) in top]))
    np.testing.assert_allclose(last.predict_proba(X), same.predict_proba(X), atol=1e-5)
    wrong = [["walk"]] * 60
    with pytest.raises(ValueError, match="'walk' is ranked in situation .*, where it is not available"):
        last.fit(X, Rankings.from_orders(wrong, unranked="last", items=LABELS))


def test_scikit_learn_splits_situations():
    X, y = trips(120)
    X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=0)
    model = PlackettLuceChooser(EM(max_iter=30, cv=2), features=LearnedDirections(components=1))
    assert model.fit(X_train, y_train).score(X_test, y_test) > 0.4
    assert len(cross_val_score(model, X, y, cv=KFold(2))) == 2
    scores = cross_val_score(
        model, X, y, cv=GroupKFold(2), groups=np.arange(120) // 3, scoring=lambda m, X, y: m.log_likelihood(X, y).mean()
    )
    assert (scores > np.log(1 / 3)).all()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"weights": "mine"}, "weights must be one of"),
        ({"weights": "person"}, "weights='person' needs fit"),
        ({"inference": "variational"}, "no variational approximation"),
        ({"features": "log"}, "features must be one of"),
        ({"rate": 2.0}, "would be ignored"),
        ({"shape": -1.0}, "shape must be a positive number"),
        ({"engine": "abacus"}, "engine must be"),
    ],
)
def test_what_makes_no_sense_is_refused(settings, words):
    X, y = trips(30)
    with pytest.raises(ValueError, match=words):
        PlackettLuceChooser(**settings).fit(X, y)


@pytest.mark.parametrize("ask", ["predict", "predict_proba", "predict_interval", "effects"])
def test_what_is_asked_before_a_fit_says_so(ask):
    with pytest.raises(NotFittedError, match="not fitted yet"):
        getattr(PlackettLuceChooser(), ask)(trips(30)[0])


def test_half_a_situation_is_refused_by_gibbs_with_fixed_features():
    weight = np.where(np.arange(30) == 3, 0.5, 1.0)
    with pytest.raises(ValueError, match=r"as sample_weight \(2 is two situations\), got 0.5 in situation 3: "):
        PlackettLuceChooser("gibbs", features="exp").fit(*trips(30), sample_weight=weight)


def test_what_does_not_fit_the_data_is_refused(em):
    model, X, y = em
    with pytest.raises(ValueError, match="X must be ChoiceSets, got ndarray"):
        model.predict(np.zeros((3, 2)))
    with pytest.raises(ValueError, match="the attributes are cost, time; got 'speed'"):
        model.elasticities(X, "speed")
    with pytest.raises(ValueError, match="drop must be one of the alternatives"):
        model.diversion(X, drop="boat")
    with pytest.raises(ValueError, match="groups would be ignored"):
        model.predict_proba(X, groups=np.arange(len(X)))
    with pytest.raises(ValueError, match="one number for each of the 300 situations"):
        PlackettLuceChooser("em").fit(X, y, sample_weight=[1, 2])
    with pytest.raises(ValueError, match="groups would be ignored"):
        PlackettLuceChooser("em", features="exp", shape=1.0).fit(X, y, groups=np.arange(len(X)))


@pytest.mark.usefixtures("quiet")
@pytest.mark.parametrize("weights", ["shared", "alternative", "person"])
@pytest.mark.parametrize("inference", ["em", "variational", "gibbs"])
def test_fixed_features_go_through_every_inference(inference, weights, tmp_path):
    X, y = trips(60)
    person = np.arange(60) // 12 if weights == "person" else None
    settings = {"gibbs": Gibbs(draws=40, tune=40, chains=2)}
    model = PlackettLuceChooser(
        settings.get(inference, inference), features="exp", shape=1.0, weights=weights, random_state=0
    ).fit(X, y, groups=person)
    p = model.predict_proba(X, groups=person)
    np.testing.assert_array_equal(p > 0, X.available)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert model.log_likelihood(X, y, groups=person).mean() > np.log(1 / X.available.sum(axis=1)).mean()
    own = model.effects(X, groups=person).query("of == alternative").effect
    assert len(own) == 6 and own.mean() < 0
    why = explain(model, X[0])
    np.testing.assert_allclose(why.probability.sum(), 1)
    names = {"shared": ["all"], "alternative": LABELS, "person": list(range(5))}[weights]
    assert set(model.summary()["weights of"]) == set(names)
    assert ("constant: bus" in model.design_.names_ or "constant: car" in model.design_.names_) == (
        weights != "alternative"
    )
    model.save(tmp_path / "trips.plk")
    np.testing.assert_array_equal(load(tmp_path / "trips.plk").predict_proba(X, groups=person), p)


def test_a_ratio_of_rates_does_not_depend_on_how_rows_are_scaled():
    """Rows of W of one situation are compared: unlike rows of classes they may not be divided by their own largest."""
    X, y = trips(60)
    model = PlackettLuceChooser("em", features="exp", shape=1.0).fit(X, y)
    W = np.exp(model.features_.exponents(model.design_.columns(EntryTable.of(X))))
    rates = W @ model.weights_[0]
    wide = np.zeros((len(X), 3))
    wide[X.situation, X.alternative] = rates
    np.testing.assert_allclose(model.predict_proba(X), wide / wide.sum(axis=1, keepdims=True), atol=1e-12)


def test_em_learns_the_shape_from_held_out_situations():
    X, y = trips(60)
    model = PlackettLuceChooser(EM(shapes=(1.0, 0.5), cv=2), features="exp").fit(X, y)
    assert set(model.cv_log_loss_) == {1.0, 0.5}
    assert model.shape_ == min(model.cv_log_loss_, key=model.cv_log_loss_.get)


def test_known_persons_have_weights_of_their_own_and_new_ones_are_one_of_them():
    """Two kinds of persons: some mind the cost alone, some the time alone."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{x}_{a}": rng.integers(1, 5, 240) / 1.0 for a in LABELS for x in ("cost", "time")})
    X = ChoiceSets.from_wide(frame, alternatives=LABELS, attributes=["cost", "time"])
    person = np.repeat(np.arange(12), 20)
    minded = X.values[np.arange(720), (person[X.situation] % 2)].reshape(-1, 3)
    y = np.array(LABELS)[np.argmax(-3 * minded + rng.gumbel(size=minded.shape), axis=1)]
    model = PlackettLuceChooser("em", features="exp", shape=1.0, weights="person").fit(X, y, groups=person)
    known, new = (model.log_likelihood(X, y, groups=who).mean() for who in (person, np.full(240, "nobody")))
    assert known > new + 0.2
    np.testing.assert_allclose(model.predict_proba(X, groups=person + 100), model.predict_proba(X))
    mixed = np.where(np.arange(240) < 120, person, 99)
    p = model.predict_proba(X, groups=mixed)
    np.testing.assert_allclose(p[:120], model.predict_proba(X[:120], groups=person[:120]))
    one = np.mean([model.predict_proba(X[:1], groups=[k]) for k in range(12)], axis=0)
    np.testing.assert_allclose(model.predict_proba(X[:1]), one, atol=0.2)
