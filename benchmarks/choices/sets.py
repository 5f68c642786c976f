"""The eight sets: choices among alternatives with attributes, and rankings from covariates; by person."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit

from plackett import ChoiceSets, Rankings, datasets

SPLITS = 5


@dataclass(frozen=True)
class Data:
    """Situations with what was chosen, or covariates with rankings; `person` says whose each row is."""

    X: Any
    y: Any
    person: np.ndarray
    labelled: bool = True  # whether the labels of alternatives mean something, so that models have constants
    nests: dict | None = None


def read(name):
    return pd.read_csv(Path(os.environ["PLACKETT_DATA"]) / name)


def travelmode():
    found = datasets.load("travelmode")
    return Data(found.choices, found.y, np.arange(len(found.y)), nests={"public": ["train", "bus"]})


def fishing():
    frame = read("fishing.csv")
    places = ["beach", "pier", "boat", "charter"]
    X = ChoiceSets.from_wide(frame, alternatives=places, attributes=["price", "catch"], person=["income"])
    nests = {"shore": ["beach", "pier"], "sea": ["boat", "charter"]}
    return Data(X, frame.y.to_numpy(), np.arange(len(frame)), nests=nests)


def swissmetro():
    """Three hundred persons, nine choices each; no fare for holders of an annual pass."""
    frame = read("swissmetro.csv.gz").query("y != 'unknown'").reset_index(drop=True)
    kept = np.random.default_rng(0).choice(frame.ID.unique(), 300, replace=False)
    frame = frame[frame.ID.isin(kept)].reset_index(drop=True)
    short = {"train": "TRAIN", "swissmetro": "SM", "car": "CAR"}
    attributes, none = ["TT", "CO", "HE", "SEATS"], 0.0 * frame.ID
    wide = {f"{a}_{mode}": frame.get(f"{s}_{a}", none) for mode, s in short.items() for a in attributes}
    for mode in ("train", "swissmetro"):
        wide[f"CO_{mode}"] = wide[f"CO_{mode}"] * (frame.GA == 0)
    wide |= {f"AV_{m}": frame[f"{s}_AV"] for m, s in short.items()}
    about = frame[["PURPOSE", "TICKET", "WHO"]].astype(str)  # codes of levels
    about = pd.concat([about, frame[["FIRST", "LUGGAGE", "AGE", "MALE", "INCOME", "GA"]]], axis=1)
    X = ChoiceSets.from_wide(
        pd.concat([pd.DataFrame(wide), about], axis=1),
        alternatives=list(short),
        attributes=attributes,
        person=list(about.columns),
        available="AV",
    )
    return Data(X, frame.y.to_numpy(), frame.ID.to_numpy(), nests={"existing": ["train", "car"]})


def heating():
    frame = read("heating.csv")
    X = ChoiceSets.from_wide(
        frame,
        alternatives=["gc", "gr", "ec", "er", "hp"],
        attributes=["ic", "oc"],
        person=["income", "agehed", "rooms", "region"],
        sep=".",
    )
    nests = {"central": ["gc", "ec"], "room": ["gr", "er"]}
    return Data(X, frame.depvar.to_numpy(), np.arange(len(frame)), nests=nests)


def train():
    frame = read("train.csv")
    attributes = ["price", "time", "change", "comfort"]
    X = ChoiceSets.from_wide(frame, alternatives=["1", "2"], attributes=attributes, person=[], sep="")
    return Data(X, frame.choice.str[-1].to_numpy(), frame.id.to_numpy(), labelled=False)


def electricity():
    """The price, length of contract and kind of supplier of four unlabelled offers."""
    frame = read("electricity.csv.gz")
    attributes = ["pf", "cl", "loc", "wk", "tod", "seas"]
    X = ChoiceSets.from_long(frame, situation="chid", alternative="alt", attributes=attributes, person=[])
    chosen = frame[frame.choice].set_index("chid")
    return Data(X, chosen.alt[X.situations].to_numpy(), chosen.id[X.situations].to_numpy(), labelled=False)


def sushi():
    users, orders = read("sushi/sushi3_users.csv"), read("sushi/sushi3a_orders.csv")
    columns = [column for column in users.columns if column != "user_id" and "pref" not in column]
    regions = [column for column in columns if "region" in column]
    X = pd.get_dummies(users[columns].assign(time=np.log(users.time)), columns=regions, dtype=float)
    return Data(X.astype(float), Rankings.from_orders(orders.to_numpy().tolist(), unranked="absent"), np.arange(len(X)))


def beans():
    frame = read("beans.csv")
    orders = frame[["rank1", "rank2", "rank3"]].to_numpy().tolist()
    planted = pd.to_datetime(frame.planting_date).astype("int64") / 8.64e13
    X = frame[["season", "year", "maxTN", "lon", "lat"]].assign(planted=planted)
    X = pd.get_dummies(X, columns=["season"], dtype=float).astype(float)
    return Data(X, Rankings.from_orders(orders, unranked="absent"), np.arange(len(X)))


SETS = {each.__name__: each for each in (travelmode, fishing, swissmetro, heating, train, electricity, sushi, beans)}


def halves(data, number):
    """Rows for training and rows to predict: half of the persons each."""
    splitter = GroupShuffleSplit(1, train_size=0.5, test_size=0.5, random_state=number)
    return next(splitter.split(data.person, groups=data.person))
