"""Conditional logit in one call: coefficients, standard errors, what is refused, and what is asked of it."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, PlackettLuceClassifier, Rankings, explain, load
from plackett.directions import LearnedDirections
from plackett.features.choice_design import EntryTable
from plackett.linear import LinearUtility
from plackett.priors import GIG
from plackett.report import write_report
from plackett.simulate import choices

LABELS = ["bus", "car", "walk"]


def trips(n=300, seed=0, absent=True):
    """Choice sets of unequal size with a person's column, and choices from a linear utility."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"{x}_{a}": rng.uniform(1, 9, n).round(2) for a in LABELS for x in ("cost", "time")})
    frame["income"] = rng.normal(3, 1, n).round(2)
    names = {"alternatives": LABELS, "attributes": ["cost", "time"], "person": ["income"]}
    if absent:
        for k, a in enumerate(LABELS):
            frame[f"there_{a}"] = (np.arange(n) % 5 != k) | (k == 2)
        names["available"] = "there"
    X = ChoiceSets.from_wide(frame, **names)
    bonus = np.array([0.0, 0.8, -0.5])[X.alternative] + 0.3 * (X.alternative == 1) * X.context[X.situation, 0]
    return X, choices(X, X.values @ [-0.4, -0.25] + bonus, rng=rng)


def by_hand(X):
    """Columns (entries, d) as a paper writes them: two constants, attributes, income by alternative."""
    marks = (X.alternative[:, None] == [0, 1]).astype(float)
    return np.column_stack([marks, X.values, marks * X.context[X.situation]])


def maximum(columns, stages):
    """Coefficients, covariance and scores of the stages (chosen, left) of each situation, by SciPy alone."""

    def parts(beta):
        value, slopes, information = 0.0, [], np.zeros((len(beta), len(beta)))
        for each in stages:
            slope = np.zeros(len(beta))
            for chosen, left in each:
                u = columns[left] @ beta
                p = np.exp(u - u.max())
                value += columns[chosen] @ beta - u.max() - np.log(p.sum())
                p /= p.sum()
                mean = p @ columns[left]
                slope += columns[chosen] - mean
                information += (columns[left].T * p) @ columns[left] - np.outer(mean, mean)
            slopes.append(slope)
        return value, np.array(slopes), information

    def objective(beta):
        value, slopes, _ = parts(beta)
        return -value, -slopes.sum(axis=0)

    beta = minimize(objective, np.zeros(columns.shape[1]), jac=True, method="BFGS", options={"gtol": 1e-7}).x
    for _ in range(2):  # to the last digits
        _, slopes, information = parts(beta)
        beta = beta + np.linalg.solve(information, slopes.sum(axis=0))
    value, slopes, information = parts(beta)
    return beta, np.linalg.inv(information), slopes, value


def stages_of(X, y):
    """One stage a situation."""
    chosen = X.chosen(y)
    return [[(chosen[t], np.arange(X.start[t], X.start[t + 1]))] for t in range(len(X))]


@pytest.fixture(scope="module")
def fitted():
    X, y = trips()
    person = np.arange(len(X)) // 4
    return PlackettLuceChooser("em", features=LinearUtility(base="walk")).fit(X, y, groups=person), X, y, person


@pytest.fixture(scope="module")
def drawn():
    X, y = trips(150)
    settings = {"features": LinearUtility(base="walk"), "random_state": 0}
    return PlackettLuceChooser(Gibbs(draws=300, tune=100), **settings).fit(X, y), X, y


def test_coefficients_and_errors_are_those_of_an_independent_computation(fitted):
    model, X, y, person = fitted
    beta, covariance, scores, value = maximum(by_hand(X), stages_of(X, y))
    found = model.coefficients()
    named = ["constant: bus", "constant: car", "cost", "time", "income: bus", "income: car"]
    assert found["column"].tolist() == named
    np.testing.assert_allclose(found["coefficient"], beta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(found["std_error"], np.sqrt(np.diag(covariance)), rtol=1e-6)
    np.testing.assert_allclose(found["z"], beta / np.sqrt(np.diag(covariance)), rtol=1e-5)
    np.testing.assert_allclose(found["upper"] - found["lower"], 2 * 1.6448536 * found["std_error"], rtol=1e-6)
    np.testing.assert_allclose(model.log_likelihood(X, y).sum(), value, rtol=1e-10)
    sandwich = covariance @ scores.T @ scores @ covariance
    np.testing.assert_allclose(model.coefficients(errors="robust")["std_error"], np.diag(sandwich) ** 0.5, rtol=1e-6)
    sums = np.add.reduceat(scores, np.arange(0, len(X), 4))
    n = len(sums)
    sandwich = covariance @ sums.T @ sums @ covariance * n / (n - 1)
    np.testing.assert_allclose(model.coefficients(errors="person")["std_error"], np.diag(sandwich) ** 0.5, rtol=1e-6)


def test_rankings_are_exploded():
    X, _ = trips(120, absent=False)
    rng = np.random.default_rng(3)
    noisy = (X.values @ [-0.4, -0.25] + rng.gumbel(size=len(X.alternative))).reshape(-1, 3)
    orders = np.argsort(-noisy, axis=1)
    R = Rankings.from_orders([[LABELS[k] for k in order] for order in orders])
    stages = [[(3 * t + k[0], 3 * t + k), (3 * t + k[1], 3 * t + k[1:])] for t, k in enumerate(orders)]
    beta, covariance, _, value = maximum(by_hand(X), stages)
    model = PlackettLuceChooser("em", features=LinearUtility(base="walk")).fit(X, R)
    np.testing.assert_allclose(model.coefficients()["coefficient"], beta, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(model.coefficients()["std_error"], np.diag(covariance) ** 0.5, rtol=1e-6)
    statistics = model.fit_statistics(X, R)
    np.testing.assert_allclose(statistics.log_likelihood, value, rtol=1e-10)
    np.testing.assert_allclose(statistics.null, -len(X) * np.log(6), rtol=1e-12)


def test_weights_count_situations_and_order_does_not_matter():
    X, y = trips(80)
    twice, order = np.repeat(np.arange(80), 1 + np.arange(80) % 2), np.random.default_rng(0).permutation(80)
    weighed = PlackettLuceChooser("em", features="linear").fit(X, y, sample_weight=1.0 + np.arange(80) % 2)
    repeated = PlackettLuceChooser("em", features="linear").fit(X[twice], y[twice])
    for errors in ("classical", "robust"):
        one, other = (model.coefficients(errors=errors).drop(columns=["column"]) for model in (weighed, repeated))
        np.testing.assert_allclose(one, other, rtol=1e-7, atol=1e-9)
    for inference in ("em", Gibbs(draws=20, tune=20)):
        straight, mixed = (
            _silently(PlackettLuceChooser(inference, features="linear", random_state=0), X[some], y[some])
            for some in (slice(None), order)
        )
        np.testing.assert_array_equal(straight.posterior_.coefficients, mixed.posterior_.coefficients)


def _silently(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(X, y)


def test_coefficients_by_alternative():
    X, y = trips(400)
    columns = np.column_stack([x * (X.alternative == k) for x in X.values.T for k in range(3)])
    marks = (X.alternative[:, None] == [0, 1]).astype(float)
    columns = np.column_stack([marks, columns, marks * X.context[X.situation]])
    beta, covariance, _, _ = maximum(columns, stages_of(X, y))
    model = PlackettLuceChooser("em", features=LinearUtility(base="walk"), weights="alternative").fit(X, y)
    found = model.coefficients()
    assert found["column"].tolist()[2:8] == [f"{x}: {a}" for x in ("cost", "time") for a in LABELS]
    np.testing.assert_allclose(found["coefficient"], beta, rtol=1e-5, atol=1e-7)
    np.testing.assert_allclose(found["std_error"], np.diag(covariance) ** 0.5, rtol=1e-6)
    worth = model.willingness_to_pay("time", "cost", X).set_index("alternative")["value"]
    np.testing.assert_allclose(worth[LABELS], beta[5:8] / beta[2:5], rtol=1e-3)


def test_without_constants_and_with_a_prior():
    X, y = trips(100)
    bare = X.with_schema(X[:0])
    with pytest.raises(ValueError, match=r"LinearUtility\(constants\) must be True or False, got 1 instead"):
        PlackettLuceChooser("em", features=LinearUtility(constants=1)).fit(X, y)
    with pytest.raises(ValueError, match="person's columns would be ignored"):
        PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(bare, y)
    frame = pd.DataFrame(X.values, columns=["cost", "time"]).assign(t=X.situation, a=X.alternatives[X.alternative])
    plain = ChoiceSets.from_long(frame, situation="t", alternative="a", attributes=["cost", "time"])
    model = PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(plain, y)
    beta, covariance, _, _ = maximum(plain.values, stages_of(plain, y))
    np.testing.assert_allclose(model.coefficients()["coefficient"], beta, rtol=1e-6)
    spread = 0.3
    scale = plain.values.std(axis=0)
    shrunk = PlackettLuceChooser("em", features=LinearUtility(constants=False, spread=spread)).fit(plain, y)
    slope = np.zeros(2)
    for ((chosen, left),) in stages_of(plain, y):
        p = np.exp(plain.values[left] @ shrunk.coefficients()["coefficient"].to_numpy())
        slope += plain.values[chosen] - p @ plain.values[left] / p.sum()
    prior = shrunk.coefficients()["coefficient"] * scale**2 / spread**2
    np.testing.assert_allclose(slope, prior, rtol=1e-6)  # the law of the mode
    assert np.isnan(shrunk.fit_statistics(plain, y).aic)


def frame_of(n, **columns):
    """Choice sets of two alternatives from differences of attributes."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"t": np.repeat(np.arange(n), 2), "a": np.tile(["l", "r"], n)})
    for name, make in columns.items():
        frame[name] = make(rng, n)
    return ChoiceSets.from_long(frame, situation="t", alternative="a", attributes=list(columns)), frame


def normal(rng, n):
    return rng.normal(size=2 * n)


def test_columns_that_are_not_identified_are_named():
    X, frame = frame_of(40, x=normal, z=normal)
    y = np.where(np.arange(40) % 3 == 0, "l", "r")
    frame["sum"], frame["year"] = frame["x"] - 2 * frame["z"], np.repeat(np.arange(40.0), 2)
    names = {"situation": "t", "alternative": "a"}
    made = ChoiceSets.from_long(frame, **names, attributes=["x", "z", "sum"])
    with pytest.raises(ValueError, match="combination of 'x', 'z', 'sum' is constant within every situation"):
        PlackettLuceChooser("em", features="linear").fit(made, y)
    made = ChoiceSets.from_long(frame, **names, attributes=["x", "year"])
    with pytest.raises(ValueError, match="'year' does not vary within any situation. Leave 'year' out"):
        PlackettLuceChooser("em", features="linear").fit(made, y)
    with pytest.warns(UserWarning, match="'year' does not vary within any situation; what the data leave open"):
        PlackettLuceChooser(Gibbs(draws=200, tune=100), features="linear", random_state=0).fit(made, y)


@pytest.mark.parametrize("quasi", [False, True])
def test_separation_is_found_and_its_columns_are_named(quasi):
    X, frame = frame_of(40, x=normal, z=normal)
    if quasi:  # ties of x in every fourth situation
        frame.loc[frame["t"] % 4 == 0, "x"] = 0.0
        X = ChoiceSets.from_long(frame, situation="t", alternative="a", attributes=["x", "z"])
    away = frame["x"].to_numpy().reshape(-1, 2)
    right = np.where(away[:, 0] == away[:, 1], np.arange(40) % 8 == 0, away[:, 0] < away[:, 1])
    y = np.where(right, "r", "l")
    with pytest.raises(ValueError, match="the choices are separated by 'x': along it the likelihood rises for ever"):
        PlackettLuceChooser("em", features="linear").fit(X, y)
    shrunk = PlackettLuceChooser("em", features=LinearUtility(spread=2.0)).fit(X, y)
    assert shrunk.posterior_.converged


def test_strong_effects_are_no_separation():
    X, _ = frame_of(400, x=normal, z=normal)
    y = choices(X, 12 * X.values[:, 0], rng=0)
    found = PlackettLuceChooser("em", features="linear").fit(X, y).coefficients().set_index("column")
    assert abs(found.loc["x", "coefficient"] - 12) < 4 * found.loc["x", "std_error"]


def test_alternatives_that_were_never_chosen():
    X, y = trips(60, absent=False)
    y = np.where(y == "walk", "bus", y)
    with pytest.raises(ValueError, match="never chosen, though available: 'walk'"):
        PlackettLuceChooser("em", features="linear").fit(X, y)
    same = np.full(60, "car")
    with pytest.raises(ValueError, match="every situation chose 'car'"):
        PlackettLuceChooser("em", features="linear").fit(X, same)
    with pytest.warns(UserWarning, match="every situation chose 'car'"):
        PlackettLuceChooser(Gibbs(draws=300, tune=150), features="linear", random_state=0).fit(X, same)
    with pytest.warns(UserWarning, match="every situation chose 'car'"):
        PlackettLuceChooser(EM(cv=2, max_iter=20), features=LearnedDirections(components=1)).fit(X, same)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"inference": "variational"}, "features='linear' has neither a variational approximation nor a bootstrap"),
        ({"inference": "bootstrap"}, "neither a variational approximation nor a bootstrap: use inference='em'"),
        ({"weights": "person"}, r"same coefficients for all persons.*Tastes"),
        ({"engine": "numpy"}, "not for engine='numpy'"),
        ({"engine": "dask"}, "not for engine='dask'"),
        ({"shape": 1.0}, "shape=1.0.* would be ignored"),
        ({"rate": 2.0}, "rate=2.0.* would be ignored"),
        ({"prior": GIG(0.5, 0.1, 1.0)}, "would be ignored"),
        ({"inference": EM(cv=3)}, "cv=3.* would be ignored"),
        ({"inference": EM(tol=1e-3)}, "tol=0.001.* would be ignored"),
        ({"inference": Gibbs(moves="none")}, "would be ignored: the posterior of features='linear' has a single mode"),
        ({"features": LinearUtility(base="tram")}, r"base must be one of the alternatives \['bus'"),
        ({"features": LinearUtility(spread=-1)}, r"LinearUtility\(spread\) must be a positive number"),
        ({"features": LinearUtility(base="bus", constants=False)}, "would be ignored: with constants=False"),
    ],
)
def test_what_is_refused(settings, words):
    X, y = trips(40)
    model = PlackettLuceChooser(**{"inference": "em", "features": "linear"} | settings)
    with pytest.raises(ValueError, match=words):
        model.fit(X, y, groups=np.arange(40))


def test_others_do_not_know_linear_utilities():
    with pytest.raises(ValueError, match="features must be one of"):
        PlackettLuceClassifier("em", features="linear").fit(np.zeros((4, 1)), [0, 1, 0, 1])
    X, y = trips(60)
    model = PlackettLuceChooser(EM(cv=2, max_iter=30), features=LearnedDirections(components=1)).fit(X, y)
    with pytest.raises(ValueError, match=r"coefficients\(\) is for a linear utility"):
        model.coefficients()
    statistics = model.fit_statistics(X, y)
    assert statistics.parameters is None and np.isnan(statistics.aic) and statistics.rho2 > 0
    linear = PlackettLuceChooser("em", features="linear").fit(X, y)
    with pytest.raises(ValueError, match="errors='person' needs fit"):
        linear.coefficients(errors="person")
    with pytest.raises(ValueError, match="errors must be one of"):
        linear.coefficients(errors="jackknife")
    tied = Rankings.from_orders([[{"bus", "car"}, "walk"]] * 60)
    full, _ = trips(60, absent=False)
    with pytest.raises(ValueError, match="no alternatives are tied"):
        PlackettLuceChooser("em", features="linear").fit(full, tied)


@pytest.mark.parametrize("bend", ["none", "hinges", "scores", "auto"])
def test_bends_can_be_fixed_and_are_said(bend, tmp_path):
    X, y = trips(80)
    settings = {"features": LearnedDirections(components=1, bend=bend), "random_state": 0}
    model = PlackettLuceChooser(EM(cv=2, max_iter=50), **settings).fit(X, y)
    words = {"none": "attributes as they are", "hinges": "attributes with hinges", "scores": "attributes as scores"}
    assert words[model.design_.bend] in repr(model)
    assert bend in (model.design_.bend, "auto")
    assert ("held-out log-loss" in repr(model)) == (bend == "auto")
    model.save(tmp_path / "m.plk")
    assert repr(load(tmp_path / "m.plk")) == repr(model)
    if bend == "auto":
        drawn = _silently(PlackettLuceChooser(Gibbs(draws=8, tune=8, chains=2), **settings), X, y)
        assert sorted(drawn.design_log_loss_) == [0, 1, 2] and "held-out log-loss" in repr(drawn)
    with pytest.raises(ValueError, match=r"bend='none'.* would be ignored: it is for attributes of alternatives"):
        PlackettLuceClassifier("em", features=LearnedDirections(bend="none")).fit(np.eye(4), [0, 1, 0, 1])


def test_willingness_to_pay_warns_of_signs():
    """A time that is good up to a point and bad beyond: one ratio hides it, and conditional logit disagrees."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({f"{x}_{a}": rng.uniform(0, 8, 800) for a in ("l", "r") for x in ("cost", "time")})
    X = ChoiceSets.from_wide(frame, alternatives=["l", "r"], attributes=["cost", "time"])
    cost, time = X.values.T
    y = choices(X, -cost - 1.5 * np.abs(time - 4), rng=1)
    model = PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1, bend="hinges")).fit(X, y)
    with pytest.warns(UserWarning, match="the slope of 'time' is positive for .* and negative for the rest"):
        model.willingness_to_pay("time", "cost")
    straight = PlackettLuceChooser("em", features="linear").fit(X, y).coefficients().set_index("column")["coefficient"]
    np.testing.assert_allclose(model.linear_slopes_, straight[["cost", "time"]], rtol=0.05, atol=0.01)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        value = model.willingness_to_pay("time", "cost")["value"][0]
        model.linear_slopes_ = np.array([-1.0, np.sign(value)])
        model.willingness_to_pay("time", "cost")
    disagree = ["signs disagree" in str(each.message) for each in told]
    assert disagree[-1] and not all(disagree)


def test_fit_statistics_are_those_of_papers(fitted):
    model, X, y, _ = fitted
    found, d, n = model.fit_statistics(X, y), 6, len(X)
    value = model.log_likelihood(X, y).sum()
    null = -np.log(np.diff(X.start)).sum()
    assert found.parameters == d and found.n == n
    np.testing.assert_allclose([found.log_likelihood, found.null], [value, null], rtol=1e-12)
    np.testing.assert_allclose(found.rho2, 1 - value / null, rtol=1e-12)
    np.testing.assert_allclose(found["rho2_adjusted"], 1 - (value - d) / null, rtol=1e-12)
    np.testing.assert_allclose([found.aic, found.bic], [2 * d - 2 * value, d * np.log(n) - 2 * value], rtol=1e-12)
    constants = maximum(by_hand(X)[:, :2], stages_of(X, y))[3]
    np.testing.assert_allclose(found.constants, constants, rtol=1e-9)
    assert "Adjusted rho-square" in str(found) and r"\toprule" in found.to_latex() and "<table>" in found._repr_html_()
    assert found.frame.loc["aic", "value"] == found.aic
    with pytest.raises(KeyError, match="none of log_likelihood"):
        found["r2"]


def test_intervals_after_maximum_likelihood(fitted):
    """Draws from N(β̂, covariance) stand for the uncertainty; a ratio has the delta method's."""
    model, X, _, _ = fitted
    A, V = model.design_.to_units(), model.posterior_.classical
    covariance, beta = A @ V @ A.T, model.coefficients()["coefficient"].to_numpy()
    worth = model.willingness_to_pay("time", "cost").set_index("alternative").loc["all"]
    np.testing.assert_allclose(worth["value"], beta[3] / beta[2], rtol=1e-3)
    slope = np.zeros(6)
    slope[3], slope[2] = 1 / beta[2], -beta[3] / beta[2] ** 2
    error = np.sqrt(slope @ covariance @ slope)
    width = 2 * 1.6448536 * error
    np.testing.assert_allclose(worth["upper"] - worth["lower"], width, rtol=0.25)  # 400 draws, and a ratio is skewed
    elastic = model.elasticities(X, "cost")
    assert (elastic["lower"] <= elastic["elasticity"]).all() and (elastic["elasticity"] <= elastic["upper"]).all()
    lower, upper = model.predict_interval(X[:5])
    p = model.predict_proba(X[:5])
    assert ((lower <= p) & (p <= upper)).all() and (upper - lower)[X[:5].available].min() > 0
    shares = model.shares(X).set_index("alternative")
    np.testing.assert_allclose(shares["share"].sum(), 1, atol=2e-4)
    np.testing.assert_allclose(shares["share"], model.predict_proba(X).mean(axis=0), rtol=1e-3)
    assert (shares["lower"] < shares["share"]).all() and (shares["share"] < shares["upper"]).all()
    weight = 1.0 + np.arange(len(X)) % 3
    weighed = model.shares(X, sample_weight=weight)["share"]
    np.testing.assert_allclose(weighed, np.average(model.predict_proba(X), axis=0, weights=weight), rtol=1e-3)
    gone = model.diversion(X, drop="car")
    np.testing.assert_allclose(gone["share"].sum(), 1, atol=1e-3)
    why = explain(model, X[3])
    k = LABELS.index(why.attrs["class"])
    p = model.predict_proba(X[3])[0, k]
    np.testing.assert_allclose(why.attrs["reference"] + why["contribution"].sum(), np.log(p) - np.log1p(-p), rtol=1e-6)


@pytest.mark.brief("fitted")
@pytest.mark.parametrize("which", ["fitted", "drawn"])
def test_files_tables_and_reports(which, request, tmp_path):
    model, X, y, *_ = request.getfixturevalue(which)
    model.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    np.testing.assert_array_equal(same.predict_proba(X), model.predict_proba(X))
    assert repr(same) == repr(model) and "a linear utility with 6 coefficients" in repr(model)
    pd.testing.assert_frame_equal(same.coefficients(), model.coefficients())
    found = model.coefficients()
    assert found.to_latex().startswith(r"\begin{tabular}{l") and "constant: bus" in found.to_latex()
    assert "<table>" in model._repr_html_() and model.summary()["column"].tolist() == found["column"].tolist()
    centre = "mean" if which == "drawn" else "coefficient"
    assert model.summary()[centre].tolist() == [float(f"{value:.4g}") for value in found[centre]]
    write_report(model, X, y, tmp_path / "r.html")
    page = (tmp_path / "r.html").read_text()
    assert "Fit statistics" in page and "Rho-square" in page and "constant: car" in page


def test_draws_agree_with_importance_sampling(drawn):
    """Weights p(β|Y)/N(β; β̂, 1.2 H⁻¹) of draws from the Laplace approximation, widened."""
    model, X, y = drawn
    Z = model.design_.transform(EntryTable.of(X))
    best = PlackettLuceChooser("em", features=LinearUtility(base="walk", spread=10.0)).fit(X, y).posterior_
    rng, S = np.random.default_rng(1), 20_000
    root = np.linalg.cholesky(1.2 * best.classical)
    z = rng.standard_normal((S, 6))
    beta = best.coefficients + z @ root.T
    u = beta @ Z.T
    top = np.maximum.reduceat(u, X.start[:-1], axis=1)
    total = np.log(np.add.reduceat(np.exp(u - np.repeat(top, np.diff(X.start), axis=1)), X.start[:-1], axis=1)) + top
    value = (u[:, X.chosen(y)] - total).sum(axis=1) - (beta**2).sum(axis=1) / 200 + 0.5 * (z**2).sum(axis=1)
    weight = np.exp(value - value.max())
    weight /= weight.sum()
    mean = weight @ beta
    sd = np.sqrt(weight @ (beta - mean) ** 2)
    effective = 1 / (weight**2).sum()
    ours = model.posterior_.coefficients.reshape(-1, 6)
    error = sd * np.sqrt(1 / effective + 1 / model.diagnostics_.coef.ess_bulk[0])
    assert effective > 2000
    assert (np.abs(ours.mean(axis=0) - mean) < 4 * error).all()
    np.testing.assert_allclose(ours.std(axis=0), sd, rtol=4 / np.sqrt(2 * model.diagnostics_.coef.ess_bulk.min()))


def test_draws_converge_by_themselves():
    X, y = trips(150)
    model = PlackettLuceChooser("gibbs", features="linear", random_state=0).fit(X, y)
    found = model.coefficients()
    assert found["rhat"].max() <= 1.01 and found["ess"].min() >= 400
    assert found.columns.tolist() == ["column", "mean", "sd", "lower", "upper", "positive", "ess", "rhat"]
    with pytest.raises(ValueError, match="errors='robust' would be ignored"):
        model.coefficients(errors="robust")


def test_a_checkpoint_goes_on(tmp_path):
    X, y = trips(60)
    settings = {"features": "linear", "random_state": 0}
    for draws in (20, 40):
        kept = Gibbs(draws=draws, tune=20, chains=2, checkpoint=str(tmp_path / "c"))
        goes_on = _silently(PlackettLuceChooser(kept, **settings), X, y)
    at_once = _silently(PlackettLuceChooser(Gibbs(draws=40, tune=20, chains=2), **settings), X, y)
    np.testing.assert_array_equal(goes_on.posterior_.coefficients, at_once.posterior_.coefficients)


def test_leave_one_out_of_draws(drawn):
    pytest.importorskip("arviz")
    model, X, y = drawn
    found = model.fit_statistics(X, y)
    assert found.elpd_loo < found.log_likelihood < 0 and 2 < found.p_loo < 12 and np.isnan(found.aic)
    np.testing.assert_allclose(found.elpd_loo, found.elpd_waic, atol=0.5)
    coefficient = model.to_arviz().posterior["coefficient"]
    assert coefficient.dims == ("chain", "draw", "column")
    np.testing.assert_allclose(coefficient.mean(("chain", "draw")), model.coefficients()["mean"], rtol=1e-10)


@pytest.mark.long
def test_posterior_is_calibrated():
    """Coefficients from the prior, choices from them: ranks of the truth among draws are uniform."""
    from scipy.stats import chisquare

    ranks = []
    for seed in range(120):
        rng = np.random.default_rng(seed)
        X, _ = frame_of(15, x=normal, z=normal)
        beta = rng.normal(0, 1.5, 2)
        y = choices(X, X.values / X.values.std(axis=0) @ beta, rng=rng)
        settings = {"features": LinearUtility(constants=False, spread=1.5), "random_state": seed}
        model = _silently(PlackettLuceChooser(Gibbs(draws=100, tune=100, chains=2), **settings), X, y)
        some = model.posterior_.coefficients.reshape(-1, 2)[::10]
        ranks.append((some < beta).sum(axis=0))
    for column in np.transpose(ranks):
        assert chisquare(np.histogram(column, np.arange(0, 22, 3))[0]).pvalue > 0.001
