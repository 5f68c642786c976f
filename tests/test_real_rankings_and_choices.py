"""Rankings and choices that do not come with the package, as their files hold them."""

import numpy as np
import pandas as pd
import pytest

from conftest import situation_rows
from plackett import ChoiceSets, Rankings
from plackett.data.observations import Situations
from plackett.model.race import Weights
from plackett.responses import make_response

pytestmark = pytest.mark.data


def log_likelihood(R, log_worth):
    seen = Situations(R.outcomes, R.item, np.zeros(len(R.item), dtype=np.int64))
    rows = situation_rows("auto", np.ones((1, 1)), seen, make_response("ranking"), len(R.items))
    return rows.value(Weights.point(np.asarray(log_worth, dtype=float)[:, None]))


def test_dublin_north(folder):
    """R PlackettLuce 0.3.2, unranked absent: −231,755.88 at its log-worths, which are given to 1e-6."""
    R = Rankings.read_preflib(folder / "dublin_north.soi", unranked="absent")
    assert (len(R), R.counts.sum(), len(R.items), R.tied) == (19299, 43942, 12, False)
    more = R[np.diff(R.outcomes.start) > 1]
    assert (len(more), more.counts.sum()) == (19287, 42254)
    worth = [0, 0.336453, -0.354040, 0.498944, -0.248924, 0.531167, 0.326055, -0.446561, 0.516103, 0.525065]
    assert log_likelihood(R, [*worth, -0.584583, 0.398722]) == pytest.approx(-231755.88, abs=0.006)
    last = Rankings.read_preflib(folder / "dublin_north.soi", unranked="last")
    assert (np.diff(last.outcomes.start) == 12).all() and len(last.components()) == len(R.components()) == 1


def test_nascar(folder):
    R = Rankings.from_orders(pd.read_csv(folder / "nascar2002.csv"), unranked="absent")
    assert (len(R), len(R.items), len(R.item)) == (36, 87, 36 * 43)
    parts = R.components()
    assert len(parts[0]) == 83
    assert sorted(parts[1:]) == [["Andy Hillenburg"], ["Gary Bradberry"], ["Jason Hedlesky"], ["Randy Renfrow"]]


def test_puddings(folder):
    frame = pd.read_csv(folder / "pudding.csv")
    R = Rankings.from_pairs(
        np.concatenate([frame["i"], frame["j"], frame["i"]]),
        np.concatenate([frame["j"], frame["i"], frame["j"]]),
        ties=np.repeat([False, False, True], 15),
        counts=np.concatenate([frame["wins_i"], frame["wins_j"], frame["ties"]]),
    )
    assert R.tied and R.items.tolist() == [1, 2, 3, 4, 5, 6]
    assert R.counts.sum() == frame[["wins_i", "wins_j", "ties"]].to_numpy().sum()
    assert len(R.components()) == 1


def test_beans_sushi_and_games(folder):
    beans = pd.read_csv(folder / "beans.csv")
    R = Rankings.from_orders(beans[["rank1", "rank2", "rank3"]], unranked="absent")
    assert (len(R), len(R.items)) == (842, 10) and (np.diff(R.outcomes.start) == 3).all()
    sushi = pd.read_csv(folder / "sushi" / "sushi3a_orders.csv")
    R = Rankings.from_orders(sushi)
    assert (len(R), len(R.items)) == (5000, 10)
    np.testing.assert_array_equal(R.item.reshape(5000, 10), sushi.to_numpy())
    assert np.bincount(R.item[R.outcomes.start[:-1]])[7] == 1713  # toro is the first choice of so many
    games = pd.read_csv(folder / "game_platforms.csv")
    ranks = games.filter(like="rank_").rename(columns=lambda name: name.removeprefix("rank_"))
    R = Rankings.from_ranks(ranks)
    assert R.to_orders()[0] == ["PlayStation", "Xbox", "PSPortable", "PC", "GameCube", "GameBoy"]


WIDE = {
    "travelmode.csv": (["air", "bus", "car", "train"], "_", ("wait", "vcost", "travel", "gcost"), ["income", "size"]),
    "fishing.csv": (["beach", "pier", "boat", "charter"], "_", ("price", "catch"), ["income"]),
    "heating.csv": (["gc", "gr", "ec", "er", "hp"], ".", ("ic", "oc"), ["income", "agehed", "rooms", "region"]),
    "train.csv": ([1, 2], "", ("price", "time", "change", "comfort"), []),
}
CHOICE = {"heating.csv": "depvar", "train.csv": "choice"}


@pytest.mark.parametrize("name", WIDE)
def test_wide_choices(folder, name):
    alternatives, sep, attributes, person = WIDE[name]
    frame = pd.read_csv(folder / name)
    X = ChoiceSets.from_wide(frame, alternatives=alternatives, sep=sep, person=person)
    assert len(X) == len(frame) and X.attributes == attributes and X.available.all()
    y = frame[CHOICE.get(name, "y")]
    if name == "train.csv":
        y = y.str.removeprefix("choice").astype(int)
    entry = X.chosen(y)
    assert X.alternatives[X.alternative[entry]].tolist() == y.tolist()
    row = 17
    assert X.values[entry[row], 0] == frame[f"{attributes[0]}{sep}{y[row]}"][row]
    if name == "heating.csv":
        assert [column for column in X.person if "region=" in column] == [
            f"region={level}" for level in sorted(frame["region"].unique())
        ]


def test_swissmetro(folder):
    frame = pd.read_csv(folder / "swissmetro.csv.gz")
    frame = frame[frame["y"] != "unknown"].reset_index(drop=True)
    X = ChoiceSets.from_wide(frame, alternatives=["TRAIN", "SM", "CAR"], available="AV", person=["PURPOSE", "AGE"])
    assert X.attributes == ("TT", "CO") and len(X) == 10719
    np.testing.assert_array_equal(X.available[:, 2], frame["CAR_AV"] == 1)
    y = frame["y"].map({"train": "TRAIN", "swissmetro": "SM", "car": "CAR"})
    assert (X.values[X.chosen(y), 0] > 0).all()
    with pytest.raises(ValueError, match="'HE' has no column 'CAR_HE'"):
        ChoiceSets.from_wide(frame, alternatives=["TRAIN", "SM", "CAR"], attributes=["HE"])


def test_electricity(folder):
    frame = pd.read_csv(folder / "electricity.csv.gz")
    X, y = ChoiceSets.read_choices(
        frame, situation="chid", alternative="alt", choice="choice", attributes=["pf", "cl", "loc", "wk", "tod", "seas"]
    )
    assert len(X) == 4308 and X.available.all()
    marked = frame[frame["choice"]].set_index("chid")
    assert y.tolist() == marked["alt"].loc[X.situations].tolist()
    np.testing.assert_array_equal(X.values[X.chosen(y)], marked[list(X.attributes)].loc[X.situations].to_numpy())
    with pytest.raises(ValueError, match="'choice' marks one alternative in each situation"):
        ChoiceSets.from_long(frame, situation="chid", alternative="alt")
