"""Correct code of a user who checks types strictly: all models, their data, and what they return."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from plackett import (
    EM,
    Bootstrap,
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    SparseLogitClassifier,
    Tastes,
    Variational,
    datasets,
    explain,
    load,
)


def classify(X: pd.DataFrame, y: npt.NDArray[Any]) -> PlackettLuceClassifier:
    clf = PlackettLuceClassifier(Gibbs(draws=100), random_state=0).fit(X, y)
    probability: npt.NDArray[np.float64] = clf.predict_proba(X)
    lower, upper = clf.predict_interval(X, prob=0.8)
    width: npt.NDArray[np.float64] = upper - lower
    label: npt.NDArray[Any] = clf.predict(X)
    table: pd.DataFrame = clf.effects(X)
    summary: pd.DataFrame = clf.summary()
    relevance: pd.DataFrame = clf.relevance()
    reason: pd.DataFrame = explain(clf, X.iloc[0])
    print(probability.shape, width.max(), label[0], len(table), len(summary), len(relevance), len(reason))
    clf.save("classes.plk")
    return clf


def compare(X: npt.NDArray[np.float64], y: list[str]) -> list[float]:
    models = [
        PlackettLuceClassifier(EM(), features="exp"),
        PlackettLuceClassifier(Variational(), shape=0.5, features="exp"),
        PlackettLuceClassifier(Bootstrap(draws=32)),
    ]
    sparse: SparseLogitClassifier = SparseLogitClassifier(random_state=1).fit(X, y)
    return [float(model.fit(X, y).score(X, y)) for model in models] + [float(sparse.score(X, y))]


def rank(orders: list[list[str]]) -> pd.DataFrame:
    R: Rankings = Rankings.from_orders(orders, unranked="absent")
    games: Rankings = Rankings.from_pairs(["a", "b"], ["b", "a"], counts=[3, 1])
    first: Rankings = R[:2]
    ranker: PlackettLuceRanker = PlackettLuceRanker("em", shape=1.0).fit(None, R)
    better: pd.DataFrame = ranker.prob_better(top=3)
    drawn: Rankings = ranker.sample(n=5, random_state=0)
    fit: float = ranker.score(None, games)
    print(len(first), len(drawn), fit, better.shape, ranker.rank_distribution().columns)
    worth: pd.DataFrame = ranker.worth(scale="elo", anchor={"a": 1000})
    return worth


def choose(frame: pd.DataFrame, chosen: pd.Series[str], persons: pd.Series[int]) -> dict[str, pd.DataFrame]:
    trips: ChoiceSets = ChoiceSets.from_wide(frame, alternatives=["bus", "car"], attributes=["cost", "time"])
    logit: PlackettLuceChooser = PlackettLuceChooser("em", features="linear").fit(trips, chosen)
    mixed = PlackettLuceChooser(features=Tastes(random=["cost"])).fit(trips, chosen, groups=persons)
    share: npt.NDArray[np.float64] = mixed.predict_proba(trips)
    print(share.sum(axis=1), logit.predict(trips)[0], logit.fit_statistics(trips, chosen).aic)
    return {
        "coefficients": logit.coefficients(errors="robust"),
        "elasticities": logit.elasticities(trips, "cost"),
        "value of time": mixed.willingness_to_pay("time", "cost"),
        "diversion": mixed.diversion(trips, drop="bus"),
        "shares": logit.shares(trips),
        "population": mixed.population(),
        "tastes": mixed.tastes(),
    }


def load_all() -> PlackettLuceClassifier:
    iris = datasets.load("iris")
    names: tuple[str, ...] = datasets.names()
    print(names, iris.counts)
    clf: PlackettLuceClassifier = load("classes.plk")
    return clf
