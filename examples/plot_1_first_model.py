"""
A first model
=============

Which of three cultivars is this wine from? A model is fitted to chemical measurements, judged on wines it has not seen,
and read.
"""

# %%
# Fit
# ---
# Gibbs sampling, here with the shape of the prior fixed, which needs few draws.

from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from plackett import Gibbs, PlackettLuceClassifier, plots

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=0)
clf = PlackettLuceClassifier(Gibbs(draws=1500, tune=500), shape=0.1, random_state=0).fit(X_train, y_train)
print(f"held-out accuracy {clf.score(X_test, y_test):.3f}")
print(f"R-hat {clf.diagnostics_.worst_rhat:.3f}, smallest effective sample size {clf.diagnostics_.smallest_ess:.0f}")

# %%
# Read
# ----
# The largest of 81 weights, with 90 % intervals.

plots.weights(clf)

# %%
# Trust
# -----
# What was said with probability q should come true in a share q of cases. This model is too modest: what it gives
# a probability of 0.6 is nearly always true.

plots.calibration(clf, X_test, y_test)

# %%
# The wine of which it is least sure, with intervals of the probabilities.

import numpy as np

unsure = int(np.argmin(clf.predict_proba(X_test).max(axis=1)))
plots.probabilities(clf, X_test.iloc[unsure])
