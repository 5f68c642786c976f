"""
The race behind a prediction
============================

Every prediction is a race: each class is a team, each feature a competitor, and the first arrival decides. Here the
race of one flower is run many times, and then its outcome is computed without running it.
"""

# %%
# Run the race
# ------------
# A model of Iris and one flower between two species. Competitors arrive after exponential times;
# their rates are feature times weight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from plackett import PlackettLuceClassifier, plots
from plackett.explain import explain
from plackett.simulate import race

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]
clf = PlackettLuceClassifier("em", shape=1.5).fit(X, y)
flower = X.iloc[[70]]
W = clf.features_.transform(flower)
with np.errstate(divide="ignore"):
    log_weights = np.log(clf.weights_)
races = race(np.repeat(W, 20_000, axis=0), log_weights, rng=0)

# %%
# On the left one race: every competitor with a chance, at its time of arrival. On the right how often each team won,
# with the probability that the model gives it as a line.

rng = np.random.default_rng(5)
rates = W * clf.weights_
times = np.where(rates > 1e-3 * rates.max(), rng.exponential(size=rates.shape) / np.maximum(rates, 1e-300), np.nan)
names = clf.features_.get_feature_names_out()
colours = plots.style.PALETTE

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), width_ratios=(2, 1), layout="constrained")
runners = [(times[k, j], k, j) for k, j in np.argwhere(np.isfinite(times))]
for place, (time, k, j) in enumerate(sorted(runners, reverse=True)):
    left.plot([0, time], [place, place], color=colours[k], linewidth=1)
    left.plot(time, place, "osD"[k], color=colours[k])
    left.annotate(f"{clf.classes_[k]}: {names[j]}", (time, place), (6, -3), textcoords="offset points", fontsize=8)
left.set(title=f"one race, won by {clf.classes_[min(runners)[1]]}", xlabel="time of arrival", yticks=[])
left.set_xlim(0, 1.5 * max(runners)[0])
left.axvline(min(runners)[0], color="grey", linestyle=":")
share = np.bincount(races.winner, minlength=3) / len(races.winner)
right.bar(clf.classes_, share, color=colours[:3])
for k, probability in enumerate(clf.predict_proba(flower)[0]):
    right.plot([k - 0.45, k + 0.45], [probability] * 2, color="black")
right.set(title="20,000 races, and the model (lines)", ylabel="share won")

# %%
# Or compute it
# -------------
# The probability that competitor j of team k arrives first is its rate divided by the sum of all rates. These parts add
# up to the prediction.

print(explain(clf, flower.iloc[0]).head(6).round(3))

# %%
# The bar of a class is its probability, made of its competitors.

plots.race(clf, flower)
