"""Explanations of models with segments, intervals of worths after EM, and segments on the command line."""

import warnings

import numpy as np
import pytest

from plackett import Gibbs, PlackettLuceChooser, explain, plots
from plackett.linear import LinearUtility
from plackett.report import write_report
from test_segments import chooser, travellers

MODES = ["bus", "car", "walk"]


@pytest.fixture(scope="module")
def fitted():
    X, y, who, _ = travellers(n_persons=40, each=4)
    return {
        "em": chooser().fit(X, y, groups=who),
        "gibbs": fitted_quietly(chooser(Gibbs(draws=15, tune=10, chains=2)), X, y, who),
    }, X


def fitted_quietly(model, X, y, who):
    with warnings.catch_warnings(action="ignore", category=UserWarning):
        return model.fit(X, y, groups=who)


def by_quadrature(parameters, shares, z0, z1, k, nodes=4000):
    """Contributions (entries, d) to the log-odds of k in a mixture of logits, along the line from z0 to z1."""
    found, change = np.zeros_like(z0), z1 - z0
    for t in (np.arange(nodes) + 0.5) / nodes:
        p = np.exp((z0 + t * change) @ parameters.T).T
        p /= p.sum(axis=1, keepdims=True)
        q = shares @ p
        slope = -np.ones(len(q)) / (1 - q[k])  # of the log-odds in the probabilities
        slope[k] = 1 / q[k]
        rising = p * (slope - (p @ slope)[:, None]) * shares[:, None]
        found += np.einsum("ce,cf,ef->ef", rising, parameters, change) / nodes
    return found


@pytest.mark.parametrize("kind", ["em", "gibbs"])
def test_explanations_are_those_of_the_mixture_of_segments(fitted, kind):
    models, X = fitted
    model = models[kind]
    why = explain(model, X[3], prob=0.8)
    p = model.predict_proba(X[3])[0, MODES.index(why.attrs["class"])]
    np.testing.assert_allclose(why.attrs["reference"] + why["contribution"].sum(), np.log(p / (1 - p)), rtol=1e-6)
    design, draws = model.design_, model.posterior_.of_segments.all_draws()
    z0 = design.transform(design.average())
    z1 = model._entries(*model._one(X[3])).Z
    k = MODES.index(why.attrs["class"])
    parts = [by_quadrature(*each, z0, z1, k, 200) for each in zip(draws.parameters, draws.shares, strict=True)]
    line = why.set_index(["feature", "of"])
    if kind == "em":
        centre = by_quadrature(draws.parameters[0], draws.shares[0], z0, z1, k)
        spread = model.posterior_.spread_draws()
        assert (line["upper"] - line["lower"] > 0.01).all() and len(spread.shares) > 100
        for f, name in enumerate(["price", "time"]):
            np.testing.assert_allclose(line.loc[name]["contribution"][MODES], centre[:, f], rtol=1e-4)
        parts = [by_quadrature(*each, z0, z1, k, 50) for each in zip(spread.parameters, spread.shares, strict=True)]
    lower, upper = np.quantile(parts, [0.1, 0.9], axis=0)
    for f, name in enumerate(["price", "time"]):
        found = line.loc[name].loc[MODES]
        np.testing.assert_allclose(found["lower"], np.minimum(lower[:, f], found["contribution"]), rtol=0.02, atol=2e-3)
        np.testing.assert_allclose(found["upper"], np.maximum(upper[:, f], found["contribution"]), rtol=0.02, atol=2e-3)


def test_equal_segments_explain_as_one(fitted):
    models, X = fitted
    _, y, who, _ = travellers(n_persons=40, each=4)
    plain = PlackettLuceChooser("em", features=LinearUtility(constants=False)).fit(X, y, groups=who)
    model = models["em"]
    alone, best = explain(plain, X[5]), plain.posterior_.coefficients
    held = model.posterior_.of_segments.parameters
    before = held.copy()
    held[...] = best
    again = explain(model, X[5])
    held[...] = before
    assert again["feature"].tolist() == alone["feature"].tolist()
    np.testing.assert_allclose(again["contribution"], alone["contribution"], rtol=1e-6)


def test_explanations_are_drawn_and_in_the_report(fitted, tmp_path):
    models, X = fitted
    _, y, who, _ = travellers(n_persons=40, each=4)
    assert len(plots.contributions(models["em"], X[0]).patches) > 3
    write_report(models["em"], X, y, tmp_path / "r.html", groups=who)
    assert "Why? A few situations" in (tmp_path / "r.html").read_text(encoding="utf-8")
