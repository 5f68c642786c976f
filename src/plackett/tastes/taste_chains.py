"""Chains of tastes and of their law: state, sampler, and one run of the driver."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from plackett.compute.pieces import cores
from plackett.inference.driver import Chain, Run, Source
from plackett.inference.gibbs import Gibbs
from plackett.inference.limits import Clock
from plackett.inference.store import Portion
from plackett.linear.newton import maximise
from plackett.model.diagnostics import PROBED, Diagnostics, Report, diagnose
from plackett.model.race import Array
from plackett.model.taste_law import TasteLaw, correlations, deviations, normal_points
from plackett.tastes.moves import Mover
from plackett.tastes.panel import Codes, Panel
from plackett.tastes.person_steps import ANCHOR, ERROR, FIRST_STEP, MEAN_STEP, STEP, Persons
from plackett.tastes.population import Population, PopulationPrior

LONGEST, TOGETHER = 6, 4  # maximum of leapfrog steps of persons, and of joint moves
GOAL, GAIN, DELAY, DECAY = 0.8, 0.05, 10.0, 0.75  # parameters of dual averaging of the joint step
RENEWED = (1, 2, 4, 8)  # sixteenths of tuning after which the metric is estimated anew
NUMBERS, FEWEST, MOST = 1 << 22, 10, 250  # limit of numbers in persons' draws, and limits of draws per chain
LARGE = 1 << 21  # numbers per pass from which threads share the pieces of one chain
POINTS = 16  # points of the population for diagnostics of predictions
SPREAD = 0.5  # spread of starting points


class TasteState(NamedTuple):
    """State of a chain, its adaptation, and the stored draws of persons' tastes."""

    tastes: Array  # (N, d)
    slopes: Array  # (N, p)
    values: Array  # (N,)
    steps: Array  # (4, N)
    mean: Array  # (d,)
    factor: Array  # (d, d)
    fixed: Array  # (q,)
    metric: Array  # (D, D): lower root of the metric of joint moves
    walk: Array  # (5,): dual averaging of joint moves, as rows of steps, and its iterations
    kept: Array  # (R, N, d): tastes of every thin-th iteration after tuning
    counts: Array  # (3,): draws in `kept`, thin, iterations after tuning

    @property
    def persons(self) -> Persons:
        """State of the persons."""
        return Persons(self.tastes, self.slopes, self.values, self.steps)

    @property
    def population(self) -> Population:
        """Current law."""
        return Population(self.mean, self.factor, self.fixed)

    def settle(self, at: Population) -> None:
        """Set the law."""
        self.mean[...], self.factor[...], self.fixed[...] = at

    def keep(self) -> None:
        """Store the tastes of this iteration if it is due; when the store is full, every second draw is dropped."""
        count, thin, iteration = (int(n) for n in self.counts)
        if iteration % thin == 0:
            if count == len(self.kept):
                half = -(-count // 2)
                self.kept[:half] = self.kept[:count:2].copy()
                count, thin = half, 2 * thin
            if iteration % thin == 0:
                self.kept[count] = self.tastes
                count += 1
        self.counts[:] = count, thin, iteration + 1


SEEN = 4  # index of TasteState.walk


class TasteSampler:
    """Advance chains: persons, law, and joint moves."""

    def __init__(self, mover: Mover, workers: int):
        self.mover, self.workers = mover, workers

    def advance(self, chain: Chain, tuning: bool, mean: Array, factor: Array, fixed: Array, value: Array) -> None:
        """Fill draws of the law, and the log-likelihood given the tastes."""
        state: TasteState = chain.state
        if not len(mean):
            self.mover.load_kernels(state.persons, state.population)
        for t in range(len(mean)):
            self._iterate(state, chain.rng, tuning)
            if not tuning:
                state.keep()
            mean[t], factor[t], fixed[t], value[t] = *state.population, state.values.sum()

    def _iterate(self, state: TasteState, rng: np.random.Generator, tuning: bool) -> None:
        mover, walk = self.mover, state.walk
        mover.move_persons(rng, state.persons, state.population, tuning, int(walk[SEEN]))
        state.settle(mover.prior.renew(rng, state.population, state.tastes))
        step, leaps = float(np.exp(walk[STEP if tuning else MEAN_STEP])), 1 + int(rng.integers(TOGETHER))
        reached, accepted = mover.move_together(rng, state.persons, state.population, state.metric, step, leaps)
        state.settle(reached)
        if tuning:
            n = walk[SEEN] = walk[SEEN] + 1
            walk[ERROR] += (GOAL - accepted - walk[ERROR]) / (n + DELAY)
            walk[STEP] = walk[ANCHOR] - np.sqrt(n) / GAIN * walk[ERROR]
            walk[MEAN_STEP] += n**-DECAY * (walk[STEP] - walk[MEAN_STEP])

    def adapt(self, chains: list[Chain], states: Portion, done: float) -> None:
        """Estimate the metric anew as the mean over chains, and restart the adaptation of steps."""
        if round(16 * done) not in RENEWED:
            return
        found = [self.mover.curvature(chain.state.population, chain.state.persons) for chain in chains]
        root = np.linalg.cholesky(sum(found) / len(found))
        for chain in chains:
            state: TasteState = chain.state
            state.metric[...] = root
            for steps in (state.steps, state.walk):
                steps[ANCHOR], steps[STEP], steps[ERROR] = steps[MEAN_STEP], steps[MEAN_STEP], 0.0
            state.walk[SEEN] = 0.0


def begin(mover: Mover, rng: np.random.Generator, centre: tuple[Array, Array], kept: int) -> TasteState:
    """Start a chain at a dispersed point around a logit with these coefficients and errors."""
    panel, law = mover.panel, mover.law
    N, p, d = panel.n_persons, panel.n_columns, len(law.random)
    beta, error = centre
    log = law.sign != 0
    size = np.where(log, np.maximum(law.sign * beta[law.random], 0.05), 1.0)
    middle = np.where(log, np.log(size), beta[law.random])
    mean = middle + SPREAD * rng.standard_normal(d) * np.where(
        log, 1.0, np.maximum(np.abs(middle), 2 * error[law.random])
    )
    factor = np.diag(np.exp(np.log(SPREAD) + SPREAD * rng.standard_normal(d)))
    fixed: Array = beta[law.fixed] + 2 * error[law.fixed] * rng.standard_normal(len(law.fixed))
    steps = np.zeros((4, N))
    steps[[STEP, MEAN_STEP, ANCHOR]] = np.log(FIRST_STEP)
    walk = np.zeros(5)
    walk[[STEP, MEAN_STEP, ANCHOR]] = np.log(FIRST_STEP)
    persons, at = Persons(np.empty((N, d)), np.empty((N, p)), np.empty(N), steps), Population(mean, factor, fixed)
    mover.place(at, rng.standard_normal((N, d)), persons)
    root = np.asarray(np.linalg.cholesky(mover.curvature(at, persons)), dtype=np.float64)
    return TasteState(*persons, *at, root, walk, np.empty((kept, N, d)), np.array([0.0, 1.0, 0.0]))


def pooled_logit(panel: Panel, precision: float, loose: Codes | None = None) -> tuple[Array, Array]:
    """Return mode and standard errors of common coefficients; of `loose` ones, errors given all others.

    Loose coefficients are not identified: chains that begin apart in each of them would begin in the wilderness.
    """
    best = maximise(panel.packed, precision)
    error = np.sqrt(np.diag(np.linalg.inv(best.curvature)))
    if loose is not None:
        error[loose] = 1 / np.sqrt(np.diag(best.curvature)[loose])
    return best.beta, error


class TasteRun(Run):
    """One run of the chains, new or continued from a checkpoint."""

    def __init__(
        self,
        settings: Gibbs,
        source: Source,
        panel: Panel,
        law: TasteLaw,
        clock: Clock,
        loose: Codes | None = None,
    ):
        self.panel, self.law = panel, law
        prior = PopulationPrior.of(law)
        beside = min(settings.chains, cores())
        threads = max(cores() // beside, 1) if panel.packed.X.size > LARGE else 1
        self.mover = Mover(panel, law, prior, LONGEST, threads)
        N, d, q = panel.n_persons, len(law.random), len(law.fixed)
        kept = int(np.clip(NUMBERS // (N * d * settings.chains), FEWEST, MOST))
        centre = pooled_logit(panel, prior.fixed_spread**-2.0, loose)
        generators = [np.random.default_rng(seed) for seed in source.seed.spawn(settings.chains)]
        chains = [Chain(begin(self.mover, rng, centre, kept), rng) for rng in generators]
        self.points = normal_points(POINTS, d)
        shapes: dict[str, tuple[int, ...]] = {"mean": (d,), "factor": (d, d), "fixed": (q,), "value": ()}
        held = panel.packed.X, *panel.packed.outcomes, panel.owned
        identity = (*held, *law, LONGEST, TOGETHER)
        super().__init__(settings, source, TasteSampler(self.mover, beside), chains, shapes, identity, clock)

    def probe(self, draws: Portion) -> Array:
        """Return probabilities (chain, draw, situation, alternative) of some situations for new persons."""
        X, (start, *_), _ = self.panel.packed
        some = np.linspace(0, len(start) - 2, min(PROBED, len(start) - 1)).astype(np.intp)
        tastes = draws["mean"][:, :, None] + np.einsum("cdkl,rl->cdrk", draws["factor"], self.points)
        coefficients = self.law.coefficients(tastes, draws["fixed"][:, :, None])
        width = int(np.diff(start)[some].max())
        found = np.zeros((*draws["value"].shape, len(some), width))
        for s, t in enumerate(some):
            utility = coefficients @ X[start[t] : start[t + 1]].T
            share = np.exp(utility - utility.max(axis=-1, keepdims=True))
            share /= share.sum(axis=-1, keepdims=True)
            found[:, :, s, : share.shape[-1]] = share.mean(axis=2)
        return found

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Return R-hat and ESS of the law, and of predicted probabilities."""
        draws = self.draws()
        below = np.tril_indices(len(self.law.random), -1)
        quantities: dict[str, Any] = {"mean": draws["mean"], "sd": np.log(deviations(draws["factor"]))}
        if len(self.law.fixed):
            quantities["fixed"] = draws["fixed"]
        if self.law.correlated:
            quantities["correlation"] = correlations(draws["factor"])[..., below[0], below[1]]
        return diagnose(report, **quantities, probability=self.probe(draws))

    def kept_tastes(self) -> tuple[Array, int]:
        """Return draws (chain, draw, N, d) of persons' tastes, and the number of draws of the law per such draw."""
        counts = [chain.state.counts.astype(int).tolist() for chain in self.chains]
        thin = max(self.store.thin, *(thin for _, thin, _ in counts))
        every = thin // self.store.thin
        shown = min(-(-self.store.count // every), *(-(-count * own // thin) for count, own, _ in counts))
        of_chains = zip(self.chains, counts, strict=True)
        return np.array([chain.state.kept[:: thin // own][:shown] for chain, (_, own, _) in of_chains]), every
