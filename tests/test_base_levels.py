"""Base levels: linear utilities leave the first level of a text out and say so; unknown levels count as average."""

import io

import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from commands import plackett
from plackett import EM, ChoiceSets, Gibbs, PlackettLuceChooser, Rankings, Segments, Tastes, load
from plackett.data.base_levels import with_seen_levels
from plackett.data.columns import TableWarning
from plackett.data.long_table import random_situations
from plackett.directions import LearnedDirections
from plackett.linear import LinearUtility
from plackett.linear.likelihood import evaluate, pack_linear
from plackett.linear.newton import maximise
from plackett.report import write_report

MODES = ["bus", "car", "walk"]
SEATS = {"best": 1.0, "good": 0.5, "poor": -1.0}
HOMES = {"city": 0.0, "farm": 0.8, "town": -0.4}
UTILITY = LinearUtility(base="bus")


def table(n=240, seed=0):
    """A wide table with texts of alternatives and persons, and choices."""
    rng = np.random.default_rng(seed)
    wide = pd.DataFrame({f"seat_{a}": rng.choice(list(SEATS), n, p=[0.2, 0.5, 0.3]) for a in MODES})
    for a in MODES:
        wide[f"cost_{a}"] = rng.uniform(1, 5, n).round(2)
    wide["home"] = rng.choice(list(HOMES), n, p=[0.5, 0.3, 0.2])
    utility = np.column_stack([wide[f"seat_{a}"].map(SEATS) - wide[f"cost_{a}"] / 2 for a in MODES])
    utility[:, 1] += wide["home"].map(HOMES)
    return wide, np.array(MODES)[np.argmax(utility + rng.gumbel(size=utility.shape), axis=1)]


def sets(wide):
    return ChoiceSets.from_wide(wide, alternatives=MODES, attributes=["seat", "cost"], person=["home"])


def by_hand(wide, levels=("best", "good", "poor"), homes=("city", "farm", "town")):
    """Columns of the entries as R codes them: constants, levels but the first, cost, homes but the first by mode."""
    n = len(wide)
    seat, cost = (np.stack([wide[f"{name}_{a}"] for a in MODES], axis=1).ravel() for name in ("seat", "cost"))
    marks = np.tile(np.eye(3)[:, 1:], (n, 1))
    home = np.repeat(wide["home"].to_numpy(), 3)
    dummies = np.column_stack([*(seat == level for level in levels[1:]), cost]).astype(float)
    return np.column_stack([marks, dummies, *((home == h) * marks[:, k] for k in (0, 1) for h in homes[1:])])


def maximum(columns, X, y):
    """Coefficients and log-likelihood of conditional logit of these columns."""
    outcomes = Rankings.from_orders([[label] for label in y], items=MODES, unranked="last").outcomes
    chosen = X.chosen(y)
    order = np.lexsort((np.arange(len(columns)) != chosen[X.situation], X.situation))
    found = maximise(pack_linear(columns[order], outcomes), 0.0)
    return found.beta, evaluate(pack_linear(columns[order], outcomes), found.beta).value


@pytest.fixture(scope="module")
def fitted():
    wide, y = table()
    X = sets(wide)
    return PlackettLuceChooser("em", features=UTILITY).fit(X, y), wide, X, y


def test_coefficients_are_those_of_levels_against_the_first(fitted):
    model, wide, X, y = fitted
    beta, value = maximum(by_hand(wide), X, y)
    found = model.coefficients().set_index("column")["coefficient"]
    homes = ["home=farm: car", "home=town: car", "home=farm: walk", "home=town: walk"]
    assert found.index.tolist() == ["constant: car", "constant: walk", "seat=good", "seat=poor", "cost", *homes]
    np.testing.assert_allclose(found, beta, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.log_likelihood(X, y).sum(), value, rtol=1e-10)
    assert model.fit_statistics(X, y).parameters == 9


def test_the_model_does_not_depend_on_which_level_is_first(fitted):
    model, wide, X, y = fitted
    renamed = wide.replace({"best": "z"}).replace({"city": "z"})
    other = PlackettLuceChooser("em", features=UTILITY).fit(sets(renamed), y)
    np.testing.assert_allclose(other.predict_proba(sets(renamed)), model.predict_proba(X), rtol=1e-6)
    one, two = (each.coefficients().set_index("column")["coefficient"] for each in (model, other))
    np.testing.assert_allclose(two["seat=z"], -one["seat=good"], rtol=1e-6)
    np.testing.assert_allclose(two["seat=poor"], one["seat=poor"] - one["seat=good"], rtol=1e-6)


def test_base_levels_are_named_wherever_coefficients_are_printed(fitted, tmp_path):
    model, _, X, y = fitted
    said = "Coefficients of texts are differences from the base levels seat: best, home: city"
    assert "base levels seat: best, home: city" in repr(model)
    found = model.coefficients()
    assert found.attrs["base_levels"] == {"seat": "best", "home": "city"}
    assert repr(found).startswith(said + "\n") and found._repr_html_().startswith(f"<p>{said}</p>")
    assert rf"\multicolumn{{7}}{{l}}{{{said}}} \\" in found.to_latex() and found.to_latex().count("bottomrule") == 1
    assert "base levels" not in repr(found.head())  # a part of it is plain
    assert "base levels seat: best" in str(model.summary())
    write_report(model, X, y, tmp_path / "r.html")
    assert f"{said}." in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_numbers_have_no_base_level():
    wide, y = table(120)
    X = ChoiceSets.from_wide(wide, alternatives=MODES, attributes=["cost"])
    model = PlackettLuceChooser("em", features="linear").fit(X, y)
    assert "base level" not in repr(model) and model.coefficients().attrs["base_levels"] == {}
    assert (
        repr(model.coefficients()).lstrip().startswith("column")
        and "multicolumn" not in model.coefficients().to_latex()
    )
    assert with_seen_levels(X) is X


def test_an_unknown_level_is_the_average_and_not_the_base_level(fitted):
    model, wide, X, y = fitted
    new = wide.head(4).copy()
    new.loc[0, "seat_car"], new.loc[1, "home"] = "velvet", "boat"
    with pytest.warns(TableWarning) as caught:
        p = model.predict_proba(sets(new))
    assert {str(each.message).split(":")[0] for each in caught} == {
        "column 'seat' has 1 value that did not occur in training, such as 'velvet'",
        "column 'home' has 1 value that did not occur in training, such as 'boat'",
    }
    columns, beta = by_hand(wide.head(4)), model.coefficients()["coefficient"].to_numpy()
    seats = pd.concat([wide[f"seat_{a}"] for a in MODES]).value_counts(normalize=True)
    homes = wide["home"].value_counts(normalize=True)
    columns[1, 2:4] = seats["good"], seats["poor"]
    columns[4, 5:7], columns[5, 7:9] = (homes[["farm", "town"]].to_numpy(),) * 2
    utility = np.exp((columns @ beta).reshape(4, 3))
    np.testing.assert_allclose(p, utility / utility.sum(axis=1, keepdims=True), rtol=1e-6)
    based = wide.head(4).assign(seat_car=["best", *wide["seat_car"][1:4]])
    assert np.abs(p[0] - model.predict_proba(sets(based))[0]).max() > 0.02


def test_levels_that_the_situations_of_a_fit_lack_are_unknown():
    """As in the folds of a cross-validation: the choice sets know a level that none of these situations has."""
    wide, y = table(300)
    X, some = sets(wide), ~wide[[f"seat_{a}" for a in MODES]].eq("best").any(axis=1).to_numpy()
    model = PlackettLuceChooser("em", features=UTILITY).fit(X[some], y[some])
    assert model.coefficients().attrs["base_levels"]["seat"] == "good"
    beta, _ = maximum(by_hand(wide[some], levels=("good", "poor")), X[some], y[some])
    np.testing.assert_allclose(model.coefficients()["coefficient"], beta, rtol=1e-6, atol=1e-9)
    with pytest.warns(TableWarning, match="'seat' has .* values that did not occur in training, such as 'best'"):
        model.predict_proba(X)
    weighted = PlackettLuceChooser("em", features=UTILITY)
    with pytest.warns(TableWarning, match="such as 'best'"):
        weighted.fit(X, y, sample_weight=some.astype(float))
    np.testing.assert_allclose(weighted.coefficients()["coefficient"], beta, rtol=1e-6, atol=1e-9)
    rare = wide.assign(seat_bus=["first class", *wide["seat_bus"][1:]])
    with pytest.warns(TableWarning, match="such as 'first class'"):
        scores = cross_val_score(PlackettLuceChooser("em", features=LinearUtility(spread=10)), sets(rare), y, cv=3)
    assert np.isfinite(scores).all()


def test_a_text_with_one_level_has_no_coefficient():
    wide, y = table(120)
    X = sets(wide.assign(home="farm"))
    assert not any("home" in name for name in PlackettLuceChooser("em", features=UTILITY).fit(X, y).design_.names_)


def test_by_alternative_the_base_level_is_one_that_the_alternative_has():
    wide, y = table()
    wide["seat_car"] = wide["seat_car"].replace({"best": "good"})
    model = PlackettLuceChooser("em", features=UTILITY, weights="alternative").fit(sets(wide), y)
    assert model.coefficients().attrs["base_levels"] == {"seat": "best (car: good)", "home": "city"}
    names = [name for name in model.design_.names_ if name.startswith("seat")]
    assert names == ["seat=good: bus", "seat=good: walk", "seat=poor: bus", "seat=poor: car", "seat=poor: walk"]
    plain = ChoiceSets.from_wide(wide, alternatives=MODES, attributes=["seat", "cost"])
    free = PlackettLuceChooser("em", features=LinearUtility(constants=False), weights="alternative").fit(plain, y)
    assert "seat=good: car" in free.design_.names_ and "seat=best: bus" not in free.design_.names_


@pytest.mark.filterwarnings("ignore:the dissimilarity of 'dry' is at its bound")
@pytest.mark.parametrize("settings", [{"nests": {"dry": ["bus", "car"]}}, {"segments": Segments(2, by=["cost"])}])
def test_nests_and_segments_have_base_levels(settings, tmp_path):
    wide, y = table()
    X = sets(wide)
    model = PlackettLuceChooser("em", features="linear", random_state=0, **settings).fit(X, y)
    found = model.coefficients()
    assert "seat=best" not in found["column"].tolist() and {"seat=good", "seat=poor"} <= set(found["column"])
    assert "base levels seat: best, home: city" in repr(model) and repr(found).startswith("Coefficients of texts")
    assert np.isfinite(model.willingness_to_pay("seat=good", "cost")["value"]).all()
    with pytest.raises(ValueError, match="'seat=best' is a base level, whose coefficient is 0: name another level"):
        model.willingness_to_pay("seat=best", "cost")
    model.save(tmp_path / "m.plk")
    assert np.array_equal(load(tmp_path / "m.plk").predict_proba(X), model.predict_proba(X))


@pytest.mark.filterwarnings("ignore:EM did not converge")
def test_segments_may_differ_in_a_text():
    wide, y = table(100)
    segments = Segments(2, by=["seat", "cost"], ignored=["seat"], starts=2)
    weak = LinearUtility(spread=2)
    model = PlackettLuceChooser(EM(max_iter=5), features=weak, segments=segments, random_state=0).fit(sets(wide), y)
    found = model.coefficients()
    of_all = found.loc[found["segment"] == "all", "column"].tolist()
    assert not any(name.startswith(("seat", "cost")) for name in of_all) and "home=farm: car" in of_all
    assert found["column"].tolist().count("seat=good") == 1  # one of the segments ignores it
    assert model.segments.by == ["seat", "cost"]


def test_random_tastes_have_base_levels():
    wide, y = table(150)
    model = PlackettLuceChooser(Gibbs(draws=20, tune=20, chains=2), features=Tastes(), random_state=0)
    found = model.fit(sets(wide), y).population()
    assert found.index[:3].tolist() == ["seat=good", "seat=poor", "cost"] and (found["law"][:3] == "normal").all()
    assert found.attrs["base_levels"] == {"seat": "best", "home": "city"} and "seat: best" in repr(found)
    assert found.to_latex().splitlines()[2].startswith("attribute & law & mean")
    assert "base levels seat: best, home: city" in repr(model)
    law = {"seat": "normal", "home": "fixed"}
    some = model.set_params(features=Tastes(random=["seat"], law=law)).fit(sets(wide), y).population()
    assert some.index[(some["law"] == "normal")].tolist() == ["seat=good", "seat=poor"]
    of_home = model.set_params(features=Tastes(random=["home"])).fit(sets(wide), y).population()
    assert of_home.index[(of_home["law"] == "normal")].str.startswith("home=").all() and (of_home["sd"] > 0).sum() == 4
    with pytest.raises(ValueError, match="Tastes names 'seat=best', and the columns are constant: car"):
        model.set_params(features=Tastes(random=["seat=best"])).fit(sets(wide), y)


def test_learned_directions_keep_all_levels():
    wide, y = table(100)
    features = LearnedDirections(components=1, bend="none")
    model = PlackettLuceChooser(EM(max_iter=100, cv=2), features=features).fit(sets(wide), y)
    assert {"seat=best", "home=city"} <= set(model.design_.names_)


def test_effects_and_explanations_compare_levels(fitted):
    model, _, X, _ = fitted
    found = model.effects(X)
    lines = ["cost", "home: farm vs city", "home: town vs city", "seat: best vs good", "seat: poor vs good"]
    assert sorted(found["attribute"].unique()) == lines
    own = found[(found["of"] == found["alternative"]) & (found["attribute"] == "seat: best vs good")]
    assert (own["effect"] > 0).all()  # though its coefficient is 0


def test_the_command_line_takes_texts(tmp_path):
    wide, y = table(200)
    parts = [
        pd.DataFrame(
            {"trip": wide.index, "by": a, "seat": wide[f"seat_{a}"], "cost": wide[f"cost_{a}"], "taken": y == a}
        )
        for a in MODES
    ]
    long = pd.concat(parts).sort_values(["trip", "by"], kind="stable")
    long["taken"] = long["taken"].astype(int)
    held = np.flatnonzero(random_situations(200, 0.3, 0, None))
    long.loc[(long["trip"] == held[0]) & (long["by"] == "bus"), "seat"] = "a stool"
    long.to_csv(tmp_path / "t.csv", index=False)
    keys = "--situation", "trip", "--alternative", "by", "--choice", "taken", "--attributes", "seat,cost", "--linear"
    made = "--inference", "em", "--test", "0.3", "--out", tmp_path / "m.plk"
    said = plackett("fit", tmp_path / "t.csv", *keys, *made)
    assert said.exit_code == 0 and "base level seat: best" in said.stdout, said.output
    assert "base level seat: best" in plackett("show", tmp_path / "m.plk").stdout
    done = plackett("predict", tmp_path / "m.plk", tmp_path / "t.csv")
    assert done.exit_code == 0 and "60 situations: " in done.stderr  # those of the fit are recognised
    p = pd.read_csv(io.StringIO(done.stdout)).groupby("trip")["probability"].sum()
    np.testing.assert_allclose(p, 1, atol=1e-5)
    assert plackett("report", tmp_path / "m.plk", tmp_path / "t.csv", "--out", tmp_path / "r.html").exit_code == 0
