"""How much the next comparison of two items is expected to say about the worths: mutual information over draws."""

from __future__ import annotations

import numpy as np

from plackett.model.race import Array
from plackett.posterior.base import DRAWS, Codes
from plackett.responses.pair_laws import FIRST, PairLaw


def pair_information(
    log_rates: Array, values: Array, law: PairLaw, outcomes: int, first: Codes, second: Codes
) -> tuple[Array, Array]:
    """Return the expected gain (pairs,) in nats, and the predicted probabilities (outcomes, pairs) of a comparison.

    With p_s the probabilities of the outcomes under draw s, the gain is H(mean p_s) − mean H(p_s): the mutual
    information between the outcome and the draw. `log_rates` (S, K) and the parameters `values` (S, P) of the law of
    pairs are those of the draws, of which at most some hundred are used, evenly spaced. `outcomes` is 2 if the law has
    no ties, else 3.
    """
    some = np.linspace(0, len(log_rates) - 1, min(len(log_rates), DRAWS)).round().astype(np.intp)
    mean, surprise = np.zeros((outcomes, len(first))), np.zeros(len(first))
    for s in some:
        logs = law.chances(log_rates[s, first], log_rates[s, second], values[s]).value[:outcomes]
        p = np.exp(logs)
        mean += p
        surprise -= np.where(p > 0, p * logs, 0.0).sum(axis=0)
    mean /= len(some)
    whole = -np.where(mean > 0, mean * np.log(np.where(mean > 0, mean, 1.0)), 0.0).sum(axis=0)
    return np.maximum(whole - surprise / len(some), 0.0), mean


def share_of_first(probabilities: Array) -> Array:
    """Return the expected share of the first item: its wins, and half of the ties."""
    found: Array = probabilities[FIRST] + (probabilities[2] / 2.0 if len(probabilities) == 3 else 0.0)
    return found
