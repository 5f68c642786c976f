"""Worths of described items: a run of chains, the mode, and its shape chosen on held-out rankings."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from plackett.compute.memory import check_draws_fit
from plackett.engines.base import Rows
from plackett.inference.base import Fit, Problem, open_ended
from plackett.inference.chains import begin
from plackett.inference.described_walk import DescribedDensity, DescribedWalk
from plackett.inference.driver import Run
from plackett.inference.em import EM
from plackett.inference.folds import Folds, MakeFold, path_of
from plackett.inference.gibbs import WALK, Gibbs
from plackett.inference.limits import Clock
from plackett.inference.store import Portion, room_for
from plackett.inference.sweeps import Target
from plackett.inference.worth_mode import WorthPrior
from plackett.inference.worth_walk import SAMPLER
from plackett.model.diagnostics import Diagnostics, Report, diagnose, probed_probabilities
from plackett.model.mixture import normalised
from plackett.model.race import Array, Weights
from plackett.output.progress import tracked
from plackett.posterior.described import DescribedDraws, DescribedPoint
from plackett.priors import as_prior, tabulate

SHAPES = (1000.0, 300.0, 100.0, 30.0, 10.0, 3.0, 1.0, 0.3)  # that EM tries


class DescribedRun(Run):
    """Run of the sampler of described items; shape None samples a."""

    def __init__(self, settings: Gibbs, problem: Problem, shape: float | None, z: Array):
        goes_on = open_ended(settings)
        settings = settings.completed(**WALK, moves="walk")
        asked_for = settings.draws * (2 if goes_on or settings.target_ess is not None else 1)
        kept = settings.chains * room_for(asked_for, settings.chains, len(z))
        asked = f"Gibbs(draws={settings.draws}, chains={settings.chains})"
        check_draws_fit(kept, (len(z), 1), f"Ask for fewer than {asked}.")
        self.problem, self.learned = problem, shape is None
        prior = as_prior(settings.shape_prior)
        table = tabulate(prior)
        likelihood = problem.rows.likelihood()
        assert likelihood is not None
        walk = DescribedWalk(likelihood, problem, Target(1.0, self.learned, *table), shape, z)
        begin_one = partial(begin, problem, shape, prior.lower, prior.upper)
        generators = [np.random.default_rng(seed) for seed in problem.seed.spawn(settings.chains)]
        chains = [walk.begin(begin_one(rng), rng) for rng in generators]
        K, d = z.shape
        shapes: dict[str, tuple[int, ...]] = {"log_weights": (K, 1), "shape": (), "value": (), "gamma": (d,)}
        if problem.rows.parameters:
            shapes["parameters"] = (len(problem.rows.parameters),)
        identity = (*problem.rows.identity(None), z, shape, *table, SAMPLER)
        super().__init__(settings, problem, walk, chains, shapes, identity, Clock(settings.max_seconds), goes_on)

    def probe(self, draws: Portion) -> Array:
        """Return the probabilities of the items to come first."""
        return probed_probabilities(as_posterior(draws), self.problem.rows.features)

    def measure(self, report: Report | None) -> Diagnostics | None:
        """Diagnose worths, shape, coefficients, parameters of the response and probabilities."""
        draws = self.draws()
        of_response: dict[str, Any] = {"parameters": draws["parameters"]} if "parameters" in draws else {}
        return diagnose(
            report,
            weights=draws["log_weights"],
            shape=np.log(draws["shape"]) if self.learned else None,
            gamma=draws["gamma"],
            **of_response,
            probability=self.probe(draws),
        )


def as_posterior(draws: Portion) -> DescribedDraws:
    """Build the posterior from arrays by name."""
    return DescribedDraws(draws["log_weights"], draws["shape"], None, draws.get("parameters"), gamma=draws["gamma"])


def draw_described(settings: Gibbs, problem: Problem, shape: float | None, z: Array) -> Fit:
    """Draw worths, coefficients of columns z (K, d), and the shape if it is None."""
    run = DescribedRun(settings, problem, shape, z)
    draws = run.run(stacklevel=6)
    fixed = float(np.exp(np.log(draws["shape"]).mean())) if shape is None else shape
    n_iter = run.settings.tune + run.store.iterations
    found = {"diagnostics_": run.diagnose(), "inference_": run.settings}
    return Fit(as_posterior(draws), fixed, draws["value"], n_iter, found)


def mode_of(rows: Rows, shape: float, z: Array) -> tuple[Array, Array, Array, float]:
    """Return ln λ̄ (K, 1), γ, the parameters of the response, and the log-posterior at the mode."""
    likelihood = rows.likelihood()
    assert likelihood is not None
    density = DescribedDensity(likelihood, WorthPrior(shape, 1.0, 0.0, True), z, informed=False)
    q = density.mode()
    K, P = density.K, density.P
    values = np.array([each.bound(u) for each, u in zip(rows.parameters, q[K : K + P], strict=True)])
    return normalised(q[:K, None]), q[K + P :], values, density.slopes(q)[0]


def maximise_described(problem: Problem, shape: float, z: Array) -> Fit:
    """Return the mode in ln λ and γ, which exists at every shape."""
    log_weights, gamma, values, value = mode_of(problem.rows, shape, z)
    parameters = values if len(values) else None
    posterior = DescribedPoint(np.exp(log_weights), None, parameters, gamma=gamma)
    return Fit(posterior, shape, np.array([value]), 1)


def held_out_shape_described(
    em: EM, folds: Folds, make: MakeFold, z: Array, progress: bool
) -> tuple[float, dict[float, float]]:
    """Return the shape with the lowest log-loss of held-out rankings, and the mean loss of each."""
    usual = tuple(em.shapes) == EM().shapes
    shapes = np.array(SHAPES) if usual else path_of(em)
    loss, weight = np.zeros(len(shapes)), 0.0
    for train, test in tracked(folds, progress, "EM, cross-validation"):
        fold = make(train, test)
        if fold is None or fold.others is None:
            continue
        for s, shape in enumerate(shapes.tolist()):
            log_weights, _, values, _ = mode_of(fold.rows, shape, z)
            others = fold.others.at(values) if len(values) else fold.others
            loss[s] -= others.value(Weights.point(log_weights))
        weight += fold.others.n_seen
    loss /= weight
    return float(shapes[np.argmin(loss)]), dict(zip(shapes.tolist(), loss.tolist(), strict=True))
