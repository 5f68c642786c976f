"""The sets of the studies as the other programs take them: subsets, units and codes."""

import os
from pathlib import Path

import numpy as np
import pandas as pd

from plackett import ChoiceSets, Rankings
from plackett.datasets import PACKAGED, load

MODES = {"train": "TRAIN", "swissmetro": "SM", "car": "CAR"}
PLATFORMS = ["Xbox", "PlayStation", "PSPortable", "GameCube", "GameBoy", "PC"]


def data_folder() -> Path | None:
    """The folder with the sets that do not come with the package, if there is one."""
    named = os.environ.get("PLACKETT_DATA")
    return Path(named) if named else None


def read(name):
    """A table of that folder."""
    return pd.read_csv(data_folder() / name)


def swissmetro():
    """Biogeme's subset: commuters and business, times and costs in hundreds, cost 0 with an annual pass; persons."""
    frame = read("swissmetro.csv.gz")
    frame = frame[frame["PURPOSE"].isin([1, 3]) & (frame["y"] != "unknown")].reset_index(drop=True)
    wide = pd.DataFrame(index=frame.index)
    for name, part in MODES.items():
        free = (frame["GA"] == 1) & (name != "car")
        wide[f"time_{name}"] = frame[f"{part}_TT"] / 100
        wide[f"cost_{name}"] = np.where(free, 0.0, frame[f"{part}_CO"] / 100)
        wide[f"there_{name}"] = frame[f"{part}_AV"] * (frame["SP"] != 0)
    X = ChoiceSets.from_wide(wide, alternatives=list(MODES), attributes=["time", "cost"], available="there")
    return X, frame["y"].to_numpy(), frame["ID"].to_numpy()


def fishing(person=()):
    """Fishing modes of mlogit."""
    frame = read("fishing.csv")
    places = ["beach", "pier", "boat", "charter"]
    X = ChoiceSets.from_wide(frame, alternatives=places, attributes=["price", "catch"], person=list(person))
    return X, frame["y"].to_numpy()


def platforms():
    """Game platforms of mlogit: ranks, ownership, age and hours a week."""
    frame = read("game_platforms.csv")
    columns = pd.DataFrame(
        {f"own_{name}": frame[f"own_{name}"] for name in PLATFORMS} | frame[["age", "hours"]].to_dict("series")
    )
    X = ChoiceSets.from_wide(columns, alternatives=PLATFORMS, attributes=["own"], person=["hours", "age"])
    ranks = frame[[f"rank_{name}" for name in PLATFORMS]].set_axis(PLATFORMS, axis=1)
    return X, Rankings.from_ranks(ranks, unranked="last")


def train():
    """Train journeys of mlogit, prices times .0220371 as there, times in hours; persons."""
    found = load("train")
    frame = found.X.copy()
    for journey in (1, 2):
        frame[f"price_{journey}"] *= 2.20371 / 100
        frame[f"time_{journey}"] /= 60
    X = ChoiceSets.from_wide(frame, alternatives=[1, 2], attributes=["price", "time", "change", "comfort"])
    return X, found.y, found.groups


def heating(rebate=0.0):
    """Heating systems with their two costs; heat pumps with a rebate."""
    found = load("heating")
    frame = found.X.assign(ic_hp=(1 - rebate) * found.X["ic_hp"])
    return ChoiceSets.from_wide(frame, alternatives=["gc", "gr", "ec", "er", "hp"], attributes=["ic", "oc"]), found.y


def pairs(frame, first, second, ties):
    """Counts of wins of each and of ties as rankings of two; `first` and `second` name an item and its wins."""
    a, b = frame[first[0]].tolist(), frame[second[0]].tolist()
    counts = [frame[first[1]], frame[second[1]], *([frame[list(ties)].sum(axis=1)] if ties else [])]
    winners, losers = (a + b + a)[: len(counts) * len(a)], (b + a + b)[: len(counts) * len(a)]
    return Rankings.from_pairs(
        winners, losers, np.repeat([False, False, True][: len(counts)], len(a)), np.concatenate(counts)
    )


def arena(*ties):
    """Votes on language models, with these columns as ties; the others are left out."""
    frame = pd.read_csv(PACKAGED / "arena_20240814.csv.gz")
    return pairs(frame, ("first", "wins_first"), ("second", "wins_second"), ties)


def arena_with_halves():
    """Votes on language models, each tie as half a win for both, and the weights of the pairs."""
    frame = pd.read_csv(PACKAGED / "arena_20240814.csv.gz")
    halves = (frame["ties"] + frame["ties_both_bad"]) / 2
    first, second = frame["first"].tolist(), frame["second"].tolist()
    weight = np.concatenate([frame["wins_first"] + halves, frame["wins_second"] + halves])
    return Rankings.from_pairs(first + second, second + first), weight


def puddings():
    """Chocolate puddings of Davidson (1970)."""
    return pairs(read("pudding.csv"), ("i", "wins_i"), ("j", "wins_j"), ["ties"])


def nascar():
    """The races of 2002 as lists of drivers."""
    return read("nascar2002.csv").to_numpy().tolist()


def dublin():
    """Ballots of at least two candidates; those who are not ranked are absent."""
    R = Rankings.read_preflib(data_folder() / "dublin_north.soi", unranked="absent")
    return R[np.diff(R.outcomes.start) > 1]
