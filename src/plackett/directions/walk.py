"""The walk over positions, compiled around the compiled density: `plackett.inference.hmc.walk_on` without Python."""

from __future__ import annotations

import numpy as np

from plackett.compute.compiled import jit
from plackett.directions.density import log_density
from plackett.inference.hmc import TOO_FAR, Flight, land, launch, leap, push, step_of


@jit
def walk_on(density, walk, rng, ends, longest, tuning, draws, values):
    """So many iterations as `draws` (n, D) has room for; `values` (n,) gets the log-density of each."""
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
