"""Published studies reproduced: conditional logit of real choices, and rank-ordered logit."""

import numpy as np
import pandas as pd
import pytest

from plackett import ChoiceSets, PlackettLuceChooser, Rankings, Segments, Tastes
from plackett.linear import LinearUtility

MODES = {"train": "TRAIN", "swissmetro": "SM", "car": "CAR"}
PLATFORMS = ["Xbox", "PlayStation", "PSPortable", "GameCube", "GameBoy", "PC"]


@pytest.fixture(scope="module")
def swissmetro(folder):
    """As Biogeme's examples take it: commuters and business, times and costs in hundreds, cost 0 with a GA."""
    frame = pd.read_csv(folder / "swissmetro.csv.gz")
    frame = frame[frame["PURPOSE"].isin([1, 3]) & (frame["y"] != "unknown")].reset_index(drop=True)
    wide = pd.DataFrame({"y": frame["y"]})
    for name, part in MODES.items():
        wide[f"time_{name}"] = frame[f"{part}_TT"] / 100
        free = (frame["GA"] == 1) & (name != "car")
        wide[f"cost_{name}"] = np.where(free, 0.0, frame[f"{part}_CO"] / 100)
        wide[f"there_{name}"] = frame[f"{part}_AV"] * (frame["SP"] != 0)
    X = ChoiceSets.from_wide(wide, alternatives=list(MODES), attributes=["time", "cost"], available="there")
    return X, wide["y"].to_numpy(), frame["ID"].to_numpy()


@pytest.mark.data
def test_swissmetro_as_biogeme_has_it(swissmetro):
    """Biogeme 3.3.2's first example: −5331.252, ASC_CAR −.155, ASC_TRAIN −.701, B_COST −1.08, B_TIME −1.28."""
    X, y, person = swissmetro
    model = PlackettLuceChooser("em", features=LinearUtility(base="swissmetro")).fit(X, y, groups=person)
    found = model.fit_statistics(X, y)
    assert found.n == 6768
    np.testing.assert_allclose(found.log_likelihood, -5331.252, atol=1e-3)
    np.testing.assert_allclose(found.null, -6964.663, atol=1e-3)
    table = model.coefficients().set_index("column")
    named = ["constant: car", "constant: train", "cost", "time"]
    np.testing.assert_allclose(table.loc[named, "coefficient"], [-0.155, -0.701, -1.08, -1.28], atol=5e-3)
    robust = model.coefficients(errors="robust").set_index("column")["std_error"]
    np.testing.assert_allclose(robust[named], [0.0582, 0.0826, 0.0682, 0.104], rtol=0.01)
    by_person = model.coefficients(errors="person").set_index("column")["std_error"]
    assert (by_person > table["std_error"]).all()  # nine choices of a person are no nine persons


@pytest.mark.data
def test_segments_of_swissmetro_as_biogeme_has_them(swissmetro):
    """Biogeme's discrete mixture, each choice by itself: −5208.498; one class attends to time (−2.80), .749 of all."""
    X, y, _ = swissmetro
    features, by = LinearUtility(base="swissmetro"), {"by": ["time"]}
    model = PlackettLuceChooser("em", features=features, segments=Segments(2, **by, ignored=["time"]), random_state=0)
    model.fit(X, y)
    found = model.fit_statistics(X, y)
    np.testing.assert_allclose(found.log_likelihood, -5208.498, atol=2e-3)
    assert found.parameters == 5
    table = model.coefficients().set_index("column")
    named = ["constant: train", "constant: car", "cost", "time"]
    np.testing.assert_allclose(table.loc[named, "coefficient"], [-0.398, 0.125, -1.26, -2.80], atol=6e-3)
    np.testing.assert_allclose(model.segments_["share"], [0.749, 0.251], atol=1e-3)
    free = PlackettLuceChooser("em", features=features, segments=Segments(2, **by), random_state=0).fit(X, y)
    assert -5208.498 < free.fit_statistics(X, y).log_likelihood < -5206


@pytest.mark.data
def test_the_posterior_of_swissmetro(swissmetro):
    X, y, _ = swissmetro
    best, drawn = (
        PlackettLuceChooser(inference, features="linear", random_state=0).fit(X, y) for inference in ("em", "gibbs")
    )
    one, other = best.coefficients(), drawn.coefficients()
    assert other["rhat"].max() <= 1.01
    error = one["std_error"] / np.sqrt(other["ess"])
    assert (np.abs(other["mean"] - one["coefficient"]) < 5 * error + 0.02 * one["std_error"]).all()
    np.testing.assert_allclose(other["sd"], one["std_error"], rtol=0.1)


@pytest.mark.data
def test_platforms_as_mlogit_has_them(folder):
    """The rank-ordered logit of mlogit's vignette: own .96337 (.19040), with hours and age by platform."""
    frame = pd.read_csv(folder / "game_platforms.csv")
    own = frame[[f"own_{name}" for name in PLATFORMS]].to_numpy()
    columns = pd.DataFrame(own, columns=[f"own_{name}" for name in PLATFORMS]).assign(
        age=frame["age"], hours=frame["hours"]
    )
    X = ChoiceSets.from_wide(columns, alternatives=PLATFORMS, attributes=["own"], person=["hours", "age"])
    ranks = frame[[f"rank_{name}" for name in PLATFORMS]].set_axis(PLATFORMS, axis=1)
    R = Rankings.from_ranks(ranks, unranked="last")
    model = PlackettLuceChooser("em", features=LinearUtility(base="PC")).fit(X, R)
    table = model.coefficients().set_index("column")
    np.testing.assert_allclose(
        table.loc["own", ["coefficient", "std_error"]].astype(float), [0.96337, 0.19040], atol=2e-5
    )


def mixed(X, y, persons, published, within=2.0, **settings):
    """A model of random tastes whose law has converged, and whose integrated log-likelihood is the published one."""
    model = PlackettLuceChooser(features=Tastes(**settings), random_state=1).fit(X, y, groups=persons)
    assert model.diagnostics_.worst_rhat <= 1.01
    value = model.integrated_log_likelihood(X, y, persons)
    assert published - within < value, value
    return model, value


@pytest.mark.data
def test_tastes_of_anglers_as_xlogit_has_them(folder):
    """Normal tastes for price and catch, no constants: −1300.5; price −.0274 (.0105), catch 1.33 (1.57)."""
    frame = pd.read_csv(folder / "fishing.csv")
    alternatives = ["beach", "pier", "boat", "charter"]
    X = ChoiceSets.from_wide(frame, alternatives=alternatives, attributes=["price", "catch"])
    model, value = mixed(X, frame["y"].to_numpy(), None, -1300.5, constants=False)
    assert value < -1298.5
    law = model.population()
    assert abs(law.loc["price", "mean"] + 0.0274) < 0.003 and abs(law.loc["catch", "mean"] - 1.33) < 0.25


@pytest.mark.data
def test_taste_for_time_as_biogeme_has_it(swissmetro):
    """Each choice by itself: −5213.73 at the maximum; Bayesian mean −2.28 (.118), deviation 1.69 (.14)."""
    X, y, _ = swissmetro
    model, value = mixed(X, y, None, -5213.73, random=["time"])
    assert value < -5213.73 + 0.5  # the average is not above the maximum
    time = model.population().loc["time"]
    assert abs(time["mean"] + 2.28) < 0.06 and abs(time["sd"] - 1.69) < 0.08


@pytest.mark.data
@pytest.mark.parametrize("correlated", [False, True], ids=["independent", "correlated"])
def test_tastes_of_electricity(folder, correlated):
    """Six normals: xlogit's maximum of the log-likelihood simulated by 600 points is −3888.41, which is too low."""
    frame = pd.read_csv(folder / "electricity.csv.gz")
    names = {"situation": "chid", "alternative": "alt", "attributes": ["pf", "cl", "loc", "wk", "tod", "seas"]}
    X, y = ChoiceSets.read_choices(frame, choice="choice", **names)
    persons = frame.groupby("chid", sort=False)["id"].first().to_numpy()
    model, value = mixed(X, y, persons, -3888.41, constants=False, correlated=correlated)
    law = model.population()
    expected = [-0.97, -0.20, 2.26, 1.60, -9.4, -9.6]  # of the independent law, by xlogit
    if not correlated:
        np.testing.assert_allclose(law["mean"], expected, rtol=0.25)
    else:
        assert value > -3888.41 + 150
    known, new = (model.log_likelihood(X, y, groups=groups).sum() for groups in (persons, None))
    assert known > value > new  # who has chosen is known
