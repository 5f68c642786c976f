"""Why this class? One prediction taken apart as the race of section 3.1; numbers only, `plots.race` draws them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from scipy import sparse
from sklearn.utils.validation import check_is_fitted, validate_data

from plackett.data.entry import taken
from plackett.data.validation import check_prob
from plackett.directions.posterior import DirectionDraws
from plackett.directions.summary import explanation
from plackett.inference import EM
from plackett.model.race import Array

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["explain", "win_probabilities"]


def win_probabilities(classifier: Any, X: Any) -> Array:
    """Pr(C=j, Y=k | x): the probability that competitor j of team k arrives first, averaged over the posterior.

    Under one λ it is W_j λ_kj / Σ_lm W_m λ_lm, by (3) and (9). Summed over the competitors of a team it is the class
    probability (2): the parts add up to the prediction exactly, with nothing left over.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A fitted model.
    X : array or data frame (n, d)
        Rows to explain.

    Returns
    -------
    (n, K, p) array

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.explain import win_probabilities
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    >>> wins = win_probabilities(clf, X)
    >>> wins.shape, bool(np.allclose(wins.sum(axis=2), clf.predict_proba(X)))
    ((150, 3, 9), True)
    """
    features, draws = _parts(classifier, X)
    found = np.zeros((features.shape[0], *draws.shape[1:]))
    for i in range(len(found)):
        columns, shares = _shares(features[i : i + 1], draws)
        found[i][:, columns] = shares.mean(axis=0)
    return found


def explain(classifier: Any, row: Any, prob: float = 0.9) -> pd.DataFrame:
    """Why one row is predicted as it is: which competitor (feature) wins its race for which team (class), how surely.

    Parameters
    ----------
    classifier : PlackettLuceClassifier
        A fitted model.
    row : Series, dict, data frame or sparse matrix of one row, (d,) array or text
        The row to explain.
    prob : float
        Probability of the intervals.

    Returns
    -------
    DataFrame
        ``class``, ``feature`` and ``probability`` Pr(C=j, Y=k | x), the largest first; the probabilities sum to 1. Of
        sparse features those are listed that are not zero in this row.
        With draws to judge by (not EM) also ``lower`` and ``upper`` of an equal-tailed interval.

        Learned directions have no named competitors. Of them, a row for each ``component`` of the draw that predicts
        most like the average and each ``covariate``: the component's ``gate`` (how much it has to say here), the class
        it ``votes for`` and with which share, ``vote``, and by how much the covariate ``opens`` or shuts the gate.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.explain import explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    >>> why = explain(clf, X.iloc[0])
    >>> int(why["class"][0]), round(float(why["probability"].sum()), 6)
    (0, 1.0)
    """
    import pandas as pd

    prob = check_prob(prob)
    check_is_fitted(classifier)
    if isinstance(classifier.posterior_, DirectionDraws):
        x = validate_data(classifier, taken(classifier, one_row(row)), dtype=np.float64, reset=False)[0]
        learned = classifier.portrait_, classifier.posterior_, classifier.features_
        return explanation(*learned, x, classifier.classes_, classifier._covariates())
    features, draws = _parts(classifier, one_row(row))
    competing, shares = _shares(features, draws)
    K, p = shares.shape[1:]
    columns: dict[str, Any] = {
        "class": np.repeat(classifier.classes_, p),
        "feature": np.tile(classifier._feature_names()[competing], K),
        "probability": shares.mean(axis=0).ravel(),
    }
    if len(shares) > 1:
        tail = (1 - prob) / 2
        lower, upper = np.quantile(shares, [tail, 1 - tail], axis=0)
        columns |= {"lower": lower.ravel(), "upper": upper.ravel()}
    table = pd.DataFrame(columns)
    return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)


def has_intervals(classifier: Any) -> bool:
    """Whether `predict_interval` has something to say; EM gives one estimate."""
    if not hasattr(classifier, "predict_interval"):
        return False
    return not (hasattr(classifier, "weights_") and isinstance(classifier._make_inference(), EM))


def is_race(classifier: Any) -> bool:
    """Whether features compete under names of their own; learned components have none across draws."""
    return hasattr(classifier, "weights_") and not isinstance(classifier.posterior_, DirectionDraws)


def one_row(row: Any) -> Any:
    """A table of one row, or an error that says what came instead."""
    if isinstance(row, str):
        return [row]
    if sparse.issparse(row) and row.ndim == 2 and row.shape[0] == 1:
        return row
    if isinstance(row, dict):
        import pandas as pd

        return pd.DataFrame([row])
    if hasattr(row, "to_frame") and np.ndim(row) == 1:  # a pandas Series
        return row.to_frame().T.infer_objects()
    table = row if hasattr(row, "columns") else np.asarray(row)
    if not hasattr(table, "columns") and table.ndim == 1:
        table = table[None, :]
    if np.ndim(table) != 2 or len(table) != 1:
        raise ValueError(f"expected one row, got shape {np.shape(row)} instead. Take one, such as X.iloc[0] or X[0].")
    return table


def _parts(classifier: Any, X: Any) -> tuple[Any, Array]:
    """W (n, p), dense or CSR, and the draws of λ̄ (S, K, p)."""
    check_is_fitted(classifier)
    if not hasattr(classifier, "weights_"):
        raise ValueError(
            f"only a Plackett–Luce model is a race between features; {type(classifier).__name__} is not one. "
            "Read its coef_ instead."
        )
    if not is_race(classifier):
        raise ValueError(
            "the components of learned directions have no identity from draw to draw, so none can be said to win. "
            "plackett.explain.explain takes a row apart by the components of one draw."
        )
    return classifier._transform(X)[:], classifier.posterior_.flat_draws()


def _shares(row: Any, draws: Array) -> tuple[npt.NDArray[np.intp], Array]:
    """Pr(C=j, Y=k | x) of one row under every draw, (S, K, competitors), and which features these are.

    Of a sparse row they are those that are not zero, unless no active weight answers to it under some draw.
    """
    competing = np.arange(draws.shape[2])
    if sparse.issparse(row):
        rates = row.data * draws[:, :, row.indices]
        if rates.any(axis=(1, 2)).all():
            return row.indices, rates / rates.sum(axis=(1, 2), keepdims=True)
        row = row.toarray()
    rates = row[0] * draws
    answered = rates.any(axis=(1, 2), keepdims=True)
    rates = np.where(answered, rates, draws)  # a row that no active weight answers to says nothing: W = 1
    return competing, rates / rates.sum(axis=(1, 2), keepdims=True)
