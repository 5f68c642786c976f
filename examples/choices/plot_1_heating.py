"""
What would a rebate do?
=======================

Nine hundred owners of new houses in California chose one of five heating systems. How do they weigh the costs of
installation and of operation, and how many more would buy a heat pump if it became cheaper?
"""

# %%
# Choice sets
# -----------
# One row per house, with one column for each attribute of each system: the cost of installation (``ic``) and the yearly
# cost of operation (``oc``), in dollars.

import matplotlib.pyplot as plt
import numpy as np

from plackett import ChoiceSets, PlackettLuceChooser, plots
from plackett.datasets import load
from plackett.linear import LinearUtility

heating = load("heating")
names = {"gc": "gas central", "gr": "gas room", "ec": "electric central", "er": "electric room", "hp": "heat pump"}
systems = list(names)


def offers(frame):
    """The choice situations of a table."""
    return ChoiceSets.from_wide(frame, alternatives=systems, attributes=["ic", "oc"])


X, y = offers(heating.X), heating.y
print(X, heating.counts, sep="\n")

# %%
# Conditional logit
# -----------------
# Maximum likelihood, with the tables that papers print.

logit = PlackettLuceChooser("em", features=LinearUtility(base="hp")).fit(X, y)
print(logit.coefficients(errors="robust").round(4))
print(logit.fit_statistics(X, y))

# %%
# The ratio of the two costs is what a house owner pays at installation to save one dollar a year.

print(logit.willingness_to_pay("oc", "ic").head(1))

# %%
# Shares under a rebate
# ---------------------
# Lower the installation cost of heat pumps and predict again. The band is a 90 % interval.

rebates = np.linspace(0, 0.5, 6)
shares = [logit.shares(offers(heating.X.assign(ic_hp=(1 - cut) * heating.X["ic_hp"]))) for cut in rebates]
pump = [table.set_index("alternative").loc["hp"] for table in shares]
figure, ax = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
ax.plot(100 * rebates, [100 * row["share"] for row in pump], color=plots.style.PALETTE[0])
ax.fill_between(
    100 * rebates,
    [100 * row["lower"] for row in pump],
    [100 * row["upper"] for row in pump],
    alpha=0.2,
    linewidth=0,
    color=plots.style.PALETTE[0],
)
ax.set(
    xlabel="rebate on the installation of a heat pump, %",
    ylabel="share of heat pumps, %\n90 % intervals",
    ylim=(0, None),
)

# %%
# Elasticities
# ------------
# The change, in per cent, of the number of houses with each system if one system becomes more expensive to install by
# one per cent.

table = logit.elasticities(X, "ic")
figure, ax = plt.subplots(figsize=(7, 4), layout="constrained")
own = table[table["of"] == table["alternative"]].set_index("alternative").loc[systems]
places = np.arange(len(systems))
ax.vlines(places, own["lower"], own["upper"], color=plots.style.PALETTE[0], linewidth=2)
ax.plot(places, own["elasticity"], "o", color=plots.style.PALETTE[0])
ax.axhline(0, color="grey", linewidth=0.8)
ax.set_xticks(places, [names[system].replace(" ", "\n") for system in systems])
ax.set(ylabel="elasticity of its share with respect to\nits installation cost, 90 % intervals")

# %%
# Without gas central heating
# ---------------------------
# Where its buyers would go. Conditional logit sends them to the other systems in proportion to their shares.

print(logit.diversion(X, drop="gc"))

# %%
# Does the utility bend?
# ----------------------
# The learned model tries bends and interactions on held-out houses. Here they bring next to nothing: its held-out
# log-loss is close to that of conditional logit, and so the simple model is good enough.

learned = PlackettLuceChooser("em").fit(X, y)
print(learned)
