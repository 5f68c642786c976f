"""Published studies reproduced: conditional logit of real choices, and rank-ordered logit."""

import numpy as np
import pandas as pd
import pytest

from plackett import ChoiceSets, PlackettLuceChooser, Rankings
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
