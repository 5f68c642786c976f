"""Posteriors of conditional logit: draws of its coefficients, and the maximum of the likelihood with covariances.

Coefficients belong to standardised columns, ln r = z·β; reported coefficients are in the units of the data, A β. After
maximum likelihood, draws from N(β̂, covariance) represent the uncertainty of all results, and the maximum predicts.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
from scipy.special import ndtr, ndtri

from plackett.model.diagnostics import agreement
from plackett.model.mixture import POOLED, Entries, standard_normals
from plackett.model.race import Array
from plackett.posterior.base import NO_CHAINS, Explanation, Quantities, Table, Variables, positive, rounded
from plackett.posterior.choice_reasons import ChoiceModel, explain_choice
from plackett.posterior.choosers import ChoicePosterior, alternatives_in_words, bases_in_words
from plackett.posterior.pool import pools
from plackett.posterior.stacked import DirectionMembers

ERRORS = ("classical", "robust", "person")
NO_PERSONS = "errors='person' needs fit(X, y, groups=...): the person of each situation."


class LinearMembers(DirectionMembers):
    """One direction with a weight of 1, ln r = z·β."""

    def log_rates(self, entries: Entries) -> Array:
        """ln r_e (S, entries)."""
        found: Array = (self.directions[:, 0] @ entries.Z.T)[:, entries.row]
        return found


def linear_members(coefficients: Array, share: Array, modes: int = 0) -> LinearMembers:
    """Return members with these coefficients (S, d)."""
    return LinearMembers(share, coefficients[:, None], np.zeros((len(share), 1, 1)), modes=modes)


class LinearChoices(ChoicePosterior):
    """ln r = z·β: conditional logit, exploded for rankings."""

    model_name = "conditional logit"
    no_estimates = "a linear utility has coefficients instead of weights: coefficients() lists them."
    no_race = "a linear utility has no features that compete: explain lists what attributes contribute."

    @abstractmethod
    def in_units(self, model: ChoiceModel) -> Array:
        """Return draws (S, d) of the coefficients in the units of the data."""

    def size(self, model: ChoiceModel) -> str:
        """Describe alternatives and coefficients."""
        d = self.shape_of_estimate[1]
        words = f"{alternatives_in_words(model)}, a linear utility with {d} coefficient{'' if d == 1 else 's'}"
        return words + bases_in_words(model)

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """Return the coefficients, rounded."""
        return rounded(self.coefficients_table(model, prob, "classical"))

    def explain(self, model: ChoiceModel, row: object, prob: float) -> Explanation:
        """Explain the log-odds of the predicted alternative by attributes and persons' columns."""
        table, person = model._one(row)
        return explain_choice(model, self.members(), table, model._entries(table, person), prob)  # type: ignore[arg-type]


@dataclass(frozen=True)
class LinearEstimate(LinearChoices):
    """Maximum of the likelihood, or of the posterior density, with covariances of its coefficients.

    Attributes
    ----------
    coefficients : (d,) array
        β̂.
    classical : (d, d) array
        Inverse information.
    robust : (d, d) array
        Sandwich covariance by situations.
    person : (d, d) array, optional
        Sandwich covariance by persons; None without persons.
    spread : float, optional
        Standard deviation of the prior; None for maximum likelihood.
    converged : bool
        True if the optimisation ended at a maximum.
    """

    no_chains: ClassVar[str | None] = NO_CHAINS
    estimated_at = True
    coefficients: Array
    classical: Array = field(repr=False)
    robust: Array = field(repr=False)
    person: Array | None = field(default=None, repr=False)
    spread: float | None = None
    converged: bool = True

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Shape (1, d): one group, d coefficients."""
        return 1, len(self.coefficients)

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of coefficients, and True without a prior."""
        return len(self.coefficients), self.spread is None

    def covariance(self, errors: str) -> Array:
        """Return the covariance matrix for one kind of standard errors."""
        if errors not in ERRORS:
            raise ValueError(f"errors must be one of {list(ERRORS)}, got {errors!r} instead.")
        if errors == "person" and self.person is None:
            raise ValueError(NO_PERSONS)
        found: Array = getattr(self, errors)
        return found

    def draws(self) -> Array:
        """Return fixed draws (S, d) from N(β̂, classical covariance)."""
        values, vectors = np.linalg.eigh(self.classical)
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        found: Array = self.coefficients + standard_normals(POOLED, len(values)) @ root.T
        return found

    def members(self, every: bool = False) -> LinearMembers:
        """Return draws that represent the uncertainty, and last the maximum, which predicts."""
        draws = self.draws()
        return linear_members(np.vstack([draws, self.coefficients]), np.append(np.zeros(len(draws)), 1.0), 1)

    def predicting(self) -> LinearMembers:
        """Return the maximum alone."""
        return linear_members(self.coefficients[None], np.ones(1))

    def predict(self, rows: Entries) -> Array:
        """Probabilities (T, A) at the maximum."""
        return np.concatenate([pool.prediction() for pool in pools(self.predicting(), rows)])

    def in_units(self, model: ChoiceModel) -> Array:
        """Return draws (S, d) in the units of the data."""
        found: Array = self.draws() @ model.design_.to_units().T
        return found

    def coefficients_table(self, model: ChoiceModel, prob: float, errors: str) -> Table:
        """Return coefficient, standard error, z, p of a two-sided test, and an interval."""
        A = model.design_.to_units()
        centre, covariance = A @ self.coefficients, A @ self.covariance(errors) @ A.T
        error, width = np.sqrt(np.maximum(np.diag(covariance), 0.0)), ndtri((1 + prob) / 2)
        with np.errstate(divide="ignore", invalid="ignore"):
            z = centre / error
        return {
            "column": model.design_.names_,
            "coefficient": centre,
            "std_error": error,
            "z": z,
            "p": 2 * ndtr(-np.abs(z)),
            "lower": centre - width * error,
            "upper": centre + width * error,
        }

    def verdict(self, model: ChoiceModel) -> tuple[bool | None, str]:
        """Return whether the optimisation ended at a maximum."""
        if not self.converged:
            return False, "the climb did not reach a maximum"
        what = "the maximum of the likelihood" if self.spread is None else "the mode of the posterior"
        return True, f"{what}, with standard errors from the curvature there"


@dataclass(frozen=True)
class LinearDraws(LinearChoices):
    """Posterior draws of the coefficients.

    Attributes
    ----------
    coefficients : (chain, draw, d) array
        β.
    spread : float
        Standard deviation of the normal prior of each coefficient.
    """

    drawn = ("coefficients",)
    coefficients: Array = field(repr=False)
    spread: float

    @property
    def shape_of_estimate(self) -> tuple[int, int]:
        """Shape (1, d): one group, d coefficients."""
        return 1, self.coefficients.shape[2]

    @property
    def counted(self) -> tuple[int | None, bool]:
        """Number of coefficients, and False: draws are not at a maximum."""
        return self.coefficients.shape[2], False

    def members(self, every: bool = False) -> LinearMembers:
        """Return the draws, at most 400 unless `every`."""
        found = self.coefficients.reshape(-1, self.coefficients.shape[2])
        if not every and len(found) > POOLED:
            found = found[np.linspace(0, len(found) - 1, POOLED).round().astype(np.intp)]
        return linear_members(found, np.full(len(found), 1 / len(found)))

    def reported(self) -> LinearMembers:
        """Return the posterior mean of the coefficients."""
        return linear_members(self.coefficients.mean(axis=(0, 1))[None], np.ones(1))

    def in_units(self, model: ChoiceModel) -> Array:
        """Return draws (S, d) in the units of the data."""
        found: Array = self.coefficients.reshape(-1, self.coefficients.shape[2]) @ model.design_.to_units().T
        return found

    def coefficients_table(self, model: ChoiceModel, prob: float, errors: str) -> Table:
        """Return mean, standard deviation, interval, the probability of being above 0, ESS and R-hat."""
        if errors != "classical":
            raise ValueError(
                f"errors={errors!r} would be ignored: intervals of draws are those of the posterior. Leave it out, or "
                "fit with inference='em'."
            )
        draws, tail = self.in_units(model), (1 - prob) / 2
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
        columns: Table = {"column": model.design_.names_, "mean": draws.mean(axis=0), "sd": draws.std(axis=0, ddof=1)}
        columns |= {"lower": lower, "upper": upper, "positive": positive(draws)}
        found = model.diagnostics_
        if found is not None and "coef" in found.groups:
            measured = found.groups["coef"]
            columns |= {"ess": np.fmin(measured.ess_bulk, measured.ess_tail)[0], "rhat": measured.rhat[0]}
        return columns

    def table(self, model: ChoiceModel, prob: float) -> Table:
        """Return the coefficients, rounded; R-hat to two decimals, ESS to integers."""
        found = super().table(model, prob)
        return found | {name: found[name].round(k) for name, k in (("ess", 0), ("rhat", 3)) if name in found}

    def verdict(self, model: ChoiceModel) -> tuple[bool | None, str]:
        """Return whether the chains agree."""
        return agreement(model.diagnostics_)

    def variables(self, model: ChoiceModel, raw: bool) -> Variables:
        """Return the coefficients in the units of the data."""
        values = {"coefficient": self.coefficients @ model.design_.to_units().T}
        coords: Table = {"column": model.design_.names_, "class": model.alternatives_}
        return Variables(values, {"coefficient": ["column"]}, coords)

    def quantities(self, model: ChoiceModel) -> Quantities:
        """Return the coefficients, the log-posterior and the worst-mixing probability."""
        found = model.diagnostics_
        scalars = {} if found is None else found.scalars(model.alternatives_)
        values = self.coefficients @ model.design_.to_units().T
        return Quantities(
            scalars | {"log-likelihood": ("log-posterior", model.trace_)},
            "coefficient of ",
            values[:, :, None],
            model.design_.names_,
        )
