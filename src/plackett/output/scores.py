"""Scores of probabilities, shared by cross-validation, the command line, the report and the reproduction."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from plackett.model.race import Array

SMALLEST = 1e-15  # lower bound of probabilities in the log-loss


class Scores(NamedTuple):
    """Share of wrong predictions, mean of −ln p of the true class, and mean squared distance from the truth."""

    error: float
    log_loss: float
    brier: float


def log_losses(probability: Array, codes: npt.NDArray[np.intp]) -> Array:
    """Return −ln p of the true class from probabilities (n, K) and class numbers; −1 marks an unknown class."""
    own = np.where(codes >= 0, probability[np.arange(len(codes)), codes], 0.0)
    losses: Array = -np.log(np.clip(own, SMALLEST, 1.0))
    return losses


def scores(probability: Array, y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Scores:
    """Return scores of probabilities (n, K); an unknown label has probability 0.

    Examples
    --------
    >>> import numpy as np
    >>> from plackett.output.scores import scores
    >>> scores(np.array([[0.5, 0.5], [0.25, 0.75]]), np.array(["a", "a"]), np.array(["a", "b"])).error
    0.5
    """
    place = {label: k for k, label in enumerate(classes.tolist())}
    codes = np.array([place.get(label, -1) for label in y.tolist()])
    truth = np.arange(len(place)) == codes[:, None]
    return Scores(
        float(np.mean(np.argmax(probability, axis=1) != codes)),
        float(log_losses(probability, codes).mean()),
        float(((probability - truth) ** 2).sum(axis=1).mean()),
    )


def scores_of_shares(counts: Sequence[float], y: npt.NDArray[Any], classes: npt.NDArray[Any]) -> Scores:
    """Return scores of predicting the training shares for every row, from training counts."""
    shares = np.asarray(counts, dtype=float)
    return scores(np.tile(shares / shares.sum(), (len(y), 1)), y, classes)
