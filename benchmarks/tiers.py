"""Tiers of items: their number on the arena's votes, seconds and R-hat, and predictions with tiers and without."""

import time
import warnings
from dataclasses import replace

import numpy as np

from benchmarks.comparisons import simulated_votes
from plackett import Gibbs, PlackettLuceRanker, Rankings, Tiers
from plackett.datasets import load

SHARES, SIMULATED, LENGTH = (0.8, 0.01), (40, 5, 100), None
PRIORS = ((1.0, 1.0), (1.0, 0.1))
SMALLEST = {
    "SHARES": (0.5,),
    "SIMULATED": (6, 2, 10),
    "LENGTH": 8,
    "PRIORS": ((1.0, 1.0),),
    "votes": lambda: simulated_votes(6, 300)[0],
}


def votes():
    """The arena's votes."""
    return load("arena").y


def fitted(R, tiers, ties):
    """A model, and the seconds it took."""
    gibbs = Gibbs() if LENGTH is None else Gibbs(draws=LENGTH, tune=LENGTH, chains=2)
    started = time.perf_counter()
    model = PlackettLuceRanker(gibbs, tiers=tiers, ties=ties, random_state=0).fit(None, R)
    return model, time.perf_counter() - started


def part(R, counts):
    """The rankings with these counts."""
    some = np.flatnonzero(counts)
    found = R[some]
    return replace(found, outcomes=found.outcomes._replace(counts=counts[some].astype(float)))


def numbers(R):
    """The number of tiers under priors of the concentration."""
    for prior in PRIORS:
        model, took = fitted(R, Tiers(prior=prior), "photo-finish")
        row, found = model.parameters().loc["tiers"], model.diagnostics_
        rhat, ess = (np.nan, np.nan) if found is None else (found.worst_rhat, found.smallest_ess)
        print(
            f"  α ~ Gam{prior}: {row['mean']:.0f} tiers, {row['lower']:.0f} to {row['upper']:.0f} with 90 %, "
            f"{model.tiers()['tier'].max()} listed; {took:.0f} s, R-hat up to {rhat:.3f}, ESS from {ess:.0f}"
        )


def held_out(R):
    """Log-loss of held-out votes, from a random part of the votes."""
    rng, counts = np.random.default_rng(0), R.counts.astype(int)
    for share in SHARES:
        train = rng.binomial(counts, share)
        test = part(R, counts - train)
        losses = [-fitted(part(R, train), tiers, "photo-finish")[0].score(None, test) for tiers in (False, True)]
        print(
            f"  {train.sum():,} votes: log-loss of the other {test.counts.sum():,.0f} {losses[0]:.5f} without tiers, "
            f"{losses[1]:.5f} with tiers"
        )


def simulation():
    """Votes on items that are in tiers: expected log-loss above that of the true worths."""
    K, H, each = SIMULATED
    rng = np.random.default_rng(0)
    worths = np.exp(np.repeat(rng.normal(size=H), K // H))
    first, second = np.triu_indices(len(worths), 1)
    some = rng.choice(len(first), min(len(first), each * len(worths) // 20), replace=False)
    first, second = first[some], second[some]
    p = worths[first] / (worths[first] + worths[second])
    won = rng.binomial(20, p)
    pairs = np.append(first, second), np.append(second, first)
    R = Rankings.from_pairs(*pairs, counts=np.append(won, 20 - won), items=range(len(worths)))
    losses = []
    for tiers in (False, True):
        model = fitted(R, tiers, "unknown-order")[0]
        q = model.prob_better(of="ranking").loc[range(len(worths)), range(len(worths))].to_numpy()[first, second]
        losses.append((p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))).mean())
    print(
        f"  {len(worths)} items in {H} tiers, {20 * len(first):,} votes: expected log-loss above that of the truth "
        f"{losses[0]:.4f} without tiers, {losses[1]:.4f} with tiers"
    )


def main():
    """Every part; worse results are printed too."""
    warnings.simplefilter("ignore")
    R = votes()
    print(f"Tiers of {len(R.items)} items in {R.counts.sum():,.0f} votes")
    numbers(R)
    held_out(R)
    simulation()
