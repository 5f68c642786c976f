"""Learned directions over situations: rates r_e = Σ_j exp(z_e·β_j) λ_{g(e)j}, any response, and how they are learned.

Rankings: a row of persons' covariates shared by the entries of a situation, and λ of the items, each of which owns
components. Where σ_1 is small this is exploded logit with interactions. Choices: a row of attributes for each entry,
and one group, or those whose weights differ, with one owner of all components: conditional logit.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from plackett.data.observations import Observations, Situations
from plackett.directions.positions import directions_and_weights
from plackett.directions.prior import Prior, inverse_weights, n_owners, parts, reflected, size
from plackett.engines.base import Gradient
from plackett.engines.factory import make_engine
from plackett.engines.situations import canonical
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.base import Fit
from plackett.model.diagnostics import probed
from plackett.model.mixture import Entries, log_rates, normalised, outcome_values, shares, table_of
from plackett.model.race import Array, Weights
from plackett.posterior.situations import SituationDraws
from plackett.responses import Choice
from plackett.responses.base import Response, checked

if TYPE_CHECKING:
    from plackett.cluster.situation_directions import Sent

SCALES = 0.5  # σ_0 and σ_1 at the start
FOREIGN = -4.0  # ln λ of a group that does not own the component
JITTER = 0.3  # deviation of v
FARTHEST = 3.0  # ln of the worth of a group, from their average
STEPS = 20  # of the worths
OWNED = 2  # components of a group, where groups own them
COMMON = 6  # components of the one owner, where groups own none
FLOATS = (
    1000  # situations from which on chains walk in floats; these cut votes off below e^−50, where few rows may lead
)


@dataclass(frozen=True)
class SituationTask:
    """Situations in canonical order with their covariates, standardised: nothing depends on the order that came.

    Attributes
    ----------
    Z : (rows, d) array
        The design that is looked at.
    situations : Situations
        Outcomes with their counts, and the group and the row of each entry.
    response : Response
        What an outcome means.
    n_groups : int
        K, rows of λ.
    designs : tuple of (rows, d') arrays
        Other covariates of the same rows, of which held-out situations choose; the first is the simplest.
    owned : bool
        Whether each group owns components (items), or all belong to one owner (alternatives with attributes).
    persons : (T,) array, optional
        Situations with the same number are held out together.
    sent : Sent, optional
        All situations on the workers of a cluster, where these make the passes.
    places : (T,) array, optional
        The numbers of the situations among those.
    """

    Z: Array
    situations: Situations
    response: Response
    n_groups: int
    designs: tuple[Array, ...]
    owned: bool
    seed: np.random.SeedSequence
    persons: npt.NDArray[np.intp] | None = None
    progress: bool = False
    seeded: bool = True  # whether the user chose the seed
    engine: str = "auto"
    sent: Sent | None = None
    places: npt.NDArray[np.intp] | None = None

    @property
    def weight(self) -> Array:
        """How often each situation was seen."""
        return self.situations.outcomes.counts

    @property
    def n_seen(self) -> float:
        """All situations, each as often as it was seen."""
        return float(self.weight.sum())

    @property
    def n_situations(self) -> int:
        """T."""
        return len(self.weight)

    @property
    def n_columns(self) -> int:
        """d."""
        return self.Z.shape[1]

    @property
    def wide(self) -> bool:
        """Whether covariates outnumber situations."""
        return self.n_columns > self.n_situations

    @property
    def chosen(self) -> bool:
        """Whether outcomes are choices, all of whose probabilities are predicted."""
        return isinstance(self.response, Choice)

    @property
    def n_predicted(self) -> int:
        """Of a choice the probabilities of all entries, the chosen first; else that of the whole outcome."""
        return int(np.diff(self.situations.outcomes.start).max()) if self.chosen else 1

    @property
    def identity(self) -> tuple[Any, ...]:
        """All that the posterior depends on, besides the prior, and how situations are cut where they are sent."""
        outcomes, group, row = self.situations
        cut = () if self.sent is None else ("blocks", self.sent.size)
        return self.Z, *outcomes, group, row, type(self.response).__name__, *cut

    def with_design(self, which: int) -> SituationTask:
        """The same with another design."""
        return replace(self, Z=self.designs[which])

    @property
    def flies(self) -> bool:
        """On a GPU."""
        return self.engine == "cupy"

    @property
    def waits(self) -> bool:
        """Whether workers make the passes."""
        return self.sent is not None

    def prepared(self, dtype: npt.DTypeLike) -> Gradient:
        """The situations as the engine holds them, ready for passes."""
        if self.sent is None:
            return self._rows
        which = next(w for w, Z in enumerate(self.designs) if Z is self.Z)
        return self.sent.packed(which, self._numbers, dtype if self.n_situations >= FLOATS else np.float64)

    @property
    def _numbers(self) -> npt.NDArray[np.intp]:
        """Of the situations among all that were sent."""
        return np.arange(self.n_situations) if self.places is None else self.places

    @property
    def _engine(self) -> str:
        """Of what is asked of the situations here, by whom passes are made elsewhere too: where chains start."""
        return self.engine if self.sent is None else "auto"

    @cached_property
    def _rows(self) -> Gradient:
        seen = Observations.of_situations(self.situations, self.response, self.n_groups)
        return make_engine(self._engine).gradient(self.Z, seen, np.float64)

    def compiled_walk(self, rows: Any, prior: Prior) -> Callable[..., None] | None:
        """Chains side by side, unless situations are many, the engine has other plans or the response is foreign."""
        if getattr(rows, "covariates", None) is None:
            return None
        from plackett.directions.situation_density import make_density, walk_on  # kernels, compiled where they are used
        from plackett.engines import exponential_rankings, exponential_situations

        packed = rows.ranked(np.float32 if self.n_situations >= FLOATS else np.float64)
        large = exponential_situations.is_large if packed is None else exponential_rankings.is_large
        packed = rows.covariates if packed is None else packed
        if large(packed, len(prior.owner)):
            return None
        return lambda *how: walk_on(make_density(packed, prior, self.n_columns), *how)

    def part(self, some: npt.NDArray[Any]) -> SituationTask:
        """The same with some of the situations, in their order."""
        chosen = np.sort(np.arange(self.n_situations)[some])
        persons = None if self.persons is None else self.persons[chosen]
        places = None if self.sent is None else self._numbers[chosen]
        return replace(self, situations=self.situations.part(chosen), persons=persons, places=places)

    def entries(self, some: npt.NDArray[Any]) -> Entries:
        """Some of the situations without their outcomes."""
        outcomes, group, row = self.situations.part(np.arange(self.n_situations)[some])
        return Entries(self.Z, group, row, outcomes.start)

    def prior(self, settings: Any, shape: float, components: int | None = None) -> Prior:
        """Who owns which component, and the shapes of the weights: `shape` for a group that does not own it."""
        if self.owned:
            owned = components or settings.components or min(OWNED, settings.owned(self.n_groups))
            prior: Prior = settings.prior(self.n_groups, self.n_columns, shape, owned)
            return prior
        M = components or settings.components or COMMON
        shapes = np.full((self.n_groups, M), float(settings.own_shape))
        single: Prior = settings.prior(1, self.n_columns, shape, M)
        return single._replace(shape=shapes)

    def chain_prior(self, settings: Any, shape: float) -> Prior:
        """The same as chains walk on it: with totals apart where groups own components."""
        return self.prior(settings, shape)._replace(totals=self.owned)

    def start(self, prior: Prior, rng: np.random.Generator) -> Array:
        """Directions along the slope at β = 0, the groups' worths without covariates, and noise."""
        (K, M), d, owners = prior.shape.shape, self.n_columns, n_owners(prior)
        q = np.zeros(size(prior, d))
        u, v, t, _, log_sigma = parts(q, K, M, d, owners)
        log_worth, arrived = self._worths
        owns = prior.owner == np.arange(K)[:, None] if owners == K else np.ones((K, M), dtype=bool)
        log_weights = np.where(owns, log_worth[:, None] - np.log(owns.sum(axis=1, keepdims=True)), FOREIGN)
        slope, of_owner = np.zeros((owners, d)), arrived if owners == K else arrived.sum(keepdims=True)
        np.add.at(slope, prior.owner, self._rows.gradient(np.zeros((M, d)), log_weights).directions)
        log_sigma[:] = np.log(SCALES)
        u[:] = slope / (np.maximum(of_owner, 1.0)[:, None] * SCALES * np.sqrt(d))
        v[:] = JITTER * rng.standard_normal(v.shape)
        t[:] = inverse_weights(log_weights, prior.shape)
        if prior.totals:
            q[-K:] = reflected(np.logaddexp.reduce(log_weights, axis=1))
        return q

    @cached_property
    def _worths(self) -> tuple[Array, Array]:
        """ln of the worth of each group without covariates, kept from running away, and how often it arrived."""
        outcomes, group, row = self.situations
        alike = Situations(outcomes, group, np.zeros_like(row))
        seen = Observations.of_situations(alike, self.response, self.n_groups)
        rows = make_engine(self._engine).rows(np.ones((1, 1)), seen)
        log_worth = np.zeros((self.n_groups, 1))
        for _ in range(STEPS):
            stats = rows.expect(Weights.point(log_worth))
            log_worth = np.log(stats.wins + 0.5) - np.log(stats.exposure + 0.5)
            if not self.response.absolute:
                log_worth -= log_worth.mean()
            log_worth = np.clip(log_worth, -FARTHEST, FARTHEST)
        return log_worth[:, 0], stats.wins[:, 0]

    def unpacked(self, positions: Array, prior: Prior) -> SituationDraws:
        """Draws from positions (chain, draw, D)."""
        beta, log_weights, scales = directions_and_weights(positions, prior, self.n_columns)
        return SituationDraws(beta, log_weights if self.response.absolute else normalised(log_weights), scales)

    def probed(self, draws: SituationDraws) -> Array:
        """Pr(e comes first) of the entries of some situations, (chain, draw, situation, entry)."""
        entries = self.entries(probed(self.n_situations))
        C, D, M, d = draws.directions.shape
        found = log_rates(draws.directions.reshape(-1, M, d), draws.log_weights.reshape(C * D, -1, M), *entries[:3])
        table = table_of(shares(found, entries.start), entries.start, int(np.diff(entries.start).max()))
        return np.moveaxis(table, 0, 1).reshape(C, D, *table.shape[::2])

    def predicted(self, positions: Array, prior: Prior, some: npt.NDArray[Any]) -> Array:
        """Of choices probabilities (n, entries), the chosen first; else Pr(outcome) (n, 1) over that of a guess."""
        beta, log_weights, _ = directions_and_weights(positions, prior, self.n_columns)
        entries, outcomes = self.entries(some), self.situations.part(np.arange(self.n_situations)[some]).outcomes
        log_r = log_rates(beta, log_weights, *entries[:3])
        if self.chosen:
            return table_of(shares(log_r, entries.start).mean(axis=0, keepdims=True), entries.start, self.n_predicted)[
                :, 0
            ]
        guess = outcome_values(np.zeros((1, len(entries.group))), outcomes, self.response)
        values = outcome_values(log_r, outcomes, self.response)
        return np.exp(np.clip(values - guess, -MOST, MOST)).mean(axis=0)[:, None]


MOST = 600.0  # ln of an outcome's probability over that of a guess, at the most


def make_situation_task(
    designs: Sequence[Array],
    situations: Situations,
    response: Response,
    n_groups: int,
    seed: np.random.SeedSequence,
    owned: bool,
    persons: npt.NDArray[np.integer] | None = None,
    progress: bool = False,
    seeded: bool = True,
    engine: str = "auto",
) -> SituationTask:
    """Put situations in an order that depends on what they hold.

    Parameters
    ----------
    designs : sequence of (rows, d) arrays
        Candidate covariates of the rows, each standardised; the simplest first. Held-out situations choose one.
    situations : Situations
        Outcomes with counts, and the group and row of each entry.
    response : Response
        What an outcome means.
    n_groups : int
        Rows of λ: items, or alternatives or persons with weights of their own, or 1.
    seed : SeedSequence
        Of the chains.
    owned : bool
        True: each group owns components (rankings of items by persons with covariates). False: one owner has them all
        (alternatives with attributes), whoever's weights λ are.
    persons : (T,) array of whole numbers, optional
        Situations with the same number are held out together.
    progress, seeded, engine
        As for classes.
    """
    found, order, used = canonical(np.hstack(list(designs)), situations)
    kept = tuple(np.ascontiguousarray(Z[used], dtype=np.float64) for Z in designs)
    people = None if persons is None else np.unique(np.asarray(persons)[order], return_inverse=True)[1].ravel()
    sent = None
    if engine == "dask":
        from plackett.cluster.situation_directions import Sent

        response.check(checked(found.outcomes))
        sent = Sent(kept, found, response, n_groups)
    return SituationTask(kept[0], found, response, n_groups, kept, owned, seed, people, progress, seeded, engine, sent)


def learn(inference: EM | Variational | Gibbs, task: SituationTask, settings: Any, shape: float) -> Fit:
    """Draws of directions and weights, `SituationDraws`, or their mode; ``extra["design_"]`` is the design chosen.

    Parameters
    ----------
    inference : Gibbs or EM
        How.
    task : SituationTask
        The situations.
    settings : LearnedDirections
        Components, prior and the longest trajectory.
    shape : float
        Prior shape of a weight of a group that does not own the component.
    """
    from plackett.directions.situation_folds import climb, sample

    settings.check()
    if isinstance(inference, Gibbs):
        return sample(inference, task, settings, shape)
    if isinstance(inference, EM):
        return climb(inference, task, settings, shape)
    raise ValueError(
        "there is no variational approximation for learned directions: their posterior has many modes. Use "
        "features='exp' for fixed features, or inference='gibbs' or inference='em'."
    )
