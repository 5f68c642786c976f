"""Settings of the weighted likelihood bootstrap for learned directions."""

from __future__ import annotations

from typing import Literal

from sklearn.base import BaseEstimator

from plackett.capabilities import Ignored
from plackett.inference.base import check_count, check_tolerance


class Bootstrap(BaseEstimator):
    """Modes under random weights of the observations: a fast approximation of the posterior of learned directions.

    Each draw is the mode under exponential weights of the rows, rankings or situations, with the prior centred at a
    draw from itself, and its own starting point (weighted likelihood bootstrap: Newton & Raftery 1994). Draws are
    independent, so that the standard error of an average is known exactly. Held-out data choose the penalty, the design
    of the covariates, and the weight of a logit's mode next to the draws and the power κ, as for `Gibbs`.

    Parameters
    ----------
    draws : int
        Number of draws.
    max_iter : int
        Maximum number of L-BFGS iterations of a draw. Held-out fits take at most half as many at each penalty, where
        each starts at the mode of the last.
    max_seconds : float, optional
        Time limit. Held-out fits take at most two fifths of it; the rest goes to as many draws as possible, at least
        one. Compilation, which happens once, does not count.

    Examples
    --------
    >>> from plackett import Bootstrap, PlackettLuceClassifier
    >>> PlackettLuceClassifier(inference=Bootstrap(draws=200))
    PlackettLuceClassifier(inference=Bootstrap(draws=200))
    """

    samples: Literal[False] = False
    maximises: Literal[False] = False
    shape_settings: tuple[str, ...] = ()
    fixed_only = Ignored((), "")
    no_directions = None
    groups_rows = True
    no_fixed = (
        "the bootstrap is for learned directions with covariates. Use inference='variational', inference='gibbs' or "
        "inference='em'."
    )

    def __init__(self, draws: int = 64, max_iter: int = 200, max_seconds: float | None = None):
        self.draws = draws
        self.max_iter = max_iter
        self.max_seconds = max_seconds

    def check(self) -> None:
        """Raise for invalid values."""
        check_count("Bootstrap(draws)", self.draws)
        check_count("Bootstrap(max_iter)", self.max_iter)
        if self.max_seconds is not None:
            check_tolerance("Bootstrap(max_seconds)", self.max_seconds)
