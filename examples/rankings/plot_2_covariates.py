"""
Rankings that depend on who ranks
=================================

Four hundred townspeople rank five things that the town could build. Their wishes depend on age and children. The data
are simulated, so that estimates can be compared with the truth.
"""

# %%
# The survey
# ----------
# Young people want the skatepark, old people the park with benches, and people with children a playground.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from plackett import PlackettLuceRanker, plots
from plackett.simulate import rankings

items = ["library", "park", "playground", "pool", "skatepark"]
rng = np.random.default_rng(1)


def log_rates(X):
    """The true log-rates."""
    old = (X["age"] - 50) / 15
    return np.column_stack([0.2 * old, 0.9 * old, 2 * X["children"] - 0.5, 0 * old, -1.2 * old - 0.5])


n = 400
X = pd.DataFrame({"age": rng.integers(16, 85, n), "children": rng.integers(0, 2, n)})
R = rankings(log_rates(X), items=items, rng=rng)
X_train, R_train, X_test, R_test = X[:300], R[:300], X[300:], R[300:]

# %%
# With covariates and without
# ---------------------------
# The score is the mean log-probability of a whole ranking of five, on a hundred held-out rankings. If all 120 orders
# were equally likely, it would be −4.79.

asked = PlackettLuceRanker(random_state=0).fit(X_train, R_train)
plain = PlackettLuceRanker(random_state=0).fit(None, R_train)
print(asked)
print(f"{asked.score(X_test, R_test):.3f} with learned directions of age and children")
print(f"{plain.score(None, R_test):.3f} without covariates")

# %%
# Who wants what
# --------------
# The probability of being ranked first by age, for people with children, with 90 % intervals. Dashed lines are the
# truth.

ages = pd.DataFrame({"age": np.linspace(18, 82, 33), "children": 1})
first, (lower, upper) = asked.predict_proba(ages), asked.predict_interval(ages)
truth = np.exp(log_rates(ages))
truth /= truth.sum(axis=1, keepdims=True)
figure, ax = plt.subplots(figsize=(7, 4.5), layout="constrained")
for k, (item, colour) in enumerate(zip(asked.items_, plots.style.PALETTE, strict=False)):
    ax.fill_between(ages["age"], lower[:, k], upper[:, k], color=colour, alpha=0.2, linewidth=0)
    ax.plot(ages["age"], first[:, k], color=colour, label=item)
    ax.plot(ages["age"], truth[:, k], color=colour, linestyle="--", linewidth=1)
ax.set(xlabel="age", ylabel="probability of being ranked first", title="people with children")
ax.legend(loc="upper center", ncols=3)

# %%
# Two persons
# -----------
# The probability of each place in the ranking of one person.

people = pd.DataFrame({"age": [20, 75], "children": [0, 0]})
print(asked.predict(people))
figure, axes = plt.subplots(1, 2, figsize=(11, 3.8), layout="constrained")
for ax, (place, person) in zip(axes, enumerate(people.to_dict("records")), strict=True):
    plots.rank_distribution(asked, people.iloc[[place]], of="ranking", ax=ax)
    ax.set_title(f"{person['age']} years, no children")
