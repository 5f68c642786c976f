"""
The race behind a prediction
============================

Every prediction is a race: each class is a team, each feature is a competitor, and the first arrival decides. We run
the race of one flower many times and then compute its outcome without running it.
"""

# %%
# Run the race
# ------------
# We take a model of Iris and a flower between two species. Competitors arrive after exponential times; the rate of a
# competitor is its feature times its weight.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris

from plackett import PlackettLuceClassifier, explain, plots
from plackett.simulate import race

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]
clf = PlackettLuceClassifier("em", shape=1.5, features="exp").fit(X, y)
flower = X.iloc[[70]]
W = clf.features_.transform(flower)
with np.errstate(divide="ignore"):
    log_weights = np.log(clf.weights_)
races = race(np.repeat(W, 20_000, axis=0), log_weights, rng=0)

# %%
# Left: the ten fastest competitors of one race at their times of arrival. Right: how often each team won; the black
# line is the probability under the model.

rates = W * clf.weights_
names = clf.features_.get_feature_names_out()
colours = dict(zip(clf.classes_, plots.style.PALETTE, strict=False))
rng = np.random.default_rng(5)
runners = []
for place in np.argsort(-rates, axis=None)[:10]:
    k, j = np.unravel_index(place, rates.shape)
    runners.append((rng.exponential() / rates[k, j], clf.classes_[k], names[j]))
runners.sort()

figure, (left, right) = plt.subplots(1, 2, figsize=(9, 4.2), width_ratios=(5, 2), layout="constrained")
for place, (arrival, team, feature) in enumerate(runners):
    left.plot([0, arrival], [place, place], color=colours[team], linewidth=3, solid_capstyle="butt")
    left.annotate(f"{team}: {feature}", (arrival, place), (5, -4), textcoords="offset points")
left.axvline(runners[0][0], color="grey", linestyle=":")
left.invert_yaxis()
left.set(title=f"one race, won by {runners[0][1]}", xlabel="time of arrival", yticks=[])
left.set_xlim(0, 1.7 * runners[-1][0])
right.bar(clf.classes_, np.bincount(races.winner) / len(races.winner), color=list(colours.values()))
right.hlines(clf.predict_proba(flower)[0], [-0.45, 0.55, 1.55], [0.45, 1.45, 2.45], color="black")
right.set(title="20,000 races", ylabel="share won")

# %%
# Or compute it
# -------------
# The probability that competitor j of team k arrives first is its rate divided by the sum of all rates. These
# probabilities add up to the prediction.

print(explain(clf, flower.iloc[0]).head(6).round(3))

# %%
# The bar of a class is its probability, divided among its competitors.

plots.race(clf, flower)
