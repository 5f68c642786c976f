"""What every classifier here does in the same way once it has probabilities: predict a class, and go into a file."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.model.race import Array


class Verbs:
    """Verbs that need nothing but `predict_proba` and `classes_`."""

    classes_: npt.NDArray[Any]

    def predict_proba(self, X: Any) -> Array:
        """Class probabilities (n, K)."""
        raise NotImplementedError

    def predict(self, X: Any) -> npt.NDArray[Any]:
        """The most probable class of each row."""
        probability = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[np.argmax(probability, axis=1)]
        return labels

    def save(self: Any, path: Any) -> None:
        """Write the fitted model to a file that `plackett.load` reads and that cannot run code."""
        from plackett.modelfile import save

        check_is_fitted(self)
        save(self, path)
