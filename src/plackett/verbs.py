"""What every classifier here does in the same way once it has probabilities: predict with intervals, go into a file."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from plackett.data.validation import check_prob
from plackett.model.race import Array
from plackett.posterior.weights import averaged, equal_tailed


class Verbs:
    """Verbs that need nothing but `classes_` and the probabilities under every draw."""

    classes_: npt.NDArray[Any]
    random_state: Any
    progress: bool

    def _run_settings(self) -> tuple[np.random.SeedSequence, bool, bool]:
        """Seed, whether to show progress, and whether the user chose the seed."""
        words = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        return np.random.SeedSequence(words), bool(self.progress), self.random_state is not None

    def _probabilities(self, X: Any) -> Iterator[Array]:
        """Class probabilities (rows, S, K) of runs of rows under every draw."""
        raise NotImplementedError

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, K), averaged over the posterior."""
        check_is_fitted(self)
        return averaged(self._probabilities(X))

    def predict_interval(self, X: Any, prob: float = 0.9) -> tuple[Array, Array]:
        """Equal-tailed credible intervals of the class probabilities.

        Parameters
        ----------
        X : array or data frame (n, d)
            New rows.
        prob : float
            Probability that an interval holds.

        Returns
        -------
        lower, upper : arrays (n, K)
        """
        check_is_fitted(self)
        return self._interval(X, check_prob(prob))

    def _interval(self, X: Any, prob: float) -> tuple[Array, Array]:
        return equal_tailed(self._probabilities(X), prob)

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        probability = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[np.argmax(probability, axis=1)]
        return labels

    def save(self: Any, path: Any) -> None:
        """Write the fitted model to a file that `plackett.load` reads and that cannot run code."""
        from plackett.output.modelfile import save

        check_is_fitted(self)
        save(self, path)
