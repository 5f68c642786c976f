"""A fitted model in words and tables: `summary()`, `repr` and the HTML of notebooks."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from plackett.diagnostics import shortcomings
from plackett.directions.posterior import DirectionDraws, DirectionPoint
from plackett.model.race import Array
from plackett.posterior import Gammas, Point
from plackett.validation import check_prob

if TYPE_CHECKING:
    import pandas as pd

ACTIVE = 0.1  # of the mean weight 1/(Kp); for the logit, of log-odds by a standard deviation of the covariate
SHOWN = 10  # weights in the HTML
TEXT = ("class", "feature", "covariate")  # columns that are names


class Summarised:
    """What a classifier tells about itself once it is fitted."""

    def summary(self, prob: float = 0.9) -> pd.DataFrame:
        """Each weight with its uncertainty, in a data frame.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            One row a class and feature:

            - ``class``, ``feature``;
            - ``mean``, ``sd`` and two quantiles, by default ``5%`` and ``95%``, of the normalised weight λ̄. EM has a
              mode, given as the mean, and no uncertainty: the others are NaN;
            - ``active``: the probability that λ̄ is above a tenth of the mean weight 1/(Kp). No draw is ever zero, but
              where the shape is small (a < 0.1) weights spread over so many orders of magnitude that the threshold
              matters little; where it is larger nothing is clearly off, and this column says little. With EM, 1 for a
              weight that is not zero and 0 for one that is;
            - ``ess``, the smaller of bulk and tail, and ``rhat`` of ln λ̄: Gibbs only, else NaN.

            For `SparseLogitClassifier` the same of intercepts and coefficients, without the last class, whose
            coefficients are zero; ``active`` is the probability that one standard deviation of the covariate (for the
            intercept: the whole of it) moves the log-odds against the last class by more than 0.1.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = PlackettLuceClassifier("variational", shape=0.1, features="exp", random_state=0).fit(X, y)
        >>> clf.summary().columns.tolist()
        ['class', 'feature', 'mean', 'sd', '5%', '95%', 'active', 'ess', 'rhat']
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("summary needs pandas: pip install 'plackett[cli]'") from error
        return pd.DataFrame(columns(self, prob))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters: str = super().__repr__(N_CHAR_MAX)  # type: ignore[call-arg]
        return "\n  ".join([parameters, *describe(self)]) if hasattr(self, "posterior_") else parameters

    def _repr_html_inner(self) -> str:
        diagram: str = super()._repr_html_inner()  # type: ignore[misc]
        return as_html(self) + diagram if hasattr(self, "posterior_") else diagram

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        return bundle | {"text/html": self._repr_html_inner()} if "text/html" in bundle else bundle


def columns(classifier: Any, prob: float = 0.9) -> dict[str, npt.NDArray[Any]]:
    """The columns of `Summarised.summary`."""
    check_is_fitted(classifier)
    tail = (1 - check_prob(prob)) / 2
    parts = _race if hasattr(classifier, "weights_") else _logit
    names, mean, draws, active, found = parts(classifier)
    K, p = mean.shape
    if draws is None:
        sd = lower = upper = np.full((K, p), np.nan)
    else:
        sd = draws.std(axis=0, ddof=1)
        lower, upper = np.quantile(draws, [tail, 1 - tail], axis=0)
    ess, rhat = (np.full((K, p), np.nan),) * 2 if found is None else found
    numbers = {
        "mean": mean,
        "sd": sd,
        f"{100 * tail:g}%": lower,
        f"{100 * (1 - tail):g}%": upper,
        "active": active,
        "ess": ess,
        "rhat": rhat,
    }
    return {
        "class": np.repeat(classifier.classes_[:K], p),
        "feature": np.tile(np.asarray(names, dtype=object), K),
        **{name: value.ravel() for name, value in numbers.items()},
    }


def _race(classifier: Any) -> tuple[Any, Array, Array | None, Array, tuple[Array, Array] | None]:
    """Names, means, draws, probabilities of being active, and (ESS, R-hat), of the weights."""
    names, mean = classifier._feature_names(), classifier.weights_
    if isinstance(classifier.posterior_, Point):
        return names, mean, None, (mean > 0) * 1.0, None
    draws = classifier.posterior_.flat_draws()
    found = getattr(classifier, "diagnostics_", None)
    measured = None if found is None else (np.minimum(found.ess_bulk, found.ess_tail), found.rhat)
    return names, mean, draws, (draws > ACTIVE / mean.size).mean(axis=0), measured


def _logit(classifier: Any) -> tuple[Any, Array, Array | None, Array, tuple[Array, Array] | None]:
    """The same of intercept and coefficients, without the last class."""
    names = ["intercept", *_check_feature_names_in(classifier)]
    posterior, found = classifier.posterior_, classifier.diagnostics_
    mean = _side_by_side(classifier.intercept_, classifier.coef_)
    draws = _side_by_side(posterior.intercept, posterior.coef).reshape(-1, *mean.shape)
    unit = np.append(1.0, np.where(np.isfinite(classifier.scale_), classifier.scale_, 0.0))
    active = (np.abs(draws * unit) > ACTIVE).mean(axis=0)
    if found is None:
        return names, mean, draws, active, None
    rhat, bulk, tail = (
        _side_by_side(getattr(found.intercept, name), getattr(found.coef, name))
        for name in ("rhat", "ess_bulk", "ess_tail")
    )
    return names, mean, draws, active, (np.minimum(bulk, tail), rhat)


def _side_by_side(intercept: Array, coef: Array) -> Array:
    """(…, K−1, 1+d) from (…, K) and (…, K, d)."""
    joined: Array = np.concatenate([intercept[..., None], coef], axis=-1)[..., :-1, :]
    return joined


def describe(classifier: Any) -> tuple[str, str]:
    """The size of a fitted model with its prior, and how far it is to be trusted, in a line each."""
    if not hasattr(classifier, "weights_"):
        size = f"{len(classifier.classes_)} classes, {classifier.n_features_in_} covariates"
        return f"{size}, penalty θ = {classifier.penalty_:.3g}", verdict(classifier)
    K, p = classifier.weights_.shape
    if isinstance(classifier.posterior_, DirectionDraws):
        M, d = classifier.posterior_.directions.shape[2], classifier.n_features_in_
        return f"{K} classes, {M} learned directions of {d} covariates", verdict(classifier)
    learned = "" if classifier.shape != "learn" else " (learned)"
    return f"{K} classes × {p} features, shape a = {classifier.shape_:.3g}{learned}", verdict(classifier)


def verdict(classifier: Any) -> str:
    """How far a fit is to be trusted, in a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.summary import verdict
    >>> verdict(PlackettLuceClassifier("em", shape=0.5, features="exp").fit(*load_iris(return_X_y=True)))
    'EM: 3 of 27 weights are not zero; one estimate without uncertainty'
    """
    if isinstance(classifier.posterior_, DirectionDraws):
        return _verdict_of_directions(classifier)
    if isinstance(classifier.posterior_, Gammas):
        return f"variational: bound {classifier.trace_[-1]:.1f} after {classifier.n_iter_} passes; intervals are narrow"
    if not hasattr(classifier, "diagnostics_"):
        active = int((classifier.weights_ > 0).sum())
        return f"EM: {active} of {classifier.weights_.size} weights are not zero; one estimate without uncertainty"
    chains, draws = classifier.trace_.shape
    size = f"{chains} chains of {draws:,} draws"
    found = classifier.diagnostics_
    if found is None:
        return f"{size}: too few to tell whether the chains agree"
    wrong = shortcomings(found)
    if wrong is not None:
        return f"{size}: {wrong}"
    return f"{size} agree: R-hat {found.worst_rhat:.2f}, smallest effective sample size {found.smallest_ess:,.0f}"


def _verdict_of_directions(classifier: Any) -> str:
    if isinstance(classifier.posterior_, DirectionPoint):
        return "EM: one estimate without uncertainty"
    chains, draws = classifier.posterior_.log_weights.shape[:2]
    size, found = f"{chains} chains of {draws:,} draws", classifier.diagnostics_
    if found is None:
        return f"{size}: too few to tell whether the chains agree"
    error = f"averaged probabilities differ between chains by a standard error of {found.monte_carlo_error:.3f}"
    return f"{size}: {error} (R-hat up to {found.worst_rhat:.2f})"


def largest(classifier: Any, n: int) -> dict[str, npt.NDArray[Any]]:
    """The rows of the summary with the largest weights (for the logit, coefficients), without empty columns.

    For learned directions, whose components have no identity, the most relevant covariates.
    """
    if isinstance(classifier.posterior_, DirectionDraws):
        order = np.argsort(-classifier.relevance_, kind="stable")[:n]
        names = np.asarray(_check_feature_names_in(classifier), dtype=object)
        return {"covariate": names[order], "relevance": classifier.relevance_[order]}
    table = columns(classifier)
    order = np.argsort(-np.abs(table["mean"]), kind="stable")[:n]
    told = {name: column for name, column in table.items() if column.dtype != float or not np.isnan(column).all()}
    return {name: column[order] for name, column in told.items()}


def cells(table: dict[str, npt.NDArray[Any]]) -> list[list[str]]:
    """The rows of a summary as text; empty where there is no number."""
    rows = zip(*(column.tolist() for column in table.values()), strict=True)
    return [[_cell(name, value) for name, value in zip(table, row, strict=True)] for row in rows]


def _cell(name: str, value: Any) -> str:
    if name in TEXT:
        return str(value)
    if np.isnan(value):
        return ""
    if name in ("ess", "rhat", "active"):
        return f"{value:,.0f}" if name == "ess" else f"{value:.2f}"
    return f"{value:.3g}" if value == 0 or abs(value) >= 1e-6 else "<1e-6"


def as_html(classifier: Any) -> str:
    """What `repr` says and the largest weights; names and labels are escaped."""
    table = largest(classifier, SHOWN)
    title = "Most relevant covariates" if "relevance" in table else "Largest weights"
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells(table))
    lines = "<br>".join(escape(line) for line in describe(classifier))
    return (
        f"<div><p>{lines}</p><details><summary>{title}</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details></div>"
    )
