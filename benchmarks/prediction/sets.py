"""The sets, how their columns are prepared (alike for every method) and how they are split."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import pandas as pd
from sklearn.model_selection import GroupShuffleSplit, StratifiedGroupKFold, StratifiedKFold, StratifiedShuffleSplit

from plackett.datasets import load


def swissmetro_columns(X):
    """Constant and repeated columns and the cantons left out, codes one-hot, no fare for holders of an annual pass."""
    X = X.drop(columns=["GROUP", "SP", "TRAIN_AV", "SM_AV", "ORIGIN", "DEST"])
    X = X.assign(TRAIN_CO=X.TRAIN_CO * (X.GA == 0), SM_CO=X.SM_CO * (X.GA == 0))
    return pd.get_dummies(X, columns=["PURPOSE", "TICKET", "WHO"])


@dataclass(frozen=True)
class Set:
    """A set: whether settings were chosen on it, its splits, and the units (rows or persons) in each half of a part."""

    chosen_on: bool = False
    splits: int = 10
    half: int | None = None
    prepare: Callable = lambda X: X


SETS = {
    "lenses": Set(chosen_on=True),
    "iris": Set(chosen_on=True),
    "wine": Set(chosen_on=True),
    "heart": Set(chosen_on=True),
    "glass": Set(chosen_on=True),
    "travelmode": Set(chosen_on=True),
    "pima": Set(),
    "german": Set(),
    "fishing": Set(),
    "segment": Set(splits=5),
    "satimage": Set(splits=5, half=1000),
    "letter": Set(splits=5, half=1300),
    "swissmetro": Set(splits=5, half=150, prepare=swissmetro_columns),
    "colon": Set(prepare=np.log),
}


@dataclass(frozen=True)
class Split:
    """Row numbers, covariates and labels coded 0…K−1 of both halves; folds and persons of the training part."""

    train: np.ndarray
    test: np.ndarray
    X_train: np.ndarray
    y_train: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray
    folds: list
    groups: np.ndarray | None


def make_split(name: str, number: int) -> Split:
    """Split `number` of a set, reproducible; stratified by class, or by person where a person has several rows."""
    part, data = SETS[name], load(name)
    X = part.prepare(data.X).to_numpy(dtype=float)
    y = np.unique(data.y, return_inverse=True)[1]
    sizes = {"train_size": part.half or 0.5, "test_size": part.half or 0.5, "random_state": number}
    by_person = name == "swissmetro"
    splitter = GroupShuffleSplit(1, **sizes) if by_person else StratifiedShuffleSplit(1, **sizes)
    train, test = next(splitter.split(X, y, data.groups))
    groups = data.groups[train] if by_person else None
    folds = make_folds(X[train], y[train], groups, number)
    return Split(train, test, X[train], y[train], X[test], y[test], folds, groups)


def make_folds(X, y, groups, seed: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Five folds, three from 500 rows on, stratified by class; no person in two folds."""
    kind = StratifiedKFold if groups is None else StratifiedGroupKFold
    folds = kind(3 if len(y) >= 500 else 5, shuffle=True, random_state=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="The least populated class")
        return list(folds.split(X, y, groups))


@cache
def training_shape(name: str) -> tuple[int, int]:
    """Rows and columns of the training part of the first split."""
    return make_split(name, 0).X_train.shape
