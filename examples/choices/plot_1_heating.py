"""
How people travel, and what time is worth
=========================================

Commuters choose between bus, car and train, by cost and time. What follows from a fitted model: elasticities, the value
of an hour, and where passengers go if the train is gone. The data are simulated.
"""

# %%
# Choice sets
# -----------
# One row a commuter, with a column for each attribute of each alternative. A third of them have no car.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from plackett import ChoiceSets, PlackettLuceChooser, plots
from plackett.simulate import choices

modes = ["bus", "car", "train"]
n = 500
rng = np.random.default_rng(0)
km = rng.gamma(4, 4, n) + 3
frame = pd.DataFrame(
    {
        "cost_bus": 1.5 + 0.12 * km + rng.normal(0, 0.4, n),
        "cost_car": 2.0 + 0.25 * km * rng.uniform(0.7, 1.3, n),
        "cost_train": 2.5 + 0.20 * km * rng.uniform(0.7, 1.3, n),
        "time_bus": 12 + 2.6 * km * rng.uniform(0.7, 1.3, n),
        "time_car": 6 + 1.5 * km * rng.uniform(0.6, 1.6, n),
        "time_train": 15 + 1.1 * km * rng.uniform(0.7, 1.3, n),
        "has_car": (rng.random(n) < 0.67).astype(int),
    }
).round(1)
X = ChoiceSets.from_wide(frame, alternatives=modes, attributes=["cost", "time"], available={"car": "has_car"})
per_euro, per_minute = -0.30, -0.06  # so that an hour is worth 12
constant = np.array([0.0, 0.6, 0.2])[X.alternative]
y = choices(X, constant + per_euro * X.values[:, 0] + per_minute * X.values[:, 1], rng=rng)
print(X, dict(zip(*np.unique(y, return_counts=True), strict=True)), sep="\n")

# %%
# Fit
# ---
# Directions are learned, and shrink to conditional logit where one of them is enough, as it is here. Coefficients are
# slopes of the log-rate at average alternatives, per unit.

chooser = PlackettLuceChooser(random_state=0).fit(X, y)
print(chooser)
print(chooser.summary())

# %%
# Elasticities of the cost
# ------------------------
# By how many per cent the number of passengers changes if one mode becomes dearer by one per cent everywhere.

table = chooser.elasticities(X, "cost")
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for k, (mode, colour) in enumerate(zip(modes, plots.style.PALETTE, strict=False)):
    rows = table[table["alternative"] == mode]
    places = np.arange(len(rows)) + (k - 1) * 0.2
    ax.vlines(places, rows["lower"], rows["upper"], color=colour, linewidth=2)
    ax.plot(places, rows["elasticity"], "o", color=colour, label=f"passengers of {mode}")
ax.axhline(0, color="grey", linewidth=0.8)
ax.set_xticks(range(3), [f"cost of {mode}" for mode in modes])
ax.set(ylabel="elasticity, 90 % interval")
ax.legend()

# %%
# The value of time
# -----------------
# What a minute less is worth, in units of the cost: the ratio of two slopes, taken draw by draw. The line is what the
# data were simulated with, 60 × 0.06/0.30 = 12 an hour.

worth = chooser.willingness_to_pay("time", "cost", X).set_index("alternative") * 60
print(worth.round(1))
figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.hlines(worth.index, worth["lower"], worth["upper"], linewidth=2, color=plots.style.PALETTE[0])
ax.plot(worth["value"], worth.index, "o", color=plots.style.PALETTE[0])
ax.axvline(60 * per_minute / per_euro, color="grey", linestyle=":")
ax.margins(y=0.2)
ax.invert_yaxis()
ax.set(xlabel="an hour less is worth, 90 % interval")

# %%
# Without the train
# -----------------
# Where its passengers go. Those who have no car have the bus alone, so that more of them end there than the shares of
# bus and car would say.

print(chooser.diversion(X, drop="train"))
