"""
Against logistic regression, honestly
=====================================

Thirty measurements of a biopsy, two classes. Many weak signals point the same way. Logistic regression adds them up in
the log-odds; a race with ``features="exp"`` does not, but with learned directions it does.
"""

# %%
# Same splits for all
# -------------------

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from plackett import PlackettLuceClassifier, plots

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
models = {
    "race, exp(±x)": PlackettLuceClassifier("variational", features="exp", random_state=0),
    "race, learned": PlackettLuceClassifier(random_state=0),
    "logistic regression": make_pipeline(StandardScaler(), LogisticRegression()),
}
errors, losses = ({name: [] for name in models} for _ in range(2))
for train, test in StratifiedShuffleSplit(5, test_size=0.5, random_state=0).split(X, y):
    for name, model in models.items():
        model.fit(X.iloc[train], y[train])
        errors[name].append(np.mean(model.predict(X.iloc[test]) != y[test]))
        losses[name].append(log_loss(y[test], model.predict_proba(X.iloc[test])))
for name in models:
    print(f"{name:20s} error {np.mean(errors[name]):.3f}, log-loss {np.mean(losses[name]):.3f} (5 half splits)")

# %%
# Where they differ
# -----------------
# On the last split all models rank patients well, but the probabilities of the race with exp(±x) are not extreme
# enough.

figure, axes = plt.subplots(2, 3, figsize=(13, 8), layout="constrained")
for column, (name, model) in zip(axes.T, models.items(), strict=True):
    plots.roc(model, X.iloc[test], y[test], ax=column[0])
    plots.calibration(model, X.iloc[test], y[test], ax=column[1])
    column[0].set_title(name)

# %%
# What exp(±x) offers instead
# ---------------------------
# A short list of weights that say which measurement speaks for which class.

plots.weights(models["race, exp(±x)"], n=8)
