"""
Worths from covariates of the items
===================================

Do larger language models win more votes, and how good is a model that nobody has voted on yet? The names of 72 models
in the Chatbot Arena tell how many parameters they have. Covariates that describe the items explain a part of their
worths, and predict the worths of new items, with intervals.
"""

# %%
# Data
# ----
# The number of parameters, in billions, as the names have it: "8x22b" counts as 176. The votes on twelve models are
# left out, as if these were new.

import re

import numpy as np
import pandas as pd

from plackett import PlackettLuceRanker
from plackett.datasets import load

votes = load("arena").y
found = {name: re.search(r"(?:(\d+)x)?(\d+(?:\.\d+)?)b(?![a-z])", name.lower()) for name in votes.items.tolist()}
size = {name: float(each[1] or 1) * float(each[2]) for name, each in found.items() if each}
items = pd.DataFrame({"doublings": np.log2(pd.Series(size))})

new = np.random.default_rng(0).choice(sorted(size), 12, replace=False).tolist()
old = sorted(set(size) - set(new))


def between(names):
    """Votes on pairs of these models."""
    pairs = votes.items[votes.item].reshape(-1, 2)
    return votes[np.flatnonzero(np.isin(pairs, names).all(axis=1))].with_items(names)


# %%
# Fit
# ---
# The coefficient is the change of the log-worth per doubling of the size. The residuals are large: their standard
# deviation is about :math:`a^{-1/2}` for the shape a.

board = PlackettLuceRanker(ties="davidson", random_state=0).fit(None, between(old), items=items)
print(board.parameters().round(3))

# %%
# New items
# ---------
# The table of worths has the twelve models without votes. Their intervals contain the residual and are wide. The last
# column is the result if their votes are used: ten of twelve are inside the 90 % intervals.

anchor = {"vicuna-13b": 1000}
worth = board.worth(scale="elo", anchor=anchor)
everything = PlackettLuceRanker("em", shape=2, ties="davidson").fit(None, between(sorted(size)))
known = everything.worth(scale="elo", anchor=anchor)["elo"].rename("with votes")
table = worth.loc[worth["new"], ["elo", "lower", "upper"]].join(known)
print(table.round())

# %%
# Size against worth, with the models that have votes as dots and the new ones with their intervals.

import matplotlib.pyplot as plt

fig, ax = plt.subplots()
ax.plot(items.loc[old, "doublings"], worth.loc[old, "elo"], "o", alpha=0.5, label="with votes")
ax.vlines(items.loc[table.index, "doublings"], table["lower"], table["upper"], color="C1", label="new, 90 %")
ax.plot(items.loc[table.index, "doublings"], table["with votes"], "x", color="C1", label="new, from their votes")
ax.set(xlabel="doublings of a billion parameters", ylabel="Elo points")
ax.legend()
