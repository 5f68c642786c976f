"""
Sparsity: a regularisation path
===============================

The shape a of the prior decides how many weights matter. Figure 2 of the paper follows the weights of Iris as a falls.
"""

# %%
# The mode, with exact zeros
# --------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris

from plackett import PlackettLuceClassifier, plots, regularization_path

iris = load_iris(as_frame=True)
X, y = iris.data, iris.target_names[iris.target]
path = regularization_path(X, y)
for a, weights in zip(path.shapes[::4], path.weights[::4], strict=True):
    print(f"a = {a:5.3f}: {(weights > 0).sum():2d} of {weights.size} weights are not zero")
plots.path(path)

# %%
# The posterior mean
# ------------------
# Posterior means are never exactly zero, but concentrate on a few weights.

plots.path(regularization_path(X, y, shapes=[2, 1, 0.5, 0.2, 0.1, 0.05, 0.02], inference="variational", random_state=0))

# %%
# Which a?
# --------
# EM uses the shape with the smallest cross-validated log-loss.

clf = PlackettLuceClassifier("em", features="exp").fit(X, y)
shapes, losses = zip(*clf.cv_log_loss_.items(), strict=True)
ax = plt.subplots(layout="constrained")[1]
ax.semilogx(shapes, losses, "o-", color=plots.style.PALETTE[0])
ax.axvline(clf.shape_, color="grey", linestyle=":")
ax.set(xlabel="shape a", ylabel="held-out log-loss", title=f"chosen: a = {clf.shape_:g}")
