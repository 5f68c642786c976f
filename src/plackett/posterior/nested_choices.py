"""Posteriors of nested logit: coefficients and dissimilarities, as draws or as a maximum with joint covariances."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from scipy.special import ndtri

from plackett.model.mixture import POOLED
from plackett.model.race import Array
from plackett.posterior.base import Quantities, Table, Variables, objects
from plackett.posterior.choice_reasons import ChoiceModel
from plackett.posterior.linear_choices import (
    LinearDraws,
    LinearEstimate,
    LinearMembers,
    linear_members,
    standard_normals,
)
from plackett.responses.nests import Nests

LEAST = 0.01  # smallest dissimilarity of a draw


@dataclass(frozen=True)
class NestedEstimate(LinearEstimate):
    """Maximum of nested logit; covariances are joint for coefficients and dissimilarities, (d + G, d + G).

    Attributes
    ----------
    nests : Nests
        Nests of alternatives, with their dissimilarities at the maximum.
    """

    nests: Nests = field(kw_only=True)
    model_name = "nested logit"

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of coefficients and dissimilarities, and True without a prior."""
        return len(self.coefficients) + len(self.nests.names), self.spread is None

    def covariance(self, errors: str) -> Array:
        """Return the covariance matrix of the coefficients."""
        d = len(self.coefficients)
        return super().covariance(errors)[:d, :d]

    def _joint_draws(self) -> Array:
        """Return draws (S, d + G) of coefficients and dissimilarities from N(maximum, classical covariance)."""
        values, vectors = np.linalg.eigh(self.classical)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        d, place = len(self.coefficients), np.append(self.coefficients, self.nests.dissimilarity)
        found: Array = place + standard_normals(POOLED, len(values)) @ root.T
        found[:, d:] = np.clip(found[:, d:], LEAST, 1.0)
        return found

    def draws(self) -> Array:
        """Return draws of the coefficients."""
        return self._joint_draws()[:, : len(self.coefficients)]

    def members(self, every: bool = False) -> LinearMembers:
        """Return draws that represent the uncertainty, and last the maximum, which predicts."""
        values = np.vstack([self._joint_draws()[:, len(self.coefficients) :], self.nests.dissimilarity])
        return replace(super().members(every), of_response=values, nests=self.nests)

    def predicting(self) -> LinearMembers:
        """Return the maximum alone."""
        return replace(super().predicting(), of_response=self.nests.dissimilarity[None], nests=self.nests)

    def parameter_table(self, prob: float) -> Table:
        """Return estimate, interval and standard error of each dissimilarity; NaN for one at its bound of 1."""
        d = len(self.coefficients)
        error = np.sqrt(np.diag(self.classical)[d:])
        error, centre = np.where(error > 0, error, np.nan), self.nests.dissimilarity
        width = ndtri((1 + prob) / 2) * error
        lower, upper = np.maximum(centre - width, 0.0), np.minimum(centre + width, 1.0)
        return {"mean": centre, "lower": lower, "upper": upper, "std_error": error}

    def size(self, model: ChoiceModel) -> str:
        """Describe coefficients and dissimilarities."""
        return super().size(model) + self.nests_in_words()


@dataclass(frozen=True)
class NestedDraws(LinearDraws):
    """Posterior draws of coefficients and dissimilarities.

    Attributes
    ----------
    dissimilarity : (chain, draw, G) array
        α.
    nests : Nests
        Nests of alternatives.
    """

    drawn: ClassVar[tuple[str, ...]] = ("coefficients", "dissimilarity")  # type: ignore[assignment]
    dissimilarity: Array = field(repr=False, kw_only=True)
    nests: Nests = field(kw_only=True)
    model_name = "nested logit"

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of coefficients and dissimilarities, and False: draws are not at a maximum."""
        return self.coefficients.shape[2] + self.dissimilarity.shape[2], False

    def members(self, every: bool = False) -> LinearMembers:
        """Return the draws, at most 400 unless `every`."""
        d, G = self.coefficients.shape[2], self.dissimilarity.shape[2]
        found = np.concatenate([self.coefficients, self.dissimilarity], axis=2).reshape(-1, d + G)
        if not every and len(found) > POOLED:
            found = found[np.linspace(0, len(found) - 1, POOLED).round().astype(np.intp)]
        members = linear_members(found[:, :d], np.full(len(found), 1 / len(found)))
        return replace(members, of_response=found[:, d:], nests=self.nests)

    def reported(self) -> LinearMembers:
        """Return posterior means of coefficients and dissimilarities."""
        return replace(super().reported(), of_response=self.nests.dissimilarity[None], nests=self.nests)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Return coefficients and dissimilarities."""
        found = super().variables(model, raw)
        return Variables(
            found.values | {"dissimilarity": self.dissimilarity},
            found.dims | {"dissimilarity": ["nest"]},
            found.coords | {"nest": objects(self.nests.names)},
        )

    def quantities(self, model: ChoiceModel) -> Quantities:
        """Return dissimilarities in addition to the quantities of a linear utility."""
        found = super().quantities(model)
        own = {
            f"dissimilarity of {name}": (f"dissimilarity of {name}", self.dissimilarity[..., g])
            for g, name in enumerate(self.nests.names)
        }
        return found._replace(scalars=found.scalars | own)

    def size(self, model: ChoiceModel) -> str:
        """Describe coefficients and dissimilarities."""
        return super().size(model) + self.nests_in_words()
