"""Log-posterior of a position and its gradient: a pass over the rows, with K×M mathematics around it.

It exists as a Python function for the rows of any engine, and compiled for the packed data of the compiled engine,
together with the Hamiltonian walk on it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from plackett.compute.compiled import REAL, REALS, apart, inner, jit, make_together, record
from plackett.directions.positions import PLACE, Place, add_prior, make_place, unpack
from plackett.directions.prior import PRIOR, Prior
from plackett.directions.totals import TOTALS, Totals, make_totals, share_out, take_back
from plackett.engines import exponential as classes
from plackett.engines import exponential_choices as choices
from plackett.engines import exponential_rankings as rankings
from plackett.engines import exponential_situations as entries
from plackett.engines.base import Gradient, ParametricGradient
from plackett.inference.hmc import TOO_FAR, Flight, land, launch, leap, push, step_of
from plackett.model.race import Array
from plackett.responses.base import between_bounds


def density_of(
    rows: Gradient, prior: Prior, n_columns: int, of_coordinates: bool = True
) -> Callable[[Array, Array], float]:
    """Return the log-posterior for the pass of any engine, as a function of a position that writes its gradient.

    Parameters of the response are uniform on (0, 1) a priori. If `of_coordinates` is false, the density is that of the
    parameters and not of their coordinates, as for a mode.
    """
    place, totals = make_place(prior, n_columns), make_totals(prior)
    if prior.parameters:
        return _density_with_parameters(cast(ParametricGradient, rows), prior, place, of_coordinates)

    def log_density(q: Array, gradient: Array) -> float:
        unpack(q, prior, place)
        share_out(q, prior, place, totals)
        found = rows.gradient(place.beta, totals.log_weights)
        value = take_back(q, gradient, prior, totals, found.value, found.log_weights)
        value = add_prior(q, gradient, prior, place, value, found.directions, found.log_weights)
        return value

    return log_density


def _density_with_parameters(
    rows: ParametricGradient, prior: Prior, place: Place, of_coordinates: bool
) -> Callable[[Array, Array], float]:
    """Return the log-posterior for positions that end with parameters of the response."""
    P = prior.parameters

    def log_density(q: Array, gradient: Array) -> float:
        unpack(q, prior, place)
        values = between_bounds(q[-P:])
        found = rows.at(values).gradient(place.beta, place.log_weights)
        value = add_prior(q, gradient, prior, place, found.value, found.directions, found.log_weights)
        gradient[-P:] = found.parameters * values * (1 - values)
        if of_coordinates:
            value += float(np.log(values).sum() + np.log1p(-values).sum())
            gradient[-P:] += 1 - 2 * values
        return value

    return log_density


class CompiledDensity(NamedTuple):
    """Inputs of the compiled density: packed rows, prior, and memory of one chain."""

    packed: Any
    prior: Prior
    scratch: Any
    place: Place
    totals: Totals


def record_of(packed: Any, scratch: Any) -> Any:
    """Return the compiled type of `CompiledDensity`."""
    return record(CompiledDensity, packed, PRIOR, scratch, PLACE, TOTALS)


@inner
def begin(q, density):
    """Compute β and ln λ of a position."""
    unpack(q, density.prior, density.place)
    share_out(q, density.prior, density.place, density.totals)


@inner
def end(q, gradient, density, value):
    """Return the log-posterior and write its gradient, from those of the log-likelihood."""
    scratch = density.scratch
    value = take_back(q, gradient, density.prior, density.totals, value, scratch.log_weights)
    return add_prior(q, gradient, density.prior, density.place, value, scratch.directions, scratch.log_weights)


@apart(REAL(REALS, REALS, record_of(classes.FLOAT_COVARIATES, classes.FLOAT_SCRATCH)))
def class_density(q, gradient, density):
    """Log-posterior of a position for classes, up to a constant; writes its gradient in the layout of `parts`."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = classes.log_likelihood_in_floats(
        packed, 0, len(packed.label), place.beta, totals.log_weights, density.scratch
    )
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(choices.FLOAT_PANELS, choices.FLOAT_SCRATCH)))
def choice_density(q, gradient, density):
    """Log-posterior for choices with shared weights."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = choices.log_likelihood_in_floats(
        packed, 0, len(packed.weight), place.beta, totals.log_weights, density.scratch
    )
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(entries.COVARIATES, entries.SCRATCH)))
def entry_density(q, gradient, density):
    """Log-posterior for situations whose entries have their own rows."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = entries.log_likelihood(packed, 0, len(packed.blocks) - 1, place.beta, totals.log_weights, density.scratch)
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(rankings.ROWS, rankings.SCRATCH)))
def ranking_density(q, gradient, density):
    """Log-posterior for rankings with one row each."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = rankings.log_likelihood(packed, 0, len(packed.values), place.beta, totals.log_weights, density.scratch)
    return end(q, gradient, density, value)


@apart(REAL(REALS, REALS, record_of(rankings.FLOAT_ROWS, rankings.FLOAT_SCRATCH)))
def float_ranking_density(q, gradient, density):
    """Log-posterior for rankings with one row each in float32, in half the time."""
    packed, place, totals = density.packed, density.place, density.totals
    begin(q, density)
    value = rankings.log_likelihood_in_floats(
        packed, 0, len(packed.values), place.beta, totals.log_weights, density.scratch
    )
    return end(q, gradient, density, value)


def walking(log_density: Callable[..., float]) -> Any:
    """Return `plackett.inference.hmc.walk_on` for a compiled density."""

    @jit
    def walk_on(density, walk, rng, ends, longest, tuning, draws, values):
        D = len(walk.position)
        flight = Flight(np.empty(D), np.empty(D), np.empty(D), np.empty(D))
        value = log_density(walk.position, flight.gradient, density)
        for t in range(len(draws)):
            step, old_value = step_of(walk, tuning), value
            energy = launch(walk, flight, value, rng)
            for _ in range(1 + int(rng.random() * longest)):
                leap(walk, flight, step)
                value = log_density(walk.position, flight.gradient, density)
                if not value > old_value - TOO_FAR:
                    break
                push(flight, step)
            if not land(walk, flight, energy, value, rng, ends, tuning):
                value = old_value
            values[t] = value
            for i in range(D):
                draws[t, i] = walk.position[i]

    return walk_on


class_walk, choice_walk, entry_walk = walking(class_density), walking(choice_density), walking(entry_density)
ranking_walk, float_ranking_walk = walking(ranking_density), walking(float_ranking_density)


def make_density(packed: Any, prior: Prior, n_columns: int) -> CompiledDensity:
    """Make the density on packed rows, with memory for one chain."""
    (K, M), kind = prior.shape.shape, kind_of(packed)
    if kind is classes:
        scratch: Any = classes.make_scratch(M, n_columns, K, np.float32)
    else:
        scratch = kind.make_scratch(packed, M, n_columns, K)
    return CompiledDensity(packed, prior, scratch, make_place(prior, n_columns), make_totals(prior))


def kind_of(packed: Any) -> Any:
    """Return the module of the packed rows."""
    kinds: dict[type, Any] = {
        classes.ClassCovariates: classes,
        choices.PackedChoices: choices,
        entries.SituationCovariates: entries,
        rankings.RankedRows: rankings,
    }
    return kinds[type(packed)]


def walk_of(packed: Any) -> Any:
    """Return the walk on packed rows."""
    kind = kind_of(packed)
    if kind is rankings:
        return float_ranking_walk if packed.values.dtype == np.float32 else ranking_walk
    return {classes: class_walk, choices: choice_walk, entries: entry_walk}[kind]


def walk_on(density: CompiledDensity, *how: Any) -> None:
    """Run iterations of a chain, as `plackett.inference.hmc.walk_on` does."""
    walk_of(density.packed)(density, *how)


def make_kernels(packed: Any, *others: Any) -> None:
    """Compile what the walk on packed rows calls, the pass in float64 for modes, and others, in two processes."""
    make_together(walk_of(packed), kind_of(packed).log_likelihood, *others)


def compiled_walk(rows: Gradient, prior: Prior, n_columns: int, dtype: npt.DTypeLike) -> Callable[..., None] | None:
    """Return a function that advances a chain without Python; None if threads share the rows or passes are remote."""
    packed = rows.packed_for(len(prior.owner), dtype)
    return None if packed is None else lambda *how: walk_on(make_density(packed, prior, n_columns), *how)
