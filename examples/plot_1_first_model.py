"""
A first model
=============

Which of three cultivars is this wine from? We fit a model to chemical measurements, judge it on wines that it has not
seen, and read it.
"""

# %%
# Fit
# ---
# With the defaults, the model learns directions and predictions average over draws from their posterior.

from sklearn.datasets import load_wine
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from plackett import PlackettLuceClassifier, plots

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
clf = PlackettLuceClassifier(random_state=0).fit(X_train, y_train)
loss = log_loss(y_test, clf.predict_proba(X_test))
print(f"held-out accuracy {clf.score(X_test, y_test):.3f}, log-loss {loss:.3f}")

# %%
# Read
# ----
# Which columns matter most.

plots.relevance(clf)

# %%
# The average probability of each cultivar along one column, with 90 % intervals.

plots.effect(clf, X_train, "proline")

# %%
# Trust
# -----
# Of all predictions with probability q, a share q should come true. Nearly all wines are predicted with near certainty;
# each point between the ends stands for one or two wines.

plots.calibration(clf, X_test, y_test)

# %%
# The wine with the most uncertain prediction, with intervals of the probabilities.

import numpy as np

unsure = int(np.argmin(clf.predict_proba(X_test).max(axis=1)))
plots.probabilities(clf, X_test.iloc[unsure])

# %%
# A model with weights to read
# ----------------------------
# ``features="exp"`` is the model of Archambeau and Caron (2012), with one weight for every feature and class. It
# predicts less well, but its weights can be read. A fixed shape of the prior needs fewer draws.

from plackett import Gibbs

paper = PlackettLuceClassifier(Gibbs(draws=1500, tune=500), shape=0.1, features="exp", random_state=0)
paper.fit(X_train, y_train)
loss = log_loss(y_test, paper.predict_proba(X_test))
print(f"held-out accuracy {paper.score(X_test, y_test):.3f}, log-loss {loss:.3f}")
plots.weights(paper)
