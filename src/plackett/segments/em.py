"""Maximum likelihood of segments, or the mode of their parameters, by EM from several starts.

Person i has the log-likelihood ln Σ_c π_c e^{V_ic}. The E-step is r_ic ∝ π_c e^{V_ic}, the M-step the shares π_c = mean
of r_ic and better parameters given the weights r. Each cycle is two steps and an extrapolation (Varadhan & Roland 2008)
that is taken only where the objective does not fall.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from scipy.special import logsumexp

from plackett.model.race import Array
from plackett.segments.persons import Persons

LEAST = 1e-9  # of what a share counts in the M-step beyond its persons, so that none is 0
SHORT, LONG = 10, 3  # cycles of every start, and starts that are followed to the end
STRETCH = 1e4  # longest extrapolation, in steps


class Place(NamedTuple):
    """Parameters (C, D) and ln π (C,)."""

    parameters: Array
    log_shares: Array


class Climbed(NamedTuple):
    """Where a climb ended.

    Attributes
    ----------
    place : Place
        The best place.
    value : float
        The log-likelihood plus the log-prior there.
    member : (N, C) array
        Membership probabilities of the persons.
    trace : list of float
        The objective after each step that was taken.
    converged : bool
        Whether the last step moved nothing by more than the tolerance.
    """

    place: Place
    value: float
    member: Array
    trace: list[float]
    converged: bool


def memberships(values: Array, log_shares: Array) -> tuple[Array, Array]:
    """Posterior probabilities (N, C) of the segments of each person, and the log-likelihood (N,) of each."""
    joint = values + log_shares
    total = logsumexp(joint, axis=1)
    return np.exp(joint - total[:, None]), total


class _Step(NamedTuple):
    """The objective at a place, its memberships, and the place after one step of EM."""

    at: Place
    value: float
    member: Array
    next: Place


def _step(persons: Persons, at: Place) -> _Step:
    found = persons.expect(at.parameters)
    member, total = memberships(found.values, at.log_shares)
    value = float(persons.counts @ total) + persons.log_prior(at.parameters) + LEAST * float(at.log_shares.sum())
    weight = member * persons.counts[:, None]
    sums = weight.sum(axis=0) + LEAST
    return _Step(at, value, member, Place(found.improved(weight), np.log(sums / sums.sum())))


def _moved(persons: Persons, step: _Step) -> float:
    """By how much a step of EM moves parameters and shares at the most."""
    of_shares = np.abs(np.exp(step.next.log_shares) - np.exp(step.at.log_shares)).max()
    return max(persons.distance(step.at.parameters, step.next.parameters), float(of_shares))


def _extrapolated(persons: Persons, first: Place, second: Place, third: Place) -> Place:
    """A place farther along the way of three."""
    turns, sizes = [], np.zeros(2)
    for a, b, c in zip(first, second, third, strict=True):
        r, v = b - a, c - 2 * b + a
        turns.append((a, r, v))
        sizes += (r**2).sum(), (v**2).sum()
    stretch = min(max(float(np.sqrt(sizes[0] / max(sizes[1], 1e-300))), 1.0), STRETCH)
    parameters, shares = (a + 2 * stretch * r + stretch**2 * v for a, r, v in turns)
    return Place(persons.normalised(parameters), shares - logsumexp(shares))


def climb(persons: Persons, start: Place, tol: float, cycles: int) -> Climbed:
    """Cycles of EM; the objective never falls.

    Parameters
    ----------
    persons : Persons
        The observations.
    start : Place
        Where to begin.
    tol : float
        The climb ends where a step of EM moves nothing by more.
    cycles : int
        Cycles at the most.
    """
    here = _step(persons, start)
    trace, converged = [here.value], False
    for _ in range(cycles):
        if _moved(persons, here) <= tol:
            converged = True
            break
        second = _step(persons, here.next)
        trace.append(second.value)
        with np.errstate(all="ignore"):  # an extrapolation too far is refused
            farther = _extrapolated(persons, here.at, second.at, second.next)
            tried = _step(persons, farther) if all(np.isfinite(x).all() for x in farther) else None
        here = tried if tried is not None and tried.value >= second.value else _step(persons, second.next)
        trace.append(here.value)
    return Climbed(here.at, here.value, here.member, trace, converged)


def _starts(persons: Persons, segments: int, starts: int, rng: np.random.Generator) -> Iterator[Place]:
    base, equal = persons.base(), np.full(segments, -np.log(segments))
    for _ in range(starts if segments > 1 else 1):
        disturbed = persons.disturbed(base, segments, rng) if segments > 1 else base[None]
        yield Place(persons.normalised(disturbed), equal)


def maximum(persons: Persons, segments: int, starts: int, rng: np.random.Generator, tol: float, cycles: int) -> Climbed:
    """The best of climbs from several starts: all make a few cycles, and the best of them go on to the end."""
    begun = [climb(persons, start, tol, min(SHORT, cycles)) for start in _starts(persons, segments, starts, rng)]
    begun.sort(key=lambda found: -found.value)
    ended = [each if each.converged else _continued(persons, each, tol, cycles) for each in begun[:LONG]]
    return max(ended, key=lambda found: found.value)


def _continued(persons: Persons, begun: Climbed, tol: float, cycles: int) -> Climbed:
    found = climb(persons, begun.place, tol, cycles)
    return found._replace(trace=begun.trace + found.trace[1:])
