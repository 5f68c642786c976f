"""What a report says in sentences: the model, how far to trust it, and how to cite it."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version
from platform import python_version
from typing import Any

import numpy as np

import plackett
from plackett.directions.posterior import DirectionDraws, DirectionPoint
from plackett.inference import EM, Variational
from plackett.logit.posterior import LogitDraws
from plackett.output.summary import how, resolved, worth
from plackett.posterior.diagnostics import TOLERATED, shortcomings
from plackett.priors import GIG

CITATION = """\
C. Archambeau and F. Caron (2012). Plackett–Luce regression: A new Bayesian model for polychotomous data.
Proceedings of the 28th Conference on Uncertainty in Artificial Intelligence (UAI), 84–92."""


def model(classifier: Any) -> str:
    """What was fitted, and how."""
    K = len(classifier.classes_)
    inference = f"Inference: {how(classifier)}."
    if isinstance(classifier.posterior_, LogitDraws):
        learned = "learned" if classifier.penalty == "learn" else "fixed"
        return (
            f"A sparse Bayesian multinomial logit of {K} classes on {classifier.n_features_in_} columns. The penalty θ "
            f"is {classifier.penalty_:.3g} ({learned}). {inference}"
        )
    if isinstance(classifier.posterior_, DirectionDraws):
        M = classifier.posterior_.directions.shape[2]
        return (
            f"A Plackett–Luce regression of {K} classes whose features are learned: {M} exponentials of directions in "
            f"{classifier.n_features_in_} columns. {inference}"
        )
    p = classifier.weights_.shape[1]
    size = f"A Plackett–Luce regression of {K} classes on {p} non-negative features."
    if isinstance(classifier.prior, GIG):
        return f"{size} The prior of the weights is {classifier.prior!r}. {inference}"
    learned = "learned from the data" if classifier.shape == "learn" else "fixed"
    return (
        f"{size} The shape of the prior is "
        f"a = {classifier.shape_:.3g} ({learned}); the smaller it is, the fewer weights matter. {inference}"
    )


def trust(classifier: Any) -> tuple[bool | None, str]:
    """Whether the fit may be trusted (None: it cannot be told), and why."""
    inference = None if isinstance(classifier.posterior_, LogitDraws) else classifier._make_inference()
    if isinstance(classifier.posterior_, DirectionPoint):
        return None, "EM gives one best estimate and no uncertainty: fit with inference='gibbs' for intervals."
    if isinstance(classifier.posterior_, DirectionDraws):
        found = classifier.diagnostics_
        words = worth(classifier)
        return found is not None and found.monte_carlo_error <= TOLERATED, f"{words[0].upper()}{words[1:]}."
    if isinstance(inference, EM):
        active = int((classifier.weights_ > 0).sum())
        return None, (
            f"{active} of {classifier.weights_.size} weights are not zero. EM gives one best estimate and no "
            "uncertainty: fit with inference='gibbs' for intervals."
        )
    if isinstance(inference, Variational):
        return None, (
            f"The bound on the evidence reached {classifier.trace_[-1]:,.2f} after {classifier.n_iter_:,} passes over "
            "the data. Variational intervals tend to be too narrow: fit with inference='gibbs' for exact ones."
        )
    found = classifier.diagnostics_
    if found is None:
        return False, "Too few draws to tell whether the chains agree."
    numbers = f"R-hat {found.worst_rhat:.2f}, smallest effective sample size {found.smallest_ess:,.0f}"
    wrong = shortcomings(found)
    if wrong is None:
        return True, f"The chains agree: {numbers}."
    return False, f"The fit is not good enough: {wrong}. Weights and intervals may be off. In full: {numbers}."


def settings(classifier: Any) -> list[tuple[str, str]]:
    """Parameters of the classifier, with those of its parts; numbers that were left open are those that were used."""
    found = classifier.get_params(deep=True)
    if not isinstance(classifier.posterior_, LogitDraws):
        found |= {f"inference__{name}": value for name, value in resolved(classifier).get_params().items()}
    return [(name, repr(value)) for name, value in found.items()]


def versions() -> list[tuple[str, str]]:
    """Of what the report was made with."""
    found = [("plackett", plackett.__version__), ("Python", python_version())]
    for package in ("numpy", "scipy", "scikit-learn", "numba", "matplotlib", "arviz"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, "not installed"))
    return found


def seed(classifier: Any) -> str:
    """The seed, or that there was none to repeat the fit with."""
    state = classifier.random_state
    if isinstance(state, (int, np.integer)):
        return f"The seed was {state}: the same data, settings and versions give the same fit."
    return "No whole number was given as seed (random_state), so the fit cannot be repeated exactly."
