"""Our R-hat and effective sample sizes are ArviZ's."""

import re

import numpy as np
import pytest
from arviz_stats.base import array_stats

from plackett import Gibbs
from plackett.directions.diagnostics import DirectionDiagnostics
from plackett.directions.diagnostics import advice as advice_on_directions
from plackett.posterior.diagnostics import Diagnostics, advice, measures

KIND = {"chain_axis": 0, "draw_axis": 1}


def autoregressive(phi, chains, draws, seed):
    rng = np.random.default_rng(seed)
    x = np.zeros((chains, draws))
    noise = rng.normal(size=(chains, draws))
    for t in range(1, draws):
        x[:, t] = phi * x[:, t - 1] + noise[:, t]
    return x


@pytest.mark.parametrize("chains, draws", [(4, 1000), (2, 101), (1, 500), (4, 20)])
def test_measures_equal_arviz(chains, draws):
    columns = [autoregressive(phi, chains, draws, seed) for seed, phi in enumerate((0.0, 0.5, 0.95, -0.6, 0.999))]
    columns.append(np.exp(3 * columns[1]))  # heavy tail
    columns.append(np.round(columns[0]))  # ties
    columns.append(columns[2] + 3 * np.arange(chains)[:, None])  # chains that disagree
    x = np.stack(columns, axis=2).reshape(chains, draws, 2, -1)
    rhat, bulk, tail = measures(x)
    if chains > 1:  # ArviZ gives none for one chain; halves of it can be compared all the same
        np.testing.assert_allclose(rhat, array_stats.rhat(x, **KIND), rtol=1e-8)
    np.testing.assert_allclose(bulk, array_stats.ess(x, method="bulk", **KIND), rtol=1e-6)
    np.testing.assert_allclose(tail, array_stats.ess(x, method="tail", prob=(0.05, 0.95), **KIND), rtol=1e-6)


def test_a_constant_has_no_rhat_and_counts_as_independent():
    rhat, bulk, tail = measures(np.ones((2, 50, 1)))
    assert np.isnan(rhat[0]) and bulk[0] == 100 and tail[0] == 100


BAD = Diagnostics(*[np.array(x) for x in (1.5, 20.0, 20.0)], 1.5, 20.0, 20.0, *[np.array(x) for x in (1.5, 20.0, 20.0)])
APART = DirectionDiagnostics(*[np.array([x]) for x in (2.0, 5.0, 5.0)], monte_carlo_error=0.1)


@pytest.mark.parametrize("chains, draws", [(4, 250), (8, 250), (16, 1000)])
@pytest.mark.parametrize("judge, found", [(advice, BAD), (advice_on_directions, APART)], ids=["weights", "directions"])
@pytest.mark.parametrize(
    "limits, end", [({}, None), ({"target_ess": 400.0}, None), ({"max_seconds": 2.5}, "max_seconds")]
)
def test_advice_is_new(judge, found, chains, draws, limits, end):
    """Whatever it names is more than the run had."""
    settings = Gibbs(draws=draws, tune=100, chains=chains, **limits)
    for word in (judge(found, settings, end), judge(None, settings, end)):
        advised = re.findall(r"Gibbs\((\w+)=([^)]*)\)", word)
        assert advised
        for name, value in advised:
            before = getattr(settings, name)
            assert before is None or float(value) >= 2 * before
    if end is not None:
        assert f"Gibbs({end}=10)" in judge(found, settings, end)
