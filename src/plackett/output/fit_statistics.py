"""Fit statistics of a model of choices as in papers: log-likelihoods, ρ², information criteria, LOO and WAIC."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import gammaln, logsumexp

from plackett.data.choice_outcomes import Chosen
from plackett.data.choice_sets import ChoiceSets
from plackett.linear.likelihood import pack_linear
from plackett.linear.newton import maximise
from plackett.optional import optional
from plackett.output.arviz import arviz_for
from plackett.output.constants import mean_log_likelihood, worths
from plackett.output.html import text
from plackett.output.published import latex
from plackett.posterior.choosers import log_probability_under
from plackett.responses import make_response

MANY = 100  # number of alternatives from which EM finds the constants
LABELS = {
    "log_likelihood": "Log-likelihood",
    "null": "Log-likelihood of equal chances",
    "constants": "Log-likelihood of constants alone",
    "rho2": "Rho-square",
    "rho2_adjusted": "Adjusted rho-square",
    "rho2_constants": "Rho-square against constants",
    "aic": "AIC",
    "bic": "BIC",
    "elpd_loo": "ELPD by leave-one-out (PSIS)",
    "se_loo": "its standard error",
    "p_loo": "effective parameters (PSIS)",
    "elpd_waic": "ELPD by WAIC",
    "p_waic": "effective parameters (WAIC)",
    "parameters": "Parameters",
    "n": "Situations",
}
WHOLE = ("parameters", "n")


@dataclass(frozen=True)
class FitStatistics:
    """Measures of fit on some situations; NaN for unavailable ones.

    `print` shows them, ``statistics["aic"]`` or ``statistics.aic`` is one of them, `frame` is a data frame, and
    `to_latex` a tabular.

    Attributes
    ----------
    log_likelihood : float
        Σ ln Pr of the outcomes: at the maximum, at the posterior mean of the coefficients of a linear utility, or
        otherwise under the predictions.
    null : float
        Log-likelihood of equal probabilities for all available alternatives.
    constants : float
        Log-likelihood of the best constants of the alternatives alone.
    parameters : int or None
        Number of coefficients; None if a prior determines how many are active.
    n : float
        Total count of situations.
    likeliest : bool
        True if the log-likelihood is the maximum, which AIC and BIC require.
    elpd_loo, se_loo, p_loo : float
        Expected log predictive density by Pareto-smoothed leave-one-out over situations, its standard error and the
        effective number of parameters; for draws only.
    elpd_waic, p_waic : float
        Expected log predictive density and effective number of parameters by WAIC.
    """

    log_likelihood: float
    null: float
    constants: float
    parameters: int | None
    n: float
    likeliest: bool
    elpd_loo: float = np.nan
    se_loo: float = np.nan
    p_loo: float = np.nan
    elpd_waic: float = np.nan
    p_waic: float = np.nan

    @property
    def rho2(self) -> float:
        """1 − LL/LL(0), McFadden's."""
        return 1 - self.log_likelihood / self.null

    @property
    def rho2_adjusted(self) -> float:
        """1 − (LL − K)/LL(0)."""
        return np.nan if self.parameters is None else 1 - (self.log_likelihood - self.parameters) / self.null

    @property
    def rho2_constants(self) -> float:
        """1 − LL/LL(constants)."""
        return 1 - self.log_likelihood / self.constants if self.constants else np.nan

    @property
    def aic(self) -> float:
        """2K − 2LL at the maximum."""
        return (
            2 * self.parameters - 2 * self.log_likelihood if self.likeliest and self.parameters is not None else np.nan
        )

    @property
    def bic(self) -> float:
        """K ln n − 2LL at the maximum."""
        return self.aic + self.parameters * (float(np.log(self.n)) - 2) if self.parameters is not None else np.nan

    def __getitem__(self, name: str) -> float:
        if name not in LABELS:
            raise KeyError(f"{name!r} is none of {', '.join(LABELS)}")
        value = getattr(self, name)
        return np.nan if value is None else value

    def known(self) -> dict[str, float]:
        """Return all available statistics, by name."""
        return {name: self[name] for name in LABELS if not np.isnan(self[name])}

    @property
    def frame(self) -> Any:
        """Data frame with the names as its index, and columns ``statistic`` and ``value``."""
        found = self.known()
        columns = {"statistic": [LABELS[name] for name in found], "value": list(found.values())}
        return optional("pandas", "a data frame of fit statistics").DataFrame(columns, index=list(found))

    def rows(self) -> list[list[str]]:
        """Return labels and formatted numbers."""
        return [[LABELS[name], _written(name, value)] for name, value in self.known().items()]

    def __str__(self) -> str:
        rows = self.rows()
        first, second = (max(len(row[k]) for row in rows) for k in (0, 1))
        return "\n".join(f"{label:<{first}}  {value:>{second}}" for label, value in rows)

    def to_latex(self) -> str:
        """Return a tabular with rules as in booktabs."""
        return latex(["Statistic", "Value"], self.rows())

    def _repr_html_(self) -> str:
        body = "".join(f"<tr><td>{text(label)}</td><td>{text(value)}</td></tr>" for label, value in self.rows())
        return f"<table><tbody>{body}</tbody></table>"


def _written(name: str, value: float) -> str:
    if name in WHOLE:
        return f"{value:,.10g}"
    return f"{value:.4f}" if name.startswith("rho2") else f"{value:,.2f}"


def fit_statistics(model: Any, X: ChoiceSets, y: Any, seen: Chosen, groups: Any) -> FitStatistics:
    """Compute the statistics of a fitted chooser on situations with these outcomes."""
    if (seen.outcomes.sizes != 1).any():
        raise ValueError("fit statistics are for choices, and for rankings without ties; leave tied rankings out.")
    counts, posterior = seen.outcomes.counts, model.posterior_
    value = float(counts @ log_probability_under(posterior.reported(), model._rows(X, groups), seen))
    parameters, likeliest = posterior.counted
    more = {}
    if posterior.no_chains is None and (counts == 1).all():
        more = predictive(model, X, y, groups)
    return FitStatistics(
        value, equal_chances(seen), constants_alone(X, seen), parameters, float(counts.sum()), likeliest, **more
    )


def equal_chances(seen: Chosen) -> float:
    """Return the log-likelihood of equal probabilities for all remaining entries at every stage."""
    start, bucket_start, _, counts = seen.outcomes
    left = np.diff(start)
    stages = np.minimum(np.diff(bucket_start), left - 1)
    return float(counts @ (gammaln(left - stages + 1) - gammaln(left + 1)))


def constants_alone(X: ChoiceSets, seen: Chosen) -> float:
    """Return the maximum of the log-likelihood with one constant for each alternative."""
    item, A = X.alternative[seen.entry], len(X.alternatives)
    if A > MANY:
        response = make_response("ranking" if seen.response == "choice" else seen.response)
        log_worths = worths(seen.outcomes, item, A, response)
        return mean_log_likelihood(seen.outcomes, item, log_worths, response) * float(seen.outcomes.counts.sum())
    return maximise(pack_linear((item[:, None] == np.arange(1, A)).astype(np.float64), seen.outcomes)).found.value


def predictive(model: Any, X: ChoiceSets, y: Any, groups: Any) -> dict[str, float]:
    """Return LOO, if ArviZ is installed, and WAIC."""
    try:
        optional("arviz", "LOO")
    except ImportError:
        return {}
    drawn = model.to_arviz(X, y, groups=groups)
    name = next(iter(drawn.log_likelihood.data_vars))
    log_values = drawn.log_likelihood[name].to_numpy()
    log_values = log_values.reshape(-1, log_values.shape[-1])
    of_draws = log_values.var(axis=0, ddof=1)
    average = logsumexp(log_values, axis=0) - np.log(len(log_values))
    with warnings.catch_warnings(), arviz_for("LOO") as arviz:
        warnings.simplefilter("ignore")  # Pareto k is available from az.loo
        loo = arviz.loo(drawn)
    elpd, error, p = (
        float(next(getattr(loo, name) for name in names if hasattr(loo, name)))
        for names in (("elpd_loo", "elpd"), ("se",), ("p_loo", "p"))
    )
    waic = {"elpd_waic": float((average - of_draws).sum()), "p_waic": float(of_draws.sum())}
    return {"elpd_loo": elpd, "se_loo": error, "p_loo": p} | waic
