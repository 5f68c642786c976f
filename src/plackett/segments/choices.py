"""Linear choices by person: log-likelihoods, M-step and information of segments that share some coefficients.

Segment c has the coefficients β_c. Columns named by ``Segments(by=...)`` are its own, the others are the same in all
segments. An M-step is a Newton step on Σ_ic w_ic V_i(β_c), halved until this does not fall.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import NamedTuple, Self

import numpy as np
import numpy.typing as npt

from plackett.linear.identification import unidentified, words_for_unidentified
from plackett.linear.likelihood import LinearSituations, evaluate, scores_of
from plackett.linear.newton import maximise, solved
from plackett.model.race import Array
from plackett.responses.base import Outcomes, Whole, in_order
from plackett.segments.persons import Codes, Expected

Mask = npt.NDArray[np.bool_]
HALVINGS = 30
DISTURBED = 1.0  # deviation of a start from the coefficients of a single segment, per standardised column


class Layout(NamedTuple):
    """Free parameters of C segments: the shared coefficients, then those of each segment in turn.

    Attributes
    ----------
    places : (C, d) array
        Where each coefficient stands among the free parameters; −1 for one that is 0.
    size : int
        P.
    """

    places: Codes
    size: int

    @classmethod
    def of(cls, own: Mask, ignored: Mask, segments: int) -> Layout:
        """Columns that differ between segments, and those among them that the last of several segments ignores."""
        shared = int((~own).sum())
        places = np.full((segments, len(own)), -1, dtype=np.intp)
        places[:, ~own] = np.arange(shared)
        free = np.tile(own, (segments, 1))
        if segments > 1:
            free[-1] &= ~ignored
        places[free] = shared + np.arange(free.sum())
        return cls(places, shared + int(free.sum()))

    def flat(self, parameters: Array) -> Array:
        """Free parameters (P,) of coefficients (C, d)."""
        found = np.zeros(self.size)
        found[self.places[self.places >= 0]] = parameters[self.places >= 0]
        return found

    def wide(self, free: Array) -> Array:
        """Coefficients (C, d) of free parameters."""
        return np.where(self.places >= 0, np.append(free, 0.0)[self.places], 0.0)

    def gathered(self, c: int, of_columns: Array) -> Array:
        """Numbers (…, d) of the columns of segment c as numbers (…, P) of the free parameters."""
        found, there = np.zeros((*of_columns.shape[:-1], self.size)), self.places[c] >= 0
        found[..., self.places[c][there]] = of_columns[..., there]
        return found


@dataclass(frozen=True)
class ChoicesOfPersons:
    """Situations sorted by person.

    Attributes
    ----------
    packed : LinearSituations
        Situations with standardised columns.
    owned : (N + 1,) array
        The first situation of each person, and the number of situations.
    own, ignored : (d,) arrays of bool
        Which columns differ between segments, and which of them the last of several segments ignores.
    precision : float
        Of the normal prior of each coefficient; 0: none.
    """

    packed: LinearSituations
    owned: Whole
    own: Mask
    ignored: Mask
    precision: float

    @property
    def counts(self) -> Array:
        """Every person counts once."""
        return np.ones(len(self.owned) - 1)

    def layout(self, segments: int) -> Layout:
        """Free parameters of so many segments."""
        return Layout.of(self.own, self.ignored, segments)

    def base(self) -> Array:
        """The maximum of conditional logit."""
        return maximise(self.packed, self.precision).beta

    def disturbed(self, base: Array, segments: int, rng: np.random.Generator) -> Array:
        """Normal steps from the coefficients of a single segment."""
        found = np.tile(base, (segments, 1))
        found[:, self.own] += DISTURBED * rng.standard_normal((segments, int(self.own.sum())))
        return found

    def normalised(self, parameters: Array) -> Array:
        """Shared coefficients are equal, and those that are ignored 0."""
        layout = self.layout(len(parameters))
        return layout.wide(layout.flat(parameters))

    def log_prior(self, parameters: Array) -> float:
        """Each free coefficient is normal."""
        free = self.layout(len(parameters)).flat(parameters)
        return -0.5 * self.precision * float(free @ free)

    def distance(self, one: Array, other: Array) -> float:
        """The largest difference of a standardised coefficient."""
        return float(np.abs(one - other).max())

    def weighted(self, weight: Array) -> LinearSituations:
        """The situations, counted as often as their persons."""
        outcomes = self.packed.outcomes
        counts = outcomes.counts * np.repeat(weight, np.diff(self.owned))
        return self.packed._replace(outcomes=outcomes._replace(counts=counts))

    def values(self, parameters: Array) -> Array:
        """Log-likelihoods (N, C)."""
        found = [np.add.reduceat(scores_of(self.packed, beta)[0], self.owned[:-1]) for beta in parameters]
        return np.stack(found, axis=1)

    def expect(self, parameters: Array) -> Expected:
        """Log-likelihoods; the M-step makes passes of its own."""
        values = self.values(parameters)
        return Expected(values, lambda weight: self._newton(parameters, values, weight))

    def curvature(self, parameters: Array, weight: Array) -> tuple[Array, Array]:
        """Gradient and information of Σ w_ic V_i(β_c) + log-prior in the free parameters."""
        layout = self.layout(len(parameters))
        gradient, information = np.zeros(layout.size), np.zeros((layout.size, layout.size))
        for c, beta in enumerate(parameters):
            found = evaluate(self.weighted(weight[:, c]), beta)
            gradient += layout.gathered(c, found.gradient)
            information += layout.gathered(c, layout.gathered(c, found.information).T)
        gradient = gradient - self.precision * layout.flat(parameters)
        return gradient, information + self.precision * np.eye(layout.size)

    def _newton(self, parameters: Array, values: Array, weight: Array) -> Array:
        """One damped Newton step."""
        layout = self.layout(len(parameters))
        gradient, information = self.curvature(parameters, weight)
        step, here = solved(information, gradient), layout.flat(parameters)
        before = float((weight * values).sum()) + self.log_prior(parameters)
        for _ in range(HALVINGS):
            new = layout.wide(here + step)
            if float((weight * self.values(new)).sum()) + self.log_prior(new) >= before:
                return new
            step = step / 2
        return parameters

    def part(self, some: Codes) -> Self:
        """The situations of some persons."""
        situations, outcomes = in_order(some, self.owned), self.packed.outcomes
        kept = Outcomes(
            np.append(0, np.cumsum(np.diff(outcomes.start)[situations])),
            np.append(0, np.cumsum(np.diff(outcomes.bucket_start)[situations])),
            outcomes.sizes[in_order(situations, outcomes.bucket_start)],
            outcomes.counts[situations],
        )
        X = np.ascontiguousarray(self.packed.X[in_order(situations, outcomes.start)])
        packed = LinearSituations(X, kept, self.packed.stages[situations])
        return replace(self, packed=packed, owned=np.append(0, np.cumsum(np.diff(self.owned)[some])))


def check_columns(persons: ChoicesOfPersons, names: npt.NDArray[np.object_]) -> None:
    """Raise for columns whose coefficients are not identified, unless a prior decides."""
    at_zero = evaluate(persons.packed, np.zeros(len(names)))
    found = unidentified(at_zero.information, float(len(persons.packed.stages)))
    if found and persons.precision == 0.0:
        raise ValueError(
            f"{words_for_unidentified(found, names)}. Leave columns out of the choice sets, or give the coefficients a "
            "prior, features=LinearUtility(spread=10)."
        )


def observed_information(
    persons: ChoicesOfPersons, parameters: Array, log_shares: Array, member: Array
) -> tuple[Array, Array]:
    """Scores (N, Q) of persons and the information (Q, Q) of the mixture (Louis 1982), Q = P + C − 1.

    Coordinates are the free coefficients and ln π_c − ln π_1. With the scores g_ic of the complete data,
    I = E[complete information] − Σ_i Var_i(g_ic) under the membership probabilities.
    """
    layout, C = persons.layout(len(parameters)), len(parameters)
    P, shares = layout.size, np.exp(log_shares)
    complete = np.zeros((len(member), C, P + C - 1))
    for c, beta in enumerate(parameters):
        scores = np.add.reduceat(scores_of(persons.packed, beta)[1], persons.owned[:-1], axis=0)
        complete[:, c, :P] = layout.gathered(c, scores)
        complete[:, c, P:] = (np.arange(1, C) == c) - shares[1:]
    mean = np.einsum("nc,ncq->nq", member, complete)
    variance = np.einsum("nc,ncp,ncq->pq", member, complete, complete) - mean.T @ mean
    found = -variance
    found[:P, :P] += persons.curvature(parameters, member)[1]
    found[P:, P:] += len(member) * (np.diag(shares[1:]) - np.outer(shares[1:], shares[1:]))
    return mean, (found + found.T) / 2
