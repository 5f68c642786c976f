"""What predicts where persons belong to segments: members by draw and segment, weighted by shares or memberships."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import ClassVar, Self

import numpy as np
import numpy.typing as npt
from scipy.special import logsumexp, softmax

from plackett.model.mixture import POOLED, Entries
from plackett.model.race import Array
from plackett.posterior.pool import Members, outcome_log_values
from plackett.responses.base import Outcomes, Response

Codes = npt.NDArray[np.intp]


@dataclass(frozen=True)
class SegmentMembers(Members):
    """Utilities of the columns, or log-worths of the items, in each segment of each draw.

    `share` of a member is that of its draw times that of its segment in the population.

    Attributes
    ----------
    parameters_of : (S, D) array
        β, or ln λ where there are no columns.
    mixing : (S,) array
        Share of the segment under the draw.
    columns : bool
        Whether parameters are coefficients of columns.
    known : (draws, N, C) array, optional
        Membership probabilities of the persons of the fit.
    draw, segment : (S,) arrays
        Which of `known` belongs to each member.
    """

    parameters: ClassVar[tuple[str, ...]] = ("parameters_of", "mixing", "draw", "segment")
    parameters_of: Array
    mixing: Array
    columns: bool
    known: Array | None = field(default=None, kw_only=True)
    draw: Codes | None = field(default=None, kw_only=True)
    segment: Codes | None = field(default=None, kw_only=True)

    @property
    def n_groups(self) -> int:
        """Items; one group where there are columns."""
        return 1 if self.columns else self.parameters_of.shape[1]

    @property
    def work(self) -> int:
        """One number."""
        return 1

    def meeting(self, entries: Entries, times: int = 1) -> Self:
        """These members: new persons are among them."""
        return self

    def log_rates(self, entries: Entries) -> Array:
        """ln r_e (S, entries)."""
        if not self.columns:
            return np.asarray(self.parameters_of[:, entries.group])
        return np.asarray((self.parameters_of @ entries.Z.T)[:, entries.row])

    @property
    def directions(self) -> Array:
        """Coefficients as directions (S, 1, d), each with a weight of 1."""
        return self.parameters_of[:, None]

    def component_scores(self, entries: Entries) -> Array:
        """Return the log-rates as scores (S, entries, 1)."""
        return self.log_rates(entries)[:, :, None]

    def within(self, entries: Entries) -> Array:
        """Weights (S, T) of the members within their draws: shares, or memberships of known persons."""
        person = entries.group[entries.start[:-1]] if self.columns else np.full(entries.n_situations, -1)
        found = np.repeat(self.mixing[:, None], len(person), axis=1)
        known = person >= 0
        if known.any():
            assert self.known is not None and self.draw is not None and self.segment is not None
            found[:, known] = self.known[self.draw[:, None], person[known], self.segment[:, None]]
        return found


@dataclass(frozen=True)
class Drawn:
    """Draws of parameters (S, C, D) and shares (S, C); memberships (S, N, C) if they are kept, or (1, N, C) for all."""

    parameters: Array
    shares: Array
    known: Array | None = None

    def members(self, columns: bool, weight: Array | None = None, modes: int = 0) -> SegmentMembers:
        """Members with these weights of the draws, of which the last so many are modes."""
        (S, C, D), one = self.parameters.shape, self.known is not None and len(self.known) == 1
        weight = np.full(S, 1 / S) if weight is None else weight
        return SegmentMembers(
            (weight[:, None] * self.shares).ravel(),
            self.parameters.reshape(S * C, D),
            self.shares.ravel(),
            columns,
            modes=modes * C,
            points=C,
            known=self.known,
            draw=np.zeros(S * C, dtype=np.intp) if one else np.repeat(np.arange(S), C),
            segment=np.tile(np.arange(C), S),
        )


@dataclass(frozen=True)
class SegmentDraws:
    """Draws of segments; one chain of one draw is an estimate.

    Attributes
    ----------
    parameters : (chain, draw, C, D) array
        Coefficients of standardised columns, or log-worths.
    shares : (chain, draw, C) array
        π, segments in one order in all draws, by their average shares.
    membership : (chain, kept, N, C) array, optional
        Membership probabilities of the persons of the fit under every `every`-th draw; None where nobody was named.
    every : int
        How many draws lie between two draws of memberships.
    """

    parameters: Array = field(repr=False)
    shares: Array = field(repr=False)
    membership: Array | None = field(default=None, repr=False)
    every: int = 1

    @property
    def segments(self) -> int:
        """C."""
        return self.shares.shape[2]

    def thinned(self, step: int) -> Self:
        """The first draw of each chain and every `step`-th after it."""
        both, membership = math.lcm(step, self.every), self.membership
        if membership is not None:
            membership = membership[:, :: both // self.every]
        return type(self)(self.parameters[:, ::step], self.shares[:, ::step], membership, both // step)

    def all_draws(self) -> Drawn:
        """All of them."""
        S = self.shares.shape[0] * self.shares.shape[1]
        return Drawn(self.parameters.reshape(S, *self.parameters.shape[2:]), self.shares.reshape(S, -1))

    def some_draws(self, known: bool) -> Drawn:
        """At most 400, evenly spread; where persons are known, those with memberships."""
        if known and self.membership is not None:
            chains, R = self.membership.shape[:2]
            chain, draw = np.divmod(np.arange(chains * R), R)
            of_persons = self.membership.reshape(chains * R, *self.membership.shape[2:])
            return Drawn(self.parameters[chain, draw * self.every], self.shares[chain, draw * self.every], of_persons)
        all_draws = self.all_draws()
        S = len(all_draws.shares)
        some = np.linspace(0, S - 1, min(S, POOLED)).round().astype(np.intp)
        return Drawn(all_draws.parameters[some], all_draws.shares[some])

    def in_words(self) -> str:
        """How many segments, and their average shares."""
        shares = ", ".join(f"{share:.2f}" for share in self.shares.mean(axis=(0, 1)))
        return f"{self.segments} segment{'' if self.segments == 1 else 's'} with shares {shares}"


def person_values(
    members: SegmentMembers, entries: Entries, outcomes: Outcomes, response: Response, person: Codes
) -> Array:
    """Log-likelihoods (S, N) of all that each person did, under each member; outcomes count as often as they say."""
    values = outcome_log_values(members, entries, outcomes, response) * outcomes.counts
    found = np.zeros((len(values), int(person.max()) + 1))
    np.add.at(found.T, person, values.T)
    return found


def memberships_of(members: SegmentMembers, values: Array) -> Array:
    """Membership probabilities (N, C), averaged over the draws, given log-likelihoods (S, N) of new persons."""
    C = members.points
    with np.errstate(divide="ignore"):
        joint = (values + np.log(members.mixing)[:, None]).reshape(-1, C, values.shape[1])
    weight = members.share.reshape(-1, C).sum(axis=1)
    return np.asarray(np.einsum("s,scn->nc", weight, softmax(joint, axis=1)))


def mixture_values(members: Members, values: Array) -> Array:
    """ln Σ_c π_c e^{V_ic} (draws, N) given log-likelihoods (S, N) under members; as they are without segments."""
    if not isinstance(members, SegmentMembers):
        return values
    with np.errstate(divide="ignore"):
        joint = (values + np.log(members.mixing)[:, None]).reshape(-1, members.points, values.shape[1])
    return np.asarray(logsumexp(joint, axis=1))
