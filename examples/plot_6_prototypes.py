"""
Prototypes as competitors
=========================

Any non-negative features can be used. Here each competitor is a typical image, and its feature is its similarity to the
image at hand. The weights then say which prototypes speak for which digit.
"""

# %%
# Fit
# ---
# The features are exp(−d²/15²) of the distances d to forty k-means centres. EM with a < 1 sets most weights to exactly
# zero.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.cluster import KMeans
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from plackett import PlackettLuceClassifier, plots, win_probabilities


def similarity(distance):
    """Relative to the nearest centre: a common factor of a row changes nothing in the model."""
    return np.exp((distance.min(axis=1, keepdims=True) ** 2 - distance**2) / 15**2)


X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
features = make_pipeline(KMeans(40, n_init=1, random_state=0), FunctionTransformer(similarity))
clf = PlackettLuceClassifier("em", shape=0.9, features=features).fit(X_train, y_train)
print(f"held-out accuracy {clf.score(X_test, y_test):.3f}")
print(f"{(clf.weights_ > 0).sum()} of {clf.weights_.size} weights are not zero")

# %%
# What speaks for each digit
# --------------------------
# The four strongest prototypes of each class; a place is empty if the class has fewer.

centres = clf.features_[0].cluster_centers_.reshape(-1, 8, 8)
figure, axes = plt.subplots(4, 10, figsize=(10, 4.4), layout="constrained")
for column, weights, label in zip(axes.T, clf.weights_, clf.classes_, strict=True):
    column[0].set_title(label)
    for ax, j in zip(column, np.argsort(-weights), strict=False):
        ax.axis("off")
        if weights[j] > 0:
            ax.imshow(centres[j], cmap="Greys")

# %%
# Why was this one misread?
# -------------------------
# A misclassified image and the prototypes that are most likely to win its race.

wrong = int((clf.predict(X_test) != y_test).argmax())
wins = win_probabilities(clf, X_test[[wrong]])[0]
best = np.argsort(-wins, axis=None)[:4]
figure, axes = plt.subplots(1, 5, figsize=(10, 2.6), layout="constrained")
axes[0].imshow(X_test[wrong].reshape(8, 8), cmap="Greys")
axes[0].set_title(f"a {y_test[wrong]}, read as {clf.predict(X_test[[wrong]])[0]}")
for ax, place in zip(axes[1:], best, strict=True):
    k, j = np.unravel_index(place, wins.shape)
    ax.imshow(centres[j], cmap="Greys")
    ax.set_title(f"wins for {clf.classes_[k]}: {wins[k, j]:.2f}")
for ax in axes:
    ax.axis("off")

# %%
# The probabilities of the five most likely classes.

plots.probabilities(clf, X_test[wrong], n=5)
