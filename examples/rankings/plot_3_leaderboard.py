"""
A leaderboard with intervals
============================

Visitors of the Chatbot Arena saw the answers of two language models and voted for the better one, or for a tie. A third
of 1.67 million votes are ties. Which of 129 models are best, and how sure is that?
"""

# %%
# Fit
# ---
# Each pair of models appears once with the counts of its votes, so that the fit takes seconds. Davidson's model of ties
# estimates how often two equal models tie.

from plackett import PlackettLuceRanker, plots
from plackett.datasets import load

votes = load("arena").y
board = PlackettLuceRanker(ties="davidson", random_state=0).fit(None, votes)
print(votes)
print(board.parameters())

# %%
# Points and places
# -----------------
# Elo points relative to one model, with 90 % intervals of points and places.

table = board.worth(prob=0.9, scale="elo", anchor={"gpt-4-0314": 1000})
print(table[["elo", "lower", "upper", "rank_lower", "rank_upper"]].head(10).round().to_string())

# %%
# The best twenty as a picture. Four hundred Elo points are 2.3 units of log-worth.

plots.worth(board, n=20)

# %%
# Which differences are certain?
# ------------------------------
# The probability that the model of the row is better than that of the column. Values near a half are open questions.

plots.prob_better(board, n=12)

# %%
# Which place?
# ------------
# The probability of each place, given all votes.

plots.rank_distribution(board, n=12)
