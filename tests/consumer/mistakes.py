"""Wrong code of such a user: the type checker reports every line marked ``wrong``, and no other."""

from __future__ import annotations

import pandas as pd

from plackett import (
    ChoiceSets,
    Gibbs,
    PlackettLuceChooser,
    PlackettLuceClassifier,
    PlackettLuceRanker,
    Rankings,
    explain,
)


def classify(X: pd.DataFrame, y: list[str]) -> None:
    PlackettLuceClassifier(Gibs(draws=100))  # wrong
    PlackettLuceClassifier(inference=3)  # wrong
    PlackettLuceClassifier(draws=100)  # wrong
    Gibbs(draws="many")  # wrong
    clf = PlackettLuceClassifier().fit(X, y)
    first: str = clf.predict_proba(X)  # wrong
    clf.predict(X).nothing()  # wrong
    table: dict[str, float] = clf.effects(X)  # wrong
    clf.effects(X, prob="wide")  # wrong
    lower: float = clf.predict_interval(X)  # wrong
    explain(clf)  # wrong


def rank(X: pd.DataFrame) -> None:
    R = Rankings.from_orders([["a", "b"]], unranked="absent")
    ranker = PlackettLuceRanker(shape=1.0).fit(None, R)
    place: int = ranker.worth()  # wrong
    drawn: list[str] = ranker.sample(n=3)  # wrong
    ranker.prob_better(top="three")  # wrong


def choose(frame: pd.DataFrame, y: list[str]) -> None:
    trips = ChoiceSets.from_wide(frame, alternatives=["bus", "car"], attributes=["cost"])
    chooser = PlackettLuceChooser(features="linear", nest={})  # wrong
    chooser = PlackettLuceChooser("em", features="linear").fit(trips, y)
    value: int = chooser.willingness_to_pay("time", "cost")  # wrong
    chooser.elasticities(trips)  # wrong
    chooser.predict(frame)  # wrong
    share: list[float] = chooser.predict_proba(trips)  # wrong
