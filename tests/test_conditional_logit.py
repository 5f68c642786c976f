"""One component is conditional logit: a dozen lines of SciPy on real choices, with a prior and without."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from plackett import EM, ChoiceSets, PlackettLuceChooser
from plackett.directions import LearnedDirections
from plackett.directions.settings import shrinkage


def conditional_logit(columns, chosen, penalty):
    """Coefficients of columns (situation, alternative, column) that maximise Σ ln P − Σ penalty β²."""
    picked = columns[np.arange(len(columns)), chosen]

    def objective(beta):
        utility = columns @ beta
        top = utility.max(axis=1, keepdims=True)
        p = np.exp(utility - top)
        total = p.sum(axis=1)
        value = (picked @ beta - top[:, 0] - np.log(total)).sum() - (penalty * beta**2).sum()
        slope = (picked - np.einsum("ta,taf->tf", p / total[:, None], columns)).sum(axis=0) - 2 * penalty * beta
        return -value / len(columns), -slope / len(columns)

    return minimize(objective, np.zeros(columns.shape[2]), jac=True, method="BFGS", options={"gtol": 1e-9}).x


def set_of(name, folder):
    """The table, its alternatives and attributes, persons' columns and what was chosen."""
    frame = pd.read_csv(folder / f"{name}.csv")
    if name == "fishing":
        return frame, ["beach", "pier", "boat", "charter"], ["price", "catch"], ["income"], "_", frame["y"].to_numpy()
    if name == "heating":
        return frame, ["gc", "gr", "ec", "er", "hp"], ["ic", "oc"], ["income"], ".", frame["depvar"].to_numpy()
    choice = frame["choice"].str[-1].astype(int).to_numpy()
    return frame, [1, 2], ["price", "time", "change", "comfort"], [], "", choice


def columns_of(frame, alternatives, attributes, persons, sep):
    """(situation, alternative, column): constants but of the first, attributes, persons' columns by alternative."""
    wide = [np.column_stack([frame[f"{x}{sep}{a}"] for a in alternatives]).astype(float) for x in attributes]
    constants = np.tile(np.eye(len(alternatives))[:, 1:], (len(frame), 1, 1))
    h = [(frame[name] - frame[name].mean()).to_numpy() / frame[name].std(ddof=0) for name in persons]
    together = [constants * each[:, None, None] for each in h]
    return np.concatenate([constants, np.stack(wide, axis=2), *together], axis=2)


@pytest.mark.data
@pytest.mark.parametrize("sigma", [100.0, 0.5])
@pytest.mark.parametrize("name", ["fishing", "heating", "train"])
def test_one_component_is_conditional_logit(name, sigma, folder, monkeypatch):
    """β = σ(u + v) has the penalty ½(u² + v²) = β²/4σ²; of σ = 100 next to nothing, that is maximum likelihood."""
    monkeypatch.setattr("plackett.directions.map.SCALES", (sigma,))
    frame, alternatives, attributes, persons, sep, y = set_of(name, folder)
    X = ChoiceSets.from_wide(frame, alternatives=alternatives, attributes=attributes, person=persons, sep=sep)
    columns = columns_of(frame, alternatives, attributes, persons, sep)
    deviation = columns.reshape(-1, columns.shape[2]).std(axis=0)
    d = columns.shape[2] + len(persons)  # their own columns cancel
    penalty = 1 / (4 * (sigma * shrinkage(d)) ** 2) if sigma < 1 else 0.0
    chosen = np.array([alternatives.index(label) for label in y.tolist()])
    beta = conditional_logit(columns / deviation, chosen, penalty)
    model = PlackettLuceChooser(EM(cv=2), features=LearnedDirections(components=1, bend="none")).fit(X, y)
    utility = columns / deviation @ beta
    p = np.exp(utility - utility.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X), p, atol=1e-5)
    np.testing.assert_allclose(model.log_likelihood(X, y).sum(), np.log(p[np.arange(len(p)), chosen]).sum(), rtol=1e-7)
    z, names = model.posterior_.of_directions.directions[0, 0, 0], model.design_.names_.tolist()
    ours = np.array([z[names.index(name)] for name in attributes])
    np.testing.assert_allclose(ours, beta[len(alternatives) - 1 :][: len(attributes)], rtol=1e-5, atol=1e-5)
