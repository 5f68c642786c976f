"""
Which pairs to compare next
===========================

Comparisons cost time: a panel tastes two ciders, an expert reads two texts. Which pair should be next? `next_pairs`
lists those whose outcome is expected to tell most about the worths. Here they are compared with pairs at random.
"""

# %%
# A panel
# -------
# Twelve ciders have true worths, which only the simulation knows. A taster prefers one of two with the probability of
# Bradley and Terry. Every cider is tasted against its neighbour once, to begin with.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from scipy.stats import kendalltau

from plackett import Gibbs, PlackettLuceRanker, Rankings, next_pairs

warnings.simplefilter("ignore")  # the fits between rounds are short on purpose
K, ROUNDS, ASKED, PANELS = 12, 11, 5, 8


def taste(rng, log_worth, first, second):
    """Winners and losers of pairs."""
    won = rng.random(len(first)) < 1 / (1 + np.exp(log_worth[second] - log_worth[first]))
    return np.where(won, first, second), np.where(won, second, first)


def fitted(winner, loser):
    """The posterior, by a short run."""
    R = Rankings.from_pairs(winner, loser, items=range(K))
    return PlackettLuceRanker(Gibbs(draws=250, tune=100, chains=2), shape=1.0, random_state=0).fit(None, R)


def wrong(model, log_worth):
    """Share of the pairs of ciders that stand in the wrong order."""
    found = model.worth()["log_worth"].loc[range(K)].to_numpy()
    return (1 - kendalltau(found, log_worth).statistic) / 2


# %%
# Ask, taste, refit
# -----------------
# In each round five pairs are compared. With ``each=1`` a cider occurs in one pair of a round at most, since gains of
# pairs that share an item do not add up.


def panel(seed, informed):
    """Errors after each round."""
    rng = np.random.default_rng(seed)
    log_worth = rng.normal(0, 2.5, K)
    winner, loser = taste(rng, log_worth, np.arange(K), np.roll(np.arange(K), 1))
    errors = []
    for _ in range(ROUNDS):
        model = fitted(winner, loser)
        errors.append(wrong(model, log_worth))
        if informed:
            pairs = next_pairs(model, ASKED, each=1)[["first", "second"]].to_numpy().T
        else:
            pairs = np.array([rng.choice(K, 2, replace=False) for _ in range(ASKED)]).T
        more = taste(rng, log_worth, *pairs)
        winner, loser = np.append(winner, more[0]), np.append(loser, more[1])
    return errors


informed, at_random = (np.mean([panel(s, how) for s in range(PANELS)], axis=0) for how in (True, False))

# %%
# Fewer comparisons
# -----------------
# The share of wrongly ordered pairs, averaged over the panels.

comparisons = K + ASKED * np.arange(ROUNDS)
ax = plt.subplots(layout="constrained")[1]
ax.plot(comparisons, informed, "o-", label="next_pairs")
ax.plot(comparisons, at_random, "s--", label="random pairs")
ax.set(xlabel="comparisons", ylabel="pairs in the wrong order", ylim=(0, None))
ax.legend()
reached = comparisons[informed <= at_random[-1]]
if len(reached):
    print(f"What {comparisons[-1]} random comparisons reach, {reached[0]} do that were asked for.")

# %%
# The gain is largest where worths differ much: a comparison whose outcome is known in advance tells nothing, and random
# pairs contain many of them. Where items are nearly alike, any pair tells about as much.
