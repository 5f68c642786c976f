"""
Features make the boundary
==========================

Boundaries between classes are linear in the features. With exponentials of single columns they bend gently; with pair
sums and splines they follow the data. We use two columns of Iris, so that the boundaries can be drawn.
"""

# %%
# Compare by held-out log-loss
# ----------------------------

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler

from plackett import PlackettLuceClassifier, Variational, plots
from plackett.features import ExpFeatures

iris = load_iris(as_frame=True)
X, y = iris.data.iloc[:, 2:], iris.target_names[iris.target]


def race(features):
    """A race on these features; 200 draws of the approximate posterior are enough for a picture."""
    return PlackettLuceClassifier(Variational(draws=200), features=features, random_state=0)


models = {
    "exp(±x), 1": race(ExpFeatures()),
    "with pair sums": race(ExpFeatures(pair_sums=True)),
    "splines": race(SplineTransformer(n_knots=5, degree=2, extrapolation="constant")),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}

# %%
# A stronger colour means a more certain class. Logistic regression, which multiplies evidence, is the benchmark.

figure, axes = plt.subplots(2, 2, figsize=(10, 8), layout="constrained")
for ax, (name, model) in zip(axes.flat, models.items(), strict=True):
    loss = -cross_val_score(model, X, y, scoring="neg_log_loss").mean()
    plots.decision_boundary(model.fit(X, y), X, y, ax=ax)
    ax.set_title(f"{name}: log-loss {loss:.3f}")
    print(f"{name:20s} cross-validated log-loss {loss:.3f}")
