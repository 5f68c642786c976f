"""Reading learned directions: which covariates matter, what the components say, and why a row is predicted so."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.directions.gates import Gates, standardise
from plackett.model.race import Array

READ = 200  # rows


def some_rows(X: Array) -> Array:
    """Enough rows to take averages over, spread over the data."""
    return X[np.linspace(0, len(X) - 1, min(len(X), READ)).astype(int)]


def relevance(gates: Gates, X: Array) -> Array:
    """(d,): by how much a standard deviation of each covariate moves the log-odds between gates, on average.

    The posterior mean of the deviation of β_jf over the components j, each taken with its share of the gates.
    """
    share = np.concatenate([block.sum(axis=0)[None] for block in gates.chunks(some_rows(X))]).sum(axis=0)
    share /= share.sum(axis=1, keepdims=True)
    total = np.zeros(len(gates.mean))
    for part, directions in zip(share, gates.directions, strict=True):
        beta = along_covariates(directions, gates)
        total += np.sqrt(part @ (beta - part @ beta) ** 2)
    return total / len(share)


def along_covariates(directions: Array, gates: Gates) -> Array:
    """Directions (M, r) for the standardised covariates, (M, d)."""
    beta = directions if gates.rotation is None else directions @ gates.rotation.T
    return np.where(np.isfinite(gates.scale), beta, 0.0)


class Portrait:
    """One draw to read: the one whose predictions for the training rows are nearest to the average.

    Components have no identity from draw to draw, so they are shown as they stand together in one.
    """

    def __init__(self, draws: Any, gates: Gates, X: Any):
        probability = np.concatenate(list(draws.probabilities(gates.chunks(some_rows(X)))))
        distance = np.abs(probability - probability.mean(axis=1, keepdims=True)).mean(axis=(0, 2))
        s = int(np.argmin(distance))
        self.gates = Gates(
            gates.directions[s][None], gates.offsets[s][None], gates.mean, gates.scale, gates.rotation, gates.knots
        )
        self.votes = draws.votes[s]  # (K, M)
        self.share = self.gate(X).mean(axis=0)
        beta = along_covariates(gates.directions[s], gates)
        self.directions = beta - self.share @ beta  # a common vector changes nothing
        self.order = np.argsort(-self.share, kind="stable")

    def gate(self, X: Array) -> Array:
        """(n, M)."""
        return np.concatenate([block[:, 0] for block in self.gates.chunks(X)])

    def components(self, classes: npt.NDArray[Any], names: npt.NDArray[Any]) -> Any:
        """A row for each component, by share: the class it votes for, its votes, and its direction."""
        import pandas as pd

        table = pd.DataFrame(
            {
                "share": self.share,
                "votes for": classes[np.argmax(self.votes, axis=0)],
                **{f"vote {label}": self.votes[k] for k, label in enumerate(classes)},
                **{str(name): self.directions[:, f] for f, name in enumerate(names)},
            }
        )
        table.index.name = "component"
        return table.iloc[self.order]

    def explanation(self, x: Array, classes: npt.NDArray[Any], names: npt.NDArray[Any]) -> Any:
        """A row for each component, by its gate for x: what it adds to each class, and what opens it.

        The columns of the covariates hold z_f (β_jf − mean over components): how much each opens or shuts the gate.
        """
        import pandas as pd

        gate = self.gate(x[None])[0]
        z = np.nan_to_num(standardise(x[None], self.gates.mean, self.gates.scale, knots=self.gates.knots)[0])
        table = pd.DataFrame(
            {
                "gate": gate,
                "votes for": classes[np.argmax(self.votes, axis=0)],
                **{f"adds to {label}": gate * self.votes[k] for k, label in enumerate(classes)},
                **{str(name): z[f] * self.directions[:, f] for f, name in enumerate(names)},
            }
        )
        table.index.name = "component"
        return table.iloc[np.argsort(-gate, kind="stable")]
