"""Sentences of a report: the model, its verdict, how to read the tables, and how to cite."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import TYPE_CHECKING

import plackett
from plackett.data.model_input import known_columns
from plackett.data.types import LabelsLike
from plackett.data.validation import is_whole
from plackett.output.printed import cell
from plackett.output.sheets import names_of
from plackett.output.summary import how

if TYPE_CHECKING:
    import pandas as pd

    from plackett.estimator import Classifier


CITATION = """\
C. Archambeau and F. Caron (2012). Plackett–Luce regression: A new Bayesian model for polychotomous data.
Proceedings of the 28th Conference on Uncertainty in Artificial Intelligence (UAI), 84–92."""
STILL = (
    "Scores on held-out rows still hold for the predictions as they are. Single probabilities, intervals, effects and "
    "weights may change with more draws."
)


def title(classifier: Classifier, X: pd.DataFrame, y: LabelsLike) -> str:
    """Title: target, number of columns and number of rows."""
    known, columns_used = getattr(classifier, "table_", None), known_columns(classifier)
    target = getattr(y, "name", None) if known is None else known.target
    columns = X.shape[1] if columns_used is None else len(columns_used)
    several = f"{columns:,} column{'' if columns == 1 else 's'}"
    what = f"one of {len(classifier.classes_)} classes" if target is None else target
    return f"Predicting {what} from {several}: {len(X):,} rows"


def model(classifier: Classifier) -> str:
    """The model and its inference."""
    posterior, columns = classifier.posterior_, known_columns(classifier)
    words = f"A {posterior.model_name}: {posterior.size(classifier)}. Inference: {how(classifier)}."
    if columns is None or len(columns) == classifier.n_features_in_:
        return words
    return (
        f"{words} The {classifier.n_features_in_} covariates are made of {len(columns)} columns: levels of texts and "
        "missing values have indicators of their own."
    )


def trust(classifier: Classifier) -> tuple[bool | None, str]:
    """Verdict (None if there is none) and its reason."""
    good, why = classifier.posterior_.verdict(classifier)
    instead = "" if classifier.posterior_.no_chains is None else " Fit with inference='gibbs' for exact intervals."
    holds = f" {STILL}" if good is False else ""
    return good, f"{why[0].upper()}{why[1:]}.{instead}{holds}"


def drawn(judged: bool) -> str:
    """Description of the plots of chains."""
    if not judged:
        return "The plots show the log-likelihood (log-posterior of learned directions) along the chains and its ranks."
    return (
        "The plots show the one of these probabilities that mixes most slowly. Where chains agree, the lines overlap "
        "and the ranks are uniform: all bars end near the dashed lines."
    )


def effects(certain: bool) -> str:
    """How to read the table of effects."""
    numbers = (
        "The effect of a column of numbers is the change of a class probability, averaged over rows: per unit, and "
        "per standard deviation, which compares columns in different units. Of 0 and 1, or of levels, it is the "
        "difference. The largest come first. Effects are of what the model predicts, with the other columns as they "
        "are, and need not be causes."
    )
    if certain:
        return numbers
    return (
        f"{numbers} Intervals, of the effect per unit, hold 90 %; the last column is the probability that the effect "
        "is above 0."
    )


def choice_effects(certain: bool) -> str:
    """How to read effects and elasticities of choices."""
    numbers = (
        "An elasticity says by how many per cent an alternative is chosen more often if an attribute of one rises by "
        "one per cent everywhere. An effect is the change of a probability per unit of a column, or per standard "
        "deviation, averaged over situations; of 0 and 1 it is the difference. Both are of what the model predicts, "
        "and need not be causes."
    )
    if certain:
        return numbers
    return f"{numbers} Intervals hold 90 %; the last column is the probability that the number is above 0."


def why_choices(strangers: bool) -> str:
    """Introduction to the explained situations."""
    told = "Situations of those above, with what was predicted for each alternative, and what speaks for it."
    return f"{told} All are predicted for someone who is not known." if strangers else told


def why_rankings() -> str:
    """Introduction to the explained rankings."""
    return "Rankings of those above, with how probably each item is the first of all, and what speaks for it."


def unranked(meaning: str) -> str:
    """Meaning of unranked items."""
    if meaning == "last":
        return "Items that a ranking does not name came behind those that it names."
    return "Of items that a ranking does not name it says nothing."


def worths(certain: bool, averaged: bool) -> str:
    """How to read the table of worths."""
    told = (
        "The worth of an item is its probability of being the first of all. Differences of two log-worths are log-odds "
        "of who comes before whom."
    )
    if not certain:
        told += (
            " Intervals of log-worths hold 90 %. First is the probability that no other item has a larger worth, and "
            "mean place that among the worths, both as far as the data tell."
        )
    return f"{told} Worths are averages over the rows of the covariates." if averaged else told


def contributions(why: pd.DataFrame) -> str:
    """The columns that contribute most for and against the predicted class."""
    parts = []
    for side, sign in (("for", 1), ("against", -1)):
        most = why[sign * why["contribution"] > 0].head(3)
        if len(most):
            lines = zip(names_of(most), most["value"], most["contribution"], strict=True)
            named = (f"{name} = {held(value)} ({part:+.2f})" for name, value, part in lines)
            parts.append(f"{side} it {'speak' if len(most) > 1 else 'speaks'} {', '.join(named)}")
    if not parts:
        return "No column moves this prediction."
    return f"Predicted is {why.attrs['class']}; {'; '.join(parts)}. Numbers in brackets add up to log-odds."


def held(value: object) -> str:
    """Format a number with four significant digits, or a text."""
    return cell(value, 4)


def race(why: pd.DataFrame, what: str, said: object) -> str:
    """The competitors that win most often for the predicted class or item."""
    own = why[why[what] == said]
    named = (f"{w.feature} ({w.probability:.2f})" for w in own.head(3).itertuples())
    return f"For {said}, of probability {own['probability'].sum():.2f}, win {', '.join(named)}."


def settings(classifier: Classifier) -> list[tuple[str, str]]:
    """Parameters of the model and of its parts, with defaults replaced by the values used."""
    return [(name, repr(value)) for name, value in classifier._settings().items()]


def versions() -> list[tuple[str, str]]:
    """Versions of plackett, Python and the libraries."""
    found = [("plackett", plackett.__version__), ("Python", python_version())]
    for package in ("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "arviz"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, "not installed"))
    return found


def seed(classifier: Classifier) -> str:
    """Sentence about the seed."""
    state = classifier.random_state
    if is_whole(state):
        return f"The seed was {state}: the same data, settings and versions give the same fit."
    return "No whole number was given as seed (random_state), so the fit cannot be repeated exactly."
