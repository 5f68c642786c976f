"""
A first model
=============

Which of three cultivars is this wine from? A model is fitted to chemical measurements, judged on wines it has not seen,
and read.
"""

# %%
# Fit
# ---
# With the defaults: directions are learned, and draws from their posterior averaged.

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
# How far a standard deviation of each column moves the log-odds.

plots.relevance(clf)

# %%
# Trust
# -----
# What was said with probability q should come true in a share q of cases. Nearly all wines are predicted surely; the
# points between the ends belong to one or two of them each.

plots.calibration(clf, X_test, y_test)

# %%
# The wine of which it is least sure, with intervals of the probabilities.

import numpy as np

unsure = int(np.argmin(clf.predict_proba(X_test).max(axis=1)))
plots.probabilities(clf, X_test.iloc[unsure])

# %%
# The model of the paper
# ----------------------
# One word away: a weight for every feature and class. It predicts less well and can be read. Here with the
# shape of the prior fixed, which needs few draws.

from plackett import Gibbs

paper = PlackettLuceClassifier(Gibbs(draws=1500, tune=500), shape=0.1, features="exp", random_state=0)
paper.fit(X_train, y_train)
loss = log_loss(y_test, paper.predict_proba(X_test))
print(f"held-out accuracy {paper.score(X_test, y_test):.3f}, log-loss {loss:.3f}")
plots.weights(paper)
