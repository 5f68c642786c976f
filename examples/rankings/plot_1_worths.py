"""
Partial rankings: absent or last?
=================================

Sixty guests of a tasting rank ciders. Everyone tastes four of the eight, and few had the last cider, which came late.
The data are simulated, so that estimates can be compared with the truth.
"""

# %%
# A tasting
# ---------
# In the simulation each cider arrives after an exponential time with its worth as the rate, and a ranking is the order
# of arrivals. A cider that a guest did not taste is *absent*: the ranking says nothing about it.

import matplotlib.pyplot as plt
import numpy as np

from plackett import PlackettLuceRanker, Rankings, plots
from plackett.simulate import rankings

items = ["Amber", "Bramley", "Cox", "Dabinett", "Egremont", "Foxwhelp", "Golden", "Harvest"]
log_worth = np.array([1.2, 0.8, 0.5, 0.1, -0.2, -0.7, -1.3, 0.9])
log_worth -= log_worth.mean()
served = np.array([1, 1, 1, 1, 1, 1, 1, 0.1])  # how often each is poured
rng = np.random.default_rng(3)
orders = []
for order in rankings(np.tile(log_worth, (60, 1)), items=items, rng=rng).to_orders():
    tasted = rng.choice(items, 4, replace=False, p=served / served.sum())
    orders.append([item for item in order if item in tasted])
R = Rankings.from_orders(orders, unranked="absent")
print(R, orders[0], sep="\n")

# %%
# Worths with intervals
# ---------------------
# Differences of log-worths are the log-odds that one cider comes before another. Crosses are the true worths. Harvest,
# which few have tasted, has the widest interval.

ranker = PlackettLuceRanker(random_state=0).fit(None, R)
print(ranker)
table = ranker.worth(prob=0.9)
print(table.round(2))
ax = plots.worth(ranker)
truth = dict(zip(items, log_worth, strict=True))
ax.plot([truth[item] for item in table.index], range(len(items)), "kx", label="simulated with")
ax.legend()

# %%
# In which place is it?
# ---------------------
# The probability of each place, given all rankings. The first and the last place are nearly certain; Harvest may be
# almost anywhere. ``of="ranking"`` answers another question: in which place an item comes in one new ranking.

plots.rank_distribution(ranker)

# %%
# Unranked items
# --------------
# If the guests had tasted all eight and named their best four, the same lists would mean that the other ciders came
# *last*. Under this reading Harvest is punished for having been poured rarely. The data do not tell which reading is
# right, so ``unranked`` has no default.

wrong = PlackettLuceRanker(random_state=0).fit(None, Rankings.from_orders(orders, unranked="last"))
figure, axes = plt.subplots(1, 2, figsize=(10, 4), sharex=True, layout="constrained")
for ax, model, title in zip(axes, (ranker, wrong), ("absent, as it was", "read as last"), strict=True):
    plots.worth(model, ax=ax)
    ax.plot([truth[item] for item in model.worth().index], range(len(items)), "kx")
    ax.set_title(title)
