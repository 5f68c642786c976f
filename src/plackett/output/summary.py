"""A fitted model in words and tables: `summary()`, `repr` and the HTML of notebooks."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from plackett.data.validation import check_prob
from plackett.directions.learning import LENGTH
from plackett.directions.posterior import DirectionDraws, DirectionPoint
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.gibbs import USUAL
from plackett.model.race import Array
from plackett.posterior.diagnostics import measures, shortcomings
from plackett.posterior.weights import Point
from plackett.priors import GIG

if TYPE_CHECKING:
    import pandas as pd

ACTIVE = 0.1  # of the mean weight 1/(Kp); for the logit, of log-odds by a standard deviation of the covariate
SHOWN = 10  # weights in the HTML
TEXT = ("class", "feature", "covariate")  # columns that are names
NAMES = {EM: "EM", Variational: "variational", Gibbs: "Gibbs"}


class Summarised:
    """What a classifier tells about itself once it is fitted."""

    def summary(self, prob: float = 0.9) -> pd.DataFrame:
        """Each weight with its uncertainty, in a data frame, the largest first; numbers are rounded to be read.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            One row a class and feature:

            - ``class``, ``feature``;
            - ``median`` of the normalised weight λ̄ (EM: ``mode``, and no further column);
            - two quantiles, by default ``5%`` and ``95%``;
            - ``active``: the probability that λ̄ is above a tenth of the mean weight 1/(Kp). No draw is ever zero, but
              where the shape is small (a < 0.1) weights spread over so many orders of magnitude that the threshold
              matters little; where it is larger nothing is clearly off, and this column says little;
            - Gibbs only: ``ess``, the smaller of bulk and tail, and ``rhat`` of ln λ̄.

            Where medians are equal the larger mean comes first. For `SparseLogitClassifier` the same of intercepts and
            coefficients against the last class, whose own are zero: by how much one standard deviation of the
            covariate moves the log-odds (with ``standardize=False`` one unit), and for the intercept the log-odds of
            an average row; ``active`` is the probability that this is more than 0.1. `coef_` is in the units of X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = PlackettLuceClassifier("variational", shape=0.1, features="exp", random_state=0).fit(X, y)
        >>> clf.summary().columns.tolist()
        ['class', 'feature', 'median', '5%', '95%', 'active']
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


@dataclass(frozen=True)
class Estimates:
    """The numbers (K, p) that a model is read by, each the `statistic` of its draws.

    `kind` is what they are called, `meaning` what they mean, `measured` are ESS and R-hat, and `decimals` is how many
    are worth reading.
    """

    kind: str
    meaning: str
    names: npt.NDArray[Any]
    statistic: str
    centre: Array
    mean: Array
    draws: Array | None
    active: Array
    measured: tuple[Array, Array] | None
    decimals: int

    @property
    def order(self) -> npt.NDArray[np.intp]:
        """Places in the flattened arrays, the largest first, without those that are exactly zero."""
        size = np.abs(self.centre.ravel())
        order = np.lexsort((-np.abs(self.mean.ravel()), -size.round(self.decimals)))
        return order[size[order] > 0]


def estimates(classifier: Any) -> Estimates:
    """What the summary lists and `plots.weights` draws."""
    check_is_fitted(classifier)
    if isinstance(classifier.posterior_, DirectionDraws):
        raise ValueError(
            "the components of learned directions have no identity from draw to draw, so there are no weights to "
            "compare. plots.relevance draws how much each column matters, and summary() lists the components."
        )
    return _race(classifier) if hasattr(classifier, "weights_") else _logit(classifier)


def _race(classifier: Any) -> Estimates:
    what, mean = ("weights", "weight", classifier._feature_names()), classifier.weights_
    decimals = 2 + int(np.log10(mean.size))
    if isinstance(classifier.posterior_, Point):
        return Estimates(*what, "mode", mean, mean, None, (mean > 0) * 1.0, None, decimals)
    draws = classifier.posterior_.flat_draws()
    found = getattr(classifier, "diagnostics_", None)
    measured = None if found is None else (np.minimum(found.ess_bulk, found.ess_tail), found.rhat)
    active = (draws > ACTIVE / mean.size).mean(axis=0)
    return Estimates(*what, "median", np.median(draws, axis=0), mean, draws, active, measured, decimals)


def _logit(classifier: Any) -> Estimates:
    """Intercept and coefficients for standardised covariates, without the last class, whose own are zero."""
    posterior, found = classifier.posterior_, classifier.diagnostics_
    names = np.array(["intercept", *_check_feature_names_in(classifier)], dtype=object)
    coef, scale = posterior.coef[:, :, :-1], np.where(np.isfinite(classifier.scale_), classifier.scale_, 0.0)
    average = posterior.intercept[:, :, :-1] + coef @ classifier.mean_
    chains = np.concatenate([average[..., None], coef * scale], axis=-1)
    draws = chains.reshape(-1, *chains.shape[2:])
    measured = None
    if found is not None:
        rhat, bulk, tail = measures(chains)
        measured = np.minimum(bulk, tail), rhat
    unit = "standard deviation" if classifier.standardize else "unit"
    active = (np.abs(draws) > ACTIVE).mean(axis=0)
    median, mean = np.median(draws, axis=0), draws.mean(axis=0)
    what = "coefficients", f"log-odds per {unit}", names
    return Estimates(*what, "median", median, mean, draws, active, measured, 3)


def columns(classifier: Any, prob: float = 0.9) -> dict[str, npt.NDArray[Any]]:
    """The columns of `Summarised.summary`."""
    tail = (1 - check_prob(prob)) / 2
    found = estimates(classifier)
    K, p = found.centre.shape
    numbers: dict[str, npt.NDArray[Any]] = {found.statistic: found.centre.round(found.decimals)}
    if found.draws is not None:
        lower, upper = np.quantile(found.draws, [tail, 1 - tail], axis=0).round(found.decimals)
        numbers |= {f"{100 * tail:g}%": lower, f"{100 * (1 - tail):g}%": upper, "active": found.active.round(2)}
    if found.measured is not None:
        ess, rhat = found.measured
        numbers |= {"ess": ess.round().astype(int), "rhat": rhat.round(2)}
    table = {
        "class": np.repeat(classifier.classes_[:K], p),
        "feature": np.tile(found.names, K),
        **{name: value.ravel() for name, value in numbers.items()},
    }
    zeros = np.setdiff1d(np.arange(K * p), found.order)
    places = np.append(found.order, zeros)
    return {name: column[places] for name, column in table.items()}


def describe(classifier: Any) -> tuple[str, str]:
    """The size of a fitted model with its prior, and how far it is to be trusted, in a line each."""
    if not hasattr(classifier, "weights_"):
        size = f"{len(classifier.classes_)} classes, {classifier.n_features_in_} covariates"
        return f"{size}, penalty θ = {classifier.penalty_:.3g}", verdict(classifier)
    K, p = classifier.weights_.shape
    if isinstance(classifier.posterior_, DirectionDraws):
        M, d = classifier.posterior_.directions.shape[2], classifier.n_features_in_
        return f"{K} classes, {M} learned directions of {d} covariates", verdict(classifier)
    if isinstance(classifier.prior, GIG):
        return f"{K} classes × {p} features, prior {classifier.prior!r}", verdict(classifier)
    learned = "" if classifier.shape != "learn" else " (learned)"
    return f"{K} classes × {p} features, shape a = {classifier.shape_:.3g}{learned}", verdict(classifier)


def resolved(classifier: Any) -> Any:
    """The inference of a race, with the numbers that were used where its settings leave them open."""
    inference = classifier._make_inference()
    if not isinstance(inference, Gibbs):
        return inference
    if isinstance(classifier.posterior_, DirectionDraws):
        return inference.completed(**LENGTH)
    plain = classifier.engine == "numpy" or isinstance(classifier.prior, GIG) or getattr(classifier, "_sparse", False)
    return inference.completed(**USUAL, moves="none" if plain else "exchange")


def how(classifier: Any) -> str:
    """The inference by its name, and how long its chains were."""
    settings = resolved(classifier) if hasattr(classifier, "weights_") else classifier
    name = settings.sampler if settings is classifier else NAMES[type(settings)]
    if classifier.trace_.ndim < 2:
        return str(name)
    chains, draws = classifier.trace_.shape
    made = classifier.n_iter_ - settings.tune
    thinned = f" (of {made:,})" if made > draws else ""
    many = "chain" if chains == 1 else "chains"
    return f"{name}, {chains} {many} of {draws:,} draws{thinned} after {settings.tune:,} of tuning"


def verdict(classifier: Any) -> str:
    """How far a fit is to be trusted, in a sentence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.output.summary import verdict
    >>> verdict(PlackettLuceClassifier("em", shape=0.5, features="exp").fit(*load_iris(return_X_y=True)))
    'EM: 3 of 27 weights are not zero; one estimate without uncertainty'
    """
    return f"{how(classifier)}: {worth(classifier)}"


def worth(classifier: Any) -> str:
    """What came out of the inference."""
    if isinstance(classifier.posterior_, DirectionPoint):
        return "one estimate without uncertainty"
    if isinstance(classifier.posterior_, Point):
        active = int((classifier.weights_ > 0).sum())
        return f"{active} of {classifier.weights_.size} weights are not zero; one estimate without uncertainty"
    if not hasattr(classifier, "diagnostics_"):
        return f"bound {classifier.trace_[-1]:.1f} after {classifier.n_iter_} passes; intervals are narrow"
    found = classifier.diagnostics_
    if found is None:
        return "too few draws to tell whether the chains agree"
    if isinstance(classifier.posterior_, DirectionDraws):
        error = f"averaged probabilities differ between chains by a standard error of {found.monte_carlo_error:.3f}"
        return f"{error} (R-hat up to {found.worst_rhat:.2f})"
    return shortcomings(found) or (
        f"the chains agree: R-hat {found.worst_rhat:.2f}, smallest effective sample size {found.smallest_ess:,.0f}"
    )


def largest(classifier: Any, n: int) -> dict[str, npt.NDArray[Any]]:
    """The first rows of the summary, without weights that are zero.

    For learned directions, whose components have no identity, the most relevant covariates.
    """
    if isinstance(classifier.posterior_, DirectionDraws):
        order = np.argsort(-classifier.relevance_, kind="stable")[:n]
        names = np.asarray(_check_feature_names_in(classifier), dtype=object)
        return {"covariate": names[order], "relevance": classifier.relevance_[order]}
    n = min(n, len(estimates(classifier).order))
    return {name: column[:n] for name, column in columns(classifier).items()}


def listed(classifier: Any) -> str:
    """What `largest` lists."""
    if isinstance(classifier.posterior_, DirectionDraws):
        return "most relevant covariates"
    return f"largest {estimates(classifier).kind}"


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
    return f"{value:.3g}"


def as_html(classifier: Any) -> str:
    """What `repr` says and the largest weights; names and labels are escaped."""
    table = largest(classifier, SHOWN)
    title = listed(classifier).capitalize()
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table)
    body = "".join(f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in cells(table))
    lines = "<br>".join(escape(line) for line in describe(classifier))
    return (
        f"<div><p>{lines}</p><details><summary>{title}</summary>"
        f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></details></div>"
    )
