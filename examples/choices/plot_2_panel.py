"""
Persons with weights of their own
=================================

Forty persons choose twelve times each between three contracts for electricity. Some look at the price, some at where
the electricity comes from. With ``weights="person"`` everyone has weights of their own, under a common prior. The data
are simulated.
"""

# %%
# A panel
# -------
# A third of the persons cares for green electricity and hardly for the price. Nothing that is known of a person tells
# which, but their choices do.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from plackett import ChoiceSets, PlackettLuceChooser, plots
from plackett.simulate import choices

persons, times = 40, 12
rng = np.random.default_rng(2)
person = np.repeat(np.arange(persons), times)
green = rng.random(persons) < 1 / 3
offers = ["A", "B", "C"]
n = persons * times
frame = pd.DataFrame({f"price_{a}": rng.uniform(20, 40, n).round() for a in offers})
for a in offers:
    frame[f"green_{a}"] = rng.integers(0, 2, n)
X = ChoiceSets.from_wide(frame, alternatives=offers, attributes=["price", "green"])
taste = np.where(green[:, None], [-0.05, 2.5], [-0.35, 0.2])  # of a unit of the price, and of being green
y = choices(X, (X.values * taste[person[X.situation]]).sum(axis=1), rng=rng)

# %%
# Shared weights or one's own
# ---------------------------
# The last four choices of everyone are held out, and persons are known when they are predicted.

train = np.arange(n) % times < 8
models = {}
for weights in ("shared", "person"):
    model = PlackettLuceChooser(weights=weights, random_state=0)
    models[weights] = model.fit(X[train], y[train], groups=person[train])
known = {"shared": {}, "person": {"groups": person[~train]}}
for weights, model in models.items():
    loss = -model.log_likelihood(X[~train], y[~train], **known[weights]).mean()
    right = model.score(X[~train], y[~train], **known[weights])
    print(f"{weights:7s} weights: held-out log-loss {loss:.3f}, {right:.0%} right")

# %%
# What is learned of a person
# ---------------------------
# Everyone is asked the same: a green contract at 32, or one that is not at 28? Shared weights say the same of all.

question = pd.DataFrame(
    {"price_A": [32], "green_A": [1], "price_B": [28], "green_B": [0], "price_C": [99], "green_C": [0]}
)
there = question.assign(there_A=1, there_B=1, there_C=0)
asked = ChoiceSets.from_wide(there, alternatives=offers, attributes=["price", "green"], available="there")
asked = asked[np.zeros(persons, dtype=int)]
p = models["person"].predict_proba(asked, groups=np.arange(persons))[:, 0]
lower, upper = (bound[:, 0] for bound in models["person"].predict_interval(asked, groups=np.arange(persons)))
figure, ax = plt.subplots(figsize=(8, 4), layout="constrained")
order = np.argsort(p)
for kind, colour, name in (
    (green, plots.style.PALETTE[0], "cares for green"),
    (~green, plots.style.PALETTE[1], "looks at the price"),
):
    places = np.flatnonzero(kind[order])
    who = order[places]
    ax.vlines(places, lower[who], upper[who], color=colour, alpha=0.5)
    ax.plot(places, p[who], "o", color=colour, label=name)
ax.axhline(models["shared"].predict_proba(asked[:1])[0, 0], color="grey", linestyle=":", label="shared weights")
ax.set(xlabel="persons", ylabel="probability of the green contract, 90 % interval", xticks=[])
ax.legend(loc="upper left")
