"""
EM, variational and Gibbs side by side
======================================

Three ways to estimate the weights of ``features="exp"``: the mode, a variational approximation of the posterior, and
draws from the posterior.
"""

# %%
# Fit
# ---

import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_iris
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

from plackett import Gibbs, PlackettLuceClassifier, plots

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, stratify=y, random_state=0)
models = {}
for inference in ("em", "variational", Gibbs(draws=2000)):
    name = inference if isinstance(inference, str) else "gibbs"
    started = time.perf_counter()
    models[name] = clf = PlackettLuceClassifier(inference, features="exp", random_state=0).fit(X_train, y_train)
    seconds = time.perf_counter() - started
    loss = log_loss(y_test, clf.predict_proba(X_test), labels=clf.classes_)
    print(f"{name:12s} a = {clf.shape_:.3g}, held-out log-loss {loss:.3f}, {seconds:.2f} s")

# %%
# Weights
# -------
# EM gives point estimates. Variational intervals are narrower than those of Gibbs, because the approximation treats
# weights as independent.

figure, axes = plt.subplots(3, 1, figsize=(7, 9), sharex=True, layout="constrained")
for ax, (name, clf) in zip(axes, models.items(), strict=True):
    plots.weights(clf, n=6, ax=ax)
    ax.set_title(name)

# %%
# Do the chains agree?
# --------------------
# The plots show the quantity that mixes most slowly. Uniform ranks mean that all chains visit the same values equally
# often.

figure, (left, right) = plt.subplots(1, 2, figsize=(10, 3.5), layout="constrained")
plots.trace(models["gibbs"], ax=left)
plots.rank(models["gibbs"], ax=right)

# %%
# Intervals of probabilities
# --------------------------

lower, upper = models["gibbs"].predict_interval(X_test)
narrow_lower, narrow_upper = models["variational"].predict_interval(X_test)
ratio = np.median((narrow_upper - narrow_lower) / (upper - lower))
print(f"a variational interval of a probability is {ratio:.2f} times as wide as that of Gibbs (median)")
