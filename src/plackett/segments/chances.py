"""Probabilities of predictions by which chains over segments are judged: mixtures, which do not depend on labels.

Beside what happens once there are pairs of events of one person, since they tell how far segments are apart.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.special import softmax

from plackett.linear.logit_walk import Probed
from plackett.model.race import Array
from plackett.segments.choices import ChoicesOfPersons

Chances = Callable[[Array, Array], Array]  # parameters (S, C, D) and shares (S, C) in, (S, observation, label) out
LISTED = 12  # items


def chances_of_choices(persons: ChoicesOfPersons) -> Chances:
    """Of entries of some situations; and that what was chosen in one and in the next is chosen by one person."""
    some = Probed.of(persons.packed)

    def chances(parameters: Array, shares: Array) -> Array:
        apart = some.probabilities(parameters)  # (S, C, situation, entry)
        mixed = np.einsum("sc,scte->ste", shares, apart)
        both = np.einsum("sc,sct->st", shares, apart[..., 0] * np.roll(apart[..., 0], -1, axis=2))
        pairs = np.zeros((*both.shape, mixed.shape[2]))
        pairs[..., 0], pairs[..., 1] = both, 1.0 - both
        return np.concatenate([mixed, pairs], axis=1)

    return chances


def chances_of_rankings(base: Array) -> Chances:
    """That an item is first, and that one is first and another second, of the best by these log-worths (K,)."""
    some = np.sort(np.argsort(-base, kind="stable")[:LISTED])

    def chances(parameters: Array, shares: Array) -> Array:
        first = softmax(parameters, axis=2)[..., some]
        left = np.maximum(1.0 - first, np.finfo(float).eps)
        second = first[..., :, None] * first[..., None, :] / left[..., :, None] * (1.0 - np.eye(len(some)))
        mixed, pairs = np.einsum("sc,sck->sk", shares, first), np.einsum("sc,sckl->skl", shares, second)
        return np.concatenate([mixed[:, None], pairs], axis=1)

    return chances
