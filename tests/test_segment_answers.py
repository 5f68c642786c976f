"""Explanations of models with segments, intervals of worths after EM, and segments on the command line."""

import io
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

from commands import mistake, plackett
from model_kinds import STORED
from plackett import EM, Gibbs, PlackettLuceChooser, PlackettLuceRanker, Rankings, explain, load, plots
from plackett.data.observations import Observations
from plackett.linear import LinearUtility
from plackett.report import write_report
from plackett.responses import make_response
from plackett.segments import estimation, ranking_information
from plackett.segments.em import memberships
from plackett.segments.ranking_information import observed_information
from plackett.segments.rankings import rankings_of_persons
from test_cli_choices import usage
from test_segments import chooser, rankers, travellers

MODES = ["bus", "car", "walk"]


@pytest.fixture(scope="module")
def fitted():
    X, y, who, _ = travellers(n_persons=40, each=4)
    return {
        "em": chooser().fit(X, y, groups=who),
        "gibbs": fitted_quietly(chooser(Gibbs(draws=15, tune=10, chains=2)), X, y, who),
    }, X


def fitted_quietly(model, X, y, who):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(X, y, groups=who)


def by_quadrature(parameters, shares, z0, z1, k, nodes=4000):
    """Contributions (entries, d) to the log-odds of k in a mixture of logits, along the line from z0 to z1."""
    found, change = np.zeros_like(z0), z1 - z0
    for t in (np.arange(nodes) + 0.5) / nodes:
        p = np.exp((z0 + t * change) @ parameters.T).T
        p /= p.sum(axis=1, keepdims=True)
        q = shares @ p
        slope = -np.ones(len(q)) / (1 - q[k])  # of the log-odds in the probabilities
        slope[k] = 1 / q[k]
        rising = p * (slope - (p @ slope)[:, None]) * shares[:, None]
        found += np.einsum("ce,cf,ef->ef", rising, parameters, change) / nodes
    return found


@pytest.mark.parametrize("kind", ["em", "gibbs"])
def test_explanations_are_those_of_the_mixture_of_segments(fitted, kind):
    models, X = fitted
    model = models[kind]
    why = explain(model, X[3], prob=0.8)
    p = model.predict_proba(X[3])[0, MODES.index(why.attrs["class"])]
    np.testing.assert_allclose(why.attrs["reference"] + why["contribution"].sum(), np.log(p / (1 - p)), rtol=1e-6)
    design, draws = model.design_, model.posterior_.of_segments.all_draws()
    z0 = design.transform(design.average())
    z1 = model._entries(*model._one(X[3])).Z
    k = MODES.index(why.attrs["class"])
    parts = [by_quadrature(*each, z0, z1, k, 200) for each in zip(draws.parameters, draws.shares, strict=True)]
    line = why.set_index(["feature", "of"])
    if kind == "em":
        centre = by_quadrature(draws.parameters[0], draws.shares[0], z0, z1, k)
        spread = model.posterior_.spread_draws()
        assert (line["upper"] - line["lower"] > 0.01).all() and len(spread.shares) > 100
        for f, name in enumerate(["price", "time"]):
            np.testing.assert_allclose(line.loc[name]["contribution"][MODES], centre[:, f], rtol=1e-4)
        parts = [by_quadrature(*each, z0, z1, k, 50) for each in zip(spread.parameters, spread.shares, strict=True)]
    lower, upper = np.quantile(parts, [0.1, 0.9], axis=0)
    for f, name in enumerate(["price", "time"]):
        found = line.loc[name].loc[MODES]
        np.testing.assert_allclose(found["lower"], np.minimum(lower[:, f], found["contribution"]), rtol=0.02, atol=2e-3)
        np.testing.assert_allclose(found["upper"], np.maximum(upper[:, f], found["contribution"]), rtol=0.02, atol=2e-3)


def test_equal_segments_explain_as_one(fitted):
    models, X = fitted
    _, y, who, _ = travellers(n_persons=40, each=4)
    plain = PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(X, y, groups=who)
    model = models["em"]
    alone, best = explain(plain, X[5]), plain.posterior_.coefficients
    held = model.posterior_.of_segments.parameters
    before = held.copy()
    held[...] = best
    again = explain(model, X[5])
    held[...] = before
    assert again["feature"].tolist() == alone["feature"].tolist()
    np.testing.assert_allclose(again["contribution"], alone["contribution"], rtol=1e-6)


def test_explanations_are_drawn_and_in_the_report(fitted, tmp_path):
    models, X = fitted
    _, y, who, _ = travellers(n_persons=40, each=4)
    assert len(plots.contributions(models["em"], X[0]).patches) > 3
    write_report(models["em"], X, y, tmp_path / "r.html", groups=who)
    assert "Why? A few situations" in (tmp_path / "r.html").read_text(encoding="utf-8")


def persons_of(R, who, response="ranking", shape=1.5):
    person = None if who is None else np.unique(who, return_inverse=True)[1]
    seen = Observations.of_rankings(R.outcomes, R.item, make_response(response), len(R.items))
    return rankings_of_persons(seen, person, shape)


TIED = [[{"a", "b"}, "c", "d"], ["d", {"a", "c"}, "b"], ["b", "a"], ["c", "d", "a"]] * 5
SOME = [["a", "b", "c", "d"], ["d", "c"], ["b", "d", "a"], ["a", "b", "c", "d"]]
CASES = {
    "persons": (*rankers(n_persons=25)[:2], "ranking"),
    "counts": (Rankings.from_orders(SOME, unranked="absent"), None, "ranking"),
    "counts of persons": (
        Rankings.from_orders(SOME, unranked="absent", counts=[3, 1, 2, 1]),
        np.array([0, 0, 1, 1]),
        "ranking",
    ),
    "ties": (Rankings.from_orders(TIED, unranked="absent"), np.arange(20) // 3, "unknown-order"),
}


@pytest.mark.parametrize("case", CASES)
def test_information_of_worths_is_the_curvature_of_the_log_posterior(case, monkeypatch):
    monkeypatch.setattr(ranking_information, "NUMBERS", 30)  # three persons at a time
    R, who, response = CASES[case]
    persons, rng, (C, K) = persons_of(R, who, response), np.random.default_rng(1), (2, 4)
    x = rng.normal(size=(C, K))
    x -= logsumexp(x, axis=1, keepdims=True)
    logits = np.array([0.0, -0.4])
    log_shares = logits - logsumexp(logits)

    def log_posterior(q):
        x, shares = q[: C * K].reshape(C, K), np.append(0.0, q[C * K :])
        values = persons.values(x) + shares - logsumexp(shares)
        prior = (persons.shape - 1) * (x - logsumexp(x, axis=1, keepdims=True)).sum()
        return persons.counts @ logsumexp(values, axis=1) + prior - 0.5 * (x.sum(axis=1) ** 2).sum() / K

    place, steps = np.append(x.ravel(), logits[1:]), 1e-3 * np.eye(C * K + C - 1)
    expected = [
        [
            -sum(i * j * log_posterior(place + i * one + j * other) for i in (1, -1) for j in (1, -1)) / 4e-6
            for other in steps
        ]
        for one in steps
    ]
    found = observed_information(persons, x, log_shares, memberships(persons.values(x), log_shares)[0])
    np.testing.assert_allclose(found, expected, atol=2e-4 * np.abs(found).max())


@pytest.fixture(scope="module")
def ranked():
    R, who, _ = rankers(n_persons=80)
    return PlackettLuceRanker("em", shape=1.5, segments=2, random_state=0).fit(None, R, groups=who), R, who


def test_worths_after_em_have_intervals(ranked):
    model, R, who = ranked
    found = model.worth()
    assert (found["lower"] < found["log_worth"]).all() and (found["log_worth"] < found["upper"]).all()
    persons, place = persons_of(R, who), [list("abcd").index(item) for _, item in found.index]
    x, shares = model.posterior_.of_segments.parameters[0, 0], model.posterior_.of_segments.shares[0, 0]
    member = memberships(persons.values(x), np.log(shares))[0]
    covariance = np.linalg.inv(observed_information(persons, x, np.log(shares), member))
    logs = (x - x.mean(axis=1, keepdims=True))[np.repeat([0, 1], 4), place]
    np.testing.assert_allclose(found["log_worth"], logs, rtol=1e-9)
    np.testing.assert_allclose(found["worth"], np.exp(x)[np.repeat([0, 1], 4), place], rtol=1e-9)
    centre = np.kron(np.eye(2), np.eye(4) - 0.25)
    error = np.sqrt(np.diag(centre @ covariance[:8, :8] @ centre.T)).reshape(2, 4)
    expected = 2 * 1.645 * error[np.repeat([0, 1], 4), place]
    np.testing.assert_allclose(found["upper"] - found["lower"], expected, rtol=0.15)  # of 400 draws
    assert found["first"].between(0, 1).all() and (found["rank_lower"] <= found["rank_upper"]).all()
    assert (model.segments_["lower"] < model.segments_["share"]).all()
    wider = model.worth(prob=0.99)
    assert (wider["upper"] > found["upper"]).all()
    assert "with intervals from the curvature there" in repr(model) and "the mode of the posterior" in repr(model)


def test_intervals_after_em_are_about_those_of_draws(ranked):
    model, R, who = ranked
    drawn = PlackettLuceRanker(Gibbs(draws=600, tune=200, chains=2), shape=1.5, segments=2, random_state=0)
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        drawn.fit(None, R, groups=who)
    one, two = (each.worth().sort_index() for each in (model, drawn))
    ratio = (one["upper"] - one["lower"]) / (two["upper"] - two["lower"])
    assert ratio.between(0.75, 1.25).all()
    assert ((one["log_worth"] - two["log_worth"]).abs() < 0.5 * (two["upper"] - two["lower"])).all()


def test_the_estimate_predicts_and_draws_about_it_make_intervals(ranked, tmp_path):
    model, R, who = ranked
    x, shares = model.posterior_.of_segments.parameters[0, 0], model.posterior_.of_segments.shares[0, 0]
    p = model.predict_proba()
    np.testing.assert_allclose(p, shares @ np.exp(x - logsumexp(x, axis=1, keepdims=True)), rtol=1e-10)
    lower, upper = model.predict_interval()
    assert (lower < p).all() and (p < upper).all()
    model.save(tmp_path / "m.plk")
    again = load(tmp_path / "m.plk")
    assert again.worth().equals(model.worth()) and again.segments_.equals(model.segments_)
    write_report(model, None, R, tmp_path / "r.html")
    assert "5%" in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_where_there_are_no_intervals(monkeypatch):
    R = Rankings.from_orders([["a", "b", "c"], ["b", "a", "c"]] * 6)  # nobody places c above another
    model = PlackettLuceRanker(EM(max_iter=20_000), shape=1.0, segments=2, random_state=0)
    with pytest.warns(UserWarning, match="the worth of an item runs away: .* so that there are no intervals"):
        model.fit(None, R, groups=np.arange(12) // 3)
    assert model.worth()[["lower", "upper", "first", "rank"]].isna().all(axis=None)
    assert model.segments_["lower"].isna().all()
    with pytest.raises(ValueError, match="EM gives one estimate"):
        model.predict_interval()
    monkeypatch.setattr(estimation, "MOST", 5)
    R, who, _ = rankers(n_persons=20)
    many = PlackettLuceRanker("em", shape=1.5, segments=2, random_state=0).fit(None, R, groups=who)
    assert many.worth()["lower"].isna().all() and "one estimate without uncertainty" in repr(many)
    old = load(STORED / "v2-ranker-segments-em.plk")  # written before there were any
    assert old.worth()["lower"].isna().all()


KEYS = "--situation", "trip", "--alternative", "by", "--choice", "taken", "--attributes", "price,time"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A long table of two kinds of travellers, and tables of rankings of two kinds of judges."""
    folder = tmp_path_factory.mktemp("segments")
    X, y, who, _ = travellers(n_persons=40, each=5)
    long = pd.DataFrame(X.values, columns=["price", "time"]).assign(trip=X.situation, by=X.alternatives[X.alternative])
    long = long.assign(who=who[X.situation], taken=(long["by"] == y[X.situation]).astype(int))
    long.to_csv(folder / "trips.csv", index=False)
    R, judges, _ = rankers(n_persons=40)
    orders = pd.DataFrame(R.to_orders()).iloc[:, :3].map(lambda item: item if isinstance(item, str) else None)
    orders.assign(judge=judges).to_csv(folder / "orders.csv", index=False)
    return folder


def test_segments_of_choices_on_the_command_line(folder):
    made = "--linear", "--inference", "em", "--segments", "2", "--persons", "who", "--test", "0.2"
    said = plackett("fit", folder / "trips.csv", *KEYS, *made, "--out", folder / "m.plk")
    assert said.exit_code == 0, said.output
    model, frame = load(folder / "m.plk"), pd.read_csv(folder / "trips.csv")
    shares = model.segments_
    first = f"segment 1: share {shares.loc[1, 'share']:.3f}, from {shares.loc[1, 'lower']:.3f} to "
    assert first in said.stdout and "segment 2: share " in said.stdout and "held out, 40 situations" in said.stdout
    X, y = model.table_.choices(frame)
    held = model.table_.held_out(X.with_schema(model.schema_), y)
    who = model.table_.who(frame)
    fit = model.fit_statistics(X[~held], y[~held], groups=who[~held])
    assert f"log-likelihood {fit.log_likelihood:,.2f}, of constants alone" in said.stdout
    done = plackett("predict", folder / "m.plk", folder / "trips.csv")
    found = pd.read_csv(io.StringIO(done.stdout))["probability"].to_numpy().reshape(-1, 3)
    np.testing.assert_allclose(found, model.predict_proba(X, groups=who), rtol=1e-5)
    assert np.abs(found - model.predict_proba(X)).max() > 0.05  # known persons have memberships
    shown = plackett("show", folder / "m.plk").stdout
    assert "2 segments with shares" in shown and "price" in shown
    report = plackett("report", folder / "m.plk", folder / "trips.csv", "--out", folder / "r.html")
    assert report.exit_code == 0, report.output
    page = (folder / "r.html").read_text(encoding="utf-8")
    assert "Segments" in page and "Why? A few situations" in page


def test_the_number_and_columns_of_segments_on_the_command_line(folder):
    made = "--linear", "--inference", "em", "--segments", "auto", "--segments-by", "time", "--persons", "who"
    pd.read_csv(folder / "trips.csv").query("trip < 50").to_csv(folder / "few.csv", index=False)
    said = plackett("fit", folder / "few.csv", *KEYS, *made, "--out", folder / "auto.plk")
    assert said.exit_code == 0 and "number is chosen by the log-loss of a held-out person" in said.stdout, said.output
    model = load(folder / "auto.plk")
    assert model.segments.by == ["time"] and model.segments.count == "auto"
    one = plackett("fit", folder / "few.csv", *KEYS, *made[:4], "2", *made[5:], "--out", folder / "two.plk")
    assert one.exit_code == 0, one.output
    assert load(folder / "two.plk").coefficients().query("column == 'price'")["segment"].tolist() == ["all"]


def test_segments_of_rankings_on_the_command_line(folder):
    fast = "--inference", "em", "--shape", "1.5"
    read = "--table", "orders", "--unranked", "last"
    made = "--segments", "2", "--persons", "judge", "--out", folder / "q.plk"
    said = plackett("rank", folder / "orders.csv", *read, *made, *fast)
    assert said.exit_code == 0, said.output
    model, (R, judges, _) = load(folder / "q.plk"), rankers(n_persons=40)
    expected = PlackettLuceRanker("em", shape=1.5, segments=2, random_state=0).fit(None, R, groups=judges)
    assert model.worth().equals(expected.worth()) and model.table_.drop == ("judge",)
    assert f"segment 1: share {expected.segments_.loc[1, 'share']:.3f}, from " in said.stdout
    rows = [[cell.strip() for cell in line.strip("│ ").split("│")] for line in said.stdout.splitlines() if "│" in line]
    assert [(int(row[0]), row[1]) for row in rows] == expected.worth().index.tolist()
    assert plackett("report", folder / "q.plk", folder / "orders.csv", "--out", folder / "q.html").exit_code == 0
    alone = plackett("rank", folder / "orders.csv", *read, "--drop", "judge", "--segments", "2", *fast)
    assert alone.exit_code == 0 and "segment 2: share" in alone.stdout


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--segments", "2"), "--segments is for linear utilities: give --linear, too, without --random"),
        (("--random", "time", "--segments", "2"), "--segments is for linear utilities: give --linear, too"),
        (("--linear", "--segments-by", "time"), "--segments-by is about --segments: say how many"),
        (("--linear", "--segments", "none"), "--segments must be a whole number of at least 1, or auto, got 'none'"),
        (("--linear", "--segments", "0"), "--segments must be a whole number of at least 1, or auto, got '0'"),
    ],
)
def test_options_of_segments_that_do_not_apply_are_refused(folder, options, words):
    assert words in usage("fit", folder / "trips.csv", *KEYS, *options, "--out", folder / "x.plk")


def test_other_options_of_segments_that_are_refused(folder):
    usual = "--linear", "--inference", "em", "--segments", "2", "--out", folder / "x.plk"
    assert "segments have no nests" in mistake("fit", folder / "trips.csv", *KEYS, "--nest", "dry=bus,car", *usual)
    line = mistake("fit", folder / "trips.csv", *KEYS, "--segments-by", "tme", *usual)
    assert "Segments(by) names 'tme'" in line
    classes = usage("fit", folder / "trips.csv", "--target", "by", "--segments-by", "time", "--out", folder / "x.plk")
    assert "--segments-by is for choices and --target for classes" in classes
    ranks = usage("rank", folder / "orders.csv", "--table", "orders", "--persons", "judge")
    assert "--persons is about --segments" in ranks
    ranks = usage("rank", folder / "all.soc", "--segments", "2", "--persons", "judge")
    assert "--persons is for tables (--table)" in ranks
    missing = pd.read_csv(folder / "orders.csv")
    missing.loc[3, "judge"] = None
    missing.to_csv(folder / "missing.csv", index=False)
    read = "--table", "orders", "--unranked", "last", "--segments", "2"
    line = mistake("rank", folder / "missing.csv", *read, "--persons", "judge", notes=False)
    assert "column 'judge' has no person in row 3, counted from 0" in line
