"""Random tastes of the chooser: what is learned, read, predicted, refused and kept."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp
from scipy.stats import kstest

from commands import plackett
from nuts import nuts_tastes
from plackett import ChoiceSets, Gibbs, PlackettLuceChooser, Rankings, Tastes, load
from plackett.inference.driver import Source
from plackett.inference.limits import Clock
from plackett.model.measures import measures
from plackett.model.taste_law import TasteLaw, correlations, deviations
from plackett.report import write_report
from plackett.simulate import choices
from plackett.tastes import taste_chains
from plackett.tastes.population import MEAN_SPREAD, SD_SCALE, PopulationPrior
from plackett.tastes.taste_chains import TasteRun
from test_tastes import choose, panel_of, small_prior

LAWS = {"price": "-lognormal"}


def panel(n_persons=40, each=6, seed=0):
    """Who chooses among three modes, by a log-normal dislike of the price and a normal one of the time."""
    rng = np.random.default_rng(seed)
    n = n_persons * each
    frame = pd.DataFrame({"trip": np.repeat(np.arange(n), 3), "by": np.tile(["bus", "car", "walk"], n)})
    frame["price"], frame["time"] = rng.uniform(1, 9, 3 * n), rng.normal(30, 9, 3 * n)
    who = np.repeat([f"p{i:02}" for i in range(n_persons)], each)
    tastes = np.column_stack([-np.exp(rng.normal(-0.7, 0.5, n_persons)), rng.normal(-0.1, 0.1, n_persons)])
    frame["who"] = np.repeat(who, 3)
    utility = (frame[["price", "time"]].to_numpy() * np.repeat(tastes, 3 * each, axis=0)).sum(axis=1)
    best = np.argmax((utility + rng.gumbel(size=3 * n)).reshape(n, 3), axis=1)
    frame["taken"] = (np.arange(3) == best[:, None]).astype(int).ravel()
    X, y = ChoiceSets.read_choices(
        frame, situation="trip", alternative="by", choice="taken", attributes=["price", "time"]
    )
    return frame, X, y, who


def fitted(X, y, who, draws=60, features=None, **gibbs):
    features = Tastes(law=LAWS, correlated=True) if features is None else features
    inference = Gibbs(draws=draws, tune=60, chains=2, **gibbs)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PlackettLuceChooser(inference, features=features, random_state=0).fit(X, y, groups=who)


@pytest.fixture(scope="module")
def model():
    _, X, y, who = panel()
    return fitted(X, y, who, draws=200)


def test_the_law_is_a_table(model):
    table = model.population()
    assert list(table.index) == ["price", "time", "constant: car", "constant: walk"]
    assert list(table["law"]) == ["-lognormal", "normal", "fixed", "fixed"]
    assert (table["mean_lower"] < table["mean"]).all() and (table["mean"] < table["mean_upper"]).all()
    assert table.loc["price", "positive"] == 0 and table.loc["price", "median_taste"] < 0
    assert table.loc["price", "mean_taste"] < table.loc["price", "median_taste"]  # the tail is long
    assert (table.loc[["constant: car", "constant: walk"], "sd"] == 0).all()
    correlation = table.attrs["correlation"]
    assert list(correlation.index) == ["price", "time"] and np.allclose(np.diag(correlation), 1)
    assert abs(table.loc["price", "mean"] + 0.7) < 0.6 and abs(table.loc["time", "mean"] + 0.1) < 0.06
    assert "2 random (correlated) and 2 fixed coefficients of 40 persons" in repr(model)
    assert "tastes of the population" in model._repr_html_().lower()
    assert list(model.summary()["column"]) == list(table.index)


def test_persons_have_tastes(model):
    table = model.tastes()
    assert list(table.index.names) == ["person", "attribute"] and len(table) == 80
    assert (table["lower"] <= table["mean"]).all() and (table["mean"] <= table["upper"]).all()
    assert (table.xs("price", level="attribute")["upper"] < 0).all()
    some = model.tastes(["p03", "p01"])
    pd.testing.assert_frame_equal(some, table.loc[["p03", "p01"]])
    with pytest.raises(ValueError, match="'nobody' is not among the 40 persons of the fit"):
        model.tastes(["nobody"])


def test_known_persons_are_predicted_by_their_own_tastes(model):
    _, X, y, who = panel()
    new, own = model.log_likelihood(X, y), model.log_likelihood(X, y, who)
    assert own.sum() > new.sum() + 10 and model.score(X, y, groups=who) >= model.score(X, y)
    strange = np.array(["nobody"] * len(X))
    np.testing.assert_allclose(model.predict_proba(X, groups=strange), model.predict_proba(X), atol=0.02)
    mixed = np.where(np.arange(len(X)) % 2, who, strange)
    np.testing.assert_allclose(
        model.predict_proba(X, groups=mixed)[1::2], model.predict_proba(X, groups=who)[1::2], atol=1e-12
    )
    lower, upper = model.predict_interval(X[:20])
    found = model.predict_proba(X[:20])
    assert (lower <= found).all() and (found <= upper).all() and (upper - lower).mean() < 0.5


def test_predictions_are_averages_over_the_population(model):
    """By ten thousand persons drawn from the law of each of many draws."""
    _, X, _, _ = panel()
    some, posterior, rng = X[:6], model.posterior_, np.random.default_rng(0)
    mean, factor, fixed = posterior.flat()
    which = rng.integers(len(mean), size=20_000)
    b = mean[which] + np.einsum("skl,sl->sk", factor[which], rng.normal(size=(len(which), 2)))
    c = posterior.law.coefficients(b, fixed[which])
    utility = model._rows(some).Z @ posterior.to_standard @ c.T
    share = np.exp(utility.reshape(6, 3, -1) - logsumexp(utility.reshape(6, 3, -1), axis=1, keepdims=True))
    np.testing.assert_allclose(model.predict_proba(some), share.mean(axis=2), atol=0.015)
    shares = model.shares(some)
    np.testing.assert_allclose(shares["share"], share.mean(axis=(0, 2)), atol=0.015)
    assert (shares["lower"] <= shares["share"]).all() and (shares["share"] <= shares["upper"]).all()


def test_what_if(model):
    _, X, _, _ = panel()
    dear = ChoiceSets(**{**vars(X), "values": X.values + np.outer(X.alternative == 1, [3.0, 0.0])})
    before, after = (model.shares(each).set_index("alternative")["share"] for each in (X[:50], dear[:50]))
    assert after["car"] < before["car"] - 0.05 and after["bus"] > before["bus"]
    diversion = model.diversion(X[:20], "car")
    np.testing.assert_allclose(diversion["share"].sum(), 1, atol=1e-3)
    own = model.elasticities(X[:20], "price")
    assert (own.loc[own["of"] == own["alternative"], "elasticity"] < 0).all()


def test_willingness_to_pay_is_a_distribution(model):
    found = model.willingness_to_pay("time", "price").iloc[0]
    assert found["population_lower"] < found["lower"] < found["value"] < found["upper"] < found["population_upper"]
    assert abs(found["value"] - 0.1 * np.exp(0.7)) < 0.12
    with pytest.warns(UserWarning, match="% of the population have the opposite sign of 'time'"):
        model.willingness_to_pay("price", "time")
    with pytest.raises(ValueError, match=r"groups would be ignored: .* see tastes\(\)"):
        model.willingness_to_pay("time", "price", groups=np.zeros(3))


def test_integrated_log_likelihood_is_that_of_quadrature():
    _, X, y, who = panel(12, 4)
    model = fitted(X, y, who, features=Tastes(random=["time"], constants=False))
    mean, factor, fixed = model.posterior_.central()
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    b = mean[0] + factor[0, 0] * nodes
    chosen = X.chosen(y)
    utility = X.values @ np.vstack([np.full_like(b, fixed[0]), b])  # (entries, nodes)
    value = utility[chosen] - logsumexp(utility.reshape(len(X), 3, -1), axis=1)
    by_person = np.array([value[who == each].sum(axis=0) for each in np.unique(who)])
    expected = logsumexp(by_person, axis=1, b=weights / weights.sum()).sum()
    np.testing.assert_allclose(model.integrated_log_likelihood(X, y, who), expected, atol=0.02)
    alone = logsumexp(value, axis=1, b=weights / weights.sum()).sum()
    np.testing.assert_allclose(model.integrated_log_likelihood(X, y), alone, atol=0.02)


@pytest.mark.parametrize("named", [True, False], ids=["persons", "situations"])
def test_order_and_threads_do_not_matter(named, monkeypatch):
    _, X, y, who = panel(15, 4)
    order = np.random.default_rng(1).permutation(len(X))
    groups = who if named else None
    one = fitted(X, y, groups, draws=10)
    monkeypatch.setattr(taste_chains, "LARGE", 0)
    monkeypatch.setattr(taste_chains, "cores", lambda: 8)
    monkeypatch.setattr("plackett.tastes.panel.PIECE", 1 << 9)
    other = fitted(X[order], y[order], None if groups is None else who[order], draws=10)
    np.testing.assert_array_equal(one.trace_, other.trace_)
    np.testing.assert_array_equal(one.posterior_.persons, other.posterior_.persons)
    np.testing.assert_array_equal(one.group_labels_, other.group_labels_)


def test_a_checkpoint_goes_on(tmp_path):
    _, X, y, who = panel(10, 4)
    whole = fitted(X, y, who, draws=24)
    for draws in (8, 24):
        parts = fitted(X, y, who, draws=draws, checkpoint=tmp_path / "c")
    np.testing.assert_array_equal(whole.trace_, parts.trace_)
    np.testing.assert_array_equal(whole.posterior_.persons, parts.posterior_.persons)
    np.testing.assert_array_equal(whole.posterior_.factor, parts.posterior_.factor)


def test_draws_of_persons_are_thinned(monkeypatch, tmp_path):
    _, X, y, who = panel(10, 4)
    whole = fitted(X, y, who, draws=50)
    monkeypatch.setattr(taste_chains, "NUMBERS", 20 * 2 * 16)
    thinned = fitted(X, y, who, draws=50)
    assert whole.posterior_.every == 1 and thinned.posterior_.every == 4
    np.testing.assert_array_equal(thinned.posterior_.persons, whole.posterior_.persons[:, ::4])
    thinned.save(tmp_path / "m.plk")
    same = load(tmp_path / "m.plk")
    np.testing.assert_array_equal(same.predict_proba(X, groups=who), thinned.predict_proba(X, groups=who))
    pytest.importorskip("arviz")
    assert dict(thinned.to_arviz().posterior.sizes)["draw"] == 50
    raw = thinned.to_arviz(raw=True).posterior
    assert dict(raw.sizes)["draw"] == 13 and raw["beta"].dims == ("chain", "draw", "person", "attribute")
    assert thinned.to_arviz(X[:3], y[:3], groups=who[:3]).log_likelihood["y"].shape == (2, 13, 3)


def test_rankings_have_tastes():
    _, X, _, who = panel(12, 4)
    rng = np.random.default_rng(0)
    orders = [rng.permutation(["bus", "car", "walk"]).tolist() for _ in range(len(X))]
    R = Rankings.from_orders(orders)
    model = fitted(X, R, who, features=Tastes(random=["time"]))
    for groups in (None, who):
        assert (model.log_likelihood(X, R, groups=groups) < 0).all()
    assert model.posterior_.log_values(model._rows(X), model._observed(X, R)[1]).shape == (120, len(X))


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"inference": "em"}, "random tastes are drawn, by inference='gibbs'"),
        ({"inference": "variational"}, "random tastes are drawn, by inference='gibbs'"),
        ({"weights": "person"}, "weights='person' would be ignored"),
        ({"nests": {"wheels": ["bus", "car"]}}, "random tastes have no nests"),
        ({"shape": 0.5}, r"PlackettLuceChooser\(shape=0.5\) would be ignored"),
        ({"engine": "numpy"}, "compiled for situations in memory, not for engine='numpy'"),
        ({"inference": Gibbs(moves="none")}, r"Gibbs\(moves='none'\) would be ignored"),
        ({"features": Tastes(random=["comfort"])}, "Tastes names 'comfort', and the columns are"),
        ({"features": Tastes(random="price")}, r"Tastes\(random\) must be a list of names"),
        ({"features": Tastes(law={"price": "gamma"})}, "must be one of .*'-lognormal'"),
        ({"features": Tastes(random=["time"], law={"price": "lognormal"})}, "'price', which is not among random"),
        ({"features": Tastes(law={"price": "fixed", "time": "fixed"})}, "no coefficient is random"),
        ({"features": Tastes(constants=0.5)}, r"Tastes\(constants\) must be True or False"),
    ],
)
def test_refusals(settings, words):
    _, X, y, who = panel(5, 3)
    with pytest.raises(ValueError, match=words):
        PlackettLuceChooser(**{"features": Tastes(), **settings}).fit(X, y, groups=who)


def test_weights_and_flat_columns_are_refused():
    frame, X, y, who = panel(5, 3)
    with pytest.raises(ValueError, match="sample_weight and counts would be ambiguous"):
        PlackettLuceChooser(features=Tastes()).fit(X, y, groups=who, sample_weight=np.full(len(X), 2.0))
    flat = ChoiceSets.from_long(
        frame.assign(same=1.0), situation="trip", alternative="by", attributes=["price", "same"]
    )
    with pytest.raises(ValueError, match="'same' does not vary within any situation"):
        PlackettLuceChooser(features=Tastes()).fit(flat, y)
    with pytest.raises(ValueError, match="only random tastes have a law"):
        PlackettLuceChooser("em", features="linear").fit(X, y).population()


def test_command_line_and_report(tmp_path):
    frame, X, y, who = panel(12, 4)
    frame.to_csv(tmp_path / "trips.csv", index=False)
    keys = ("--situation", "trip", "--alternative", "by", "--choice", "taken", "--persons", "who")
    chains = ("--draws", "20", "--tune", "20", "--chains", "2", "--out", tmp_path / "m.plk")
    tastes = ("--random", "price,time", "--law", "price=-lognormal", "--correlated")
    result = plackett("fit", tmp_path / "trips.csv", *keys, *chains, *tastes)
    assert result.exit_code == 0, result.output
    assert "log-likelihood integrated over persons -" in result.stdout
    model = load(tmp_path / "m.plk")
    assert model.features.random == ["price", "time"] and model.features.law == LAWS and model.features.correlated
    assert "-lognormal" in plackett("show", tmp_path / "m.plk").stdout
    result = plackett("predict", tmp_path / "m.plk", tmp_path / "trips.csv", "--out", tmp_path / "p.csv")
    assert result.exit_code == 0, result.output
    found = pd.read_csv(tmp_path / "p.csv")["probability"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, model.predict_proba(X, groups=who), atol=1e-5)
    for wrong in (("--law", "price=odd"), ("--linear",)):
        again = plackett("fit", tmp_path / "trips.csv", *keys, *chains, *tastes, *wrong, "--force")
        assert again.exit_code == 2
    write_report(model, X, y, tmp_path / "r.html", groups=who)
    assert "law of tastes over the population" in (tmp_path / "r.html").read_text()


@pytest.mark.long
def test_agreement_with_nuts():
    """μ and ln σ of a small panel, against NUTS on its own density of the same model."""
    law = TasteLaw.of([0, 1], [0, 0], 2, False)
    made = panel_of(law, 25, seed=3)
    choose(
        made,
        law,
        np.random.default_rng(0).normal([1.0, -0.5], [1.0, 0.7], (25, 2)),
        np.empty(0),
        np.random.default_rng(1),
    )
    settings = Gibbs(draws=2500, tune=500).completed(draws=1, tune=1, max_draws=1)
    run = TasteRun(settings, Source(np.random.SeedSequence(1)), made, law, Clock())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        draws = run.run(1)
    own = np.concatenate([draws["mean"], np.log(deviations(draws["factor"]))], axis=2)
    packed, owner = made.packed, np.repeat(np.arange(25), np.diff(made.owned))
    other = nuts_tastes(packed.X, packed.outcomes.start, owner, 25, MEAN_SPREAD, SD_SCALE, draws=2500)
    for statistic in (lambda x: x, np.square, lambda x: (x > np.median(x, axis=(0, 1))) * 1.0):
        a, b = np.arctan(statistic(own)), np.arctan(statistic(other))
        error = np.sqrt(a.var(axis=(0, 1)) / measures(a)[1] + b.var(axis=(0, 1)) / measures(b)[1])
        assert (np.abs(a.mean(axis=(0, 1)) - b.mean(axis=(0, 1))) < 4.5 * error + 1e-12).all()


@pytest.mark.slow
@pytest.mark.parametrize("correlated", [False, True], ids=["independent", "correlated"])
def test_calibration(correlated, monkeypatch):
    """Simulation-based calibration (Talts et al. 2018): truths have uniform ranks among draws, over 200 panels."""
    law = TasteLaw.of([0, 1], [0, -1], 3, correlated)
    monkeypatch.setattr(PopulationPrior, "of", classmethod(lambda cls, law: small_prior(law)))
    rng, ranks = np.random.default_rng(11), []

    def read(mean, factor, fixed):
        rest = [correlations(factor)[..., 1, :1]] if correlated else []
        return np.concatenate([mean, np.log(deviations(factor)), fixed, *rest], axis=-1)

    for i in range(200):
        made, at = panel_of(law, 12, seed=100 + i), small_prior(law).draw(rng, 1)
        choose(made, law, at.mean + rng.normal(size=(12, 2)) @ at.factor.T, at.fixed, rng)
        settings = Gibbs(draws=1000, tune=300, chains=2).completed(max_draws=1)
        run = TasteRun(settings, Source(np.random.SeedSequence([12, i])), made, law, Clock())
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            draws = run.run(1)
        found = read(draws["mean"], draws["factor"], draws["fixed"])[:, ::10].reshape(200, -1)
        ranks.append(((found < read(*at)).sum(axis=0) + rng.random(found.shape[1])) / 201)
    assert min(kstest(column, "uniform").pvalue for column in np.array(ranks).T) > 0.001


def test_a_fixed_coefficient_that_the_data_leave_open_has_its_prior():
    """A level of which nobody had a car: its difference between car and the others is unknown, and all else is not."""
    rng = np.random.default_rng(0)
    wide = pd.DataFrame({f"cost_{a}": rng.uniform(1, 5, 200) for a in ("bus", "car", "walk")})
    wide["home"] = rng.choice(["city", "farm", "isle"], 200, p=[0.4, 0.4, 0.2])
    wide["there"], wide["always"] = (wide["home"] != "isle").astype(int), 1
    names = {"alternatives": ["bus", "car", "walk"], "attributes": ["cost"], "person": ["home"]}
    X = ChoiceSets.from_wide(wide, available={"car": "there"}, **names)
    y = choices(X, -X.values[:, 0], rng=1)
    short = Gibbs(draws=150, tune=150, chains=2)
    model = PlackettLuceChooser(short, features=Tastes(random=["cost"]), random_state=0)
    with pytest.warns(
        UserWarning, match=r"'home=isle: car' does not vary within .*; what the data leave open the prior decides"
    ):
        known = model.fit(X, y).population()
    width = known["mean_upper"] - known["mean_lower"]
    assert width["home=isle: car"] > 10 and width.drop("home=isle: car").max() < 5
    with pytest.raises(ValueError, match="'home=isle: car' does not vary within .*constants go with Tastes"):
        model.set_params(features=Tastes(random=["cost", "home=isle: car"])).fit(X, y)
