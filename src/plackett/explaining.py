"""Explanation of one prediction of a class or item, as the race of section 3.1 or by columns; `plots` draws it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_is_fitted

from plackett.data.choice_sets import ChoiceSets
from plackett.data.model_input import of_pipeline
from plackett.data.validation import check_prob
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output import sheets
from plackett.output.printed import Sheet, printed
from plackett.posterior.base import refuse

if TYPE_CHECKING:
    import pandas as pd

    from plackett.estimator import Classifier

__all__ = ["effects", "explain", "win_probabilities"]


def win_probabilities(classifier: Classifier, X: Any) -> Array:
    """Return Pr(C=j, Y=k | x): the probability that competitor j of group k arrives first, averaged over the posterior.

    Under one λ it is W_j λ_kj / Σ_lm W_m λ_lm, by (3) and (9). Summed over the competitors of a group it is the class
    probability (2): the parts add up to the prediction exactly.

    Parameters
    ----------
    classifier : PlackettLuceClassifier or PlackettLuceRanker
        A fitted model with fixed features; for a ranker, the groups are items.
    X : array or data frame (n, d)
        Rows to explain.

    Returns
    -------
    (n, K, p) array

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier, win_probabilities
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    >>> wins = win_probabilities(clf, X)
    >>> wins.shape, bool(np.allclose(wins.sum(axis=2), clf.predict_proba(X)))
    ((150, 3, 9), True)
    """
    check_is_fitted(classifier)
    classifier, X = of_pipeline(classifier, X)
    posterior = classifier.posterior_
    refuse(classifier._no_explanation() or posterior.no_race)
    rows = classifier._rows(X)[:]
    found = np.zeros((rows.shape[0], *posterior.shape_of_estimate))
    for i in range(len(found)):
        competing, shares = posterior.wins(rows[i : i + 1])
        found[i][:, competing] = shares.mean(axis=0)
    return found


def explain(classifier: Classifier, row: Any, prob: float = 0.9) -> pd.DataFrame:
    """Explain the prediction of one row by columns of the table, or by the race of named features.

    Parameters
    ----------
    classifier : PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceChooser or PlackettLuceRanker
        A fitted model; a ranker with covariates; or a pipeline that ends with one.
    row : Series, dict, data frame or sparse matrix of one row, (d,) array or text
        The row to explain; for a chooser, `ChoiceSets` of one situation.
    prob : float
        Probability of the intervals.

    Returns
    -------
    DataFrame
        For learned directions and a logit, the contribution of each column to the log-odds ln p − ln(1 − p) of the
        predicted class: ``feature``, its ``value`` in this row, ``contribution``, ``lower`` and ``upper`` of an
        equal-tailed interval (NaN after EM), largest contribution first. Contributions are relative to a reference
        row, and add up: ``attrs["reference"] + contribution.sum()`` is ``attrs["prediction"]``, the log-odds of
        ``attrs["class"]`` under `predict_proba`. ``attrs["reference_row"]`` has the reference row and
        ``attrs["reference_is"]`` describes it. The indicators of a text column are one line.

        For fixed features, ``class``, ``feature`` and ``probability`` Pr(C=j, Y=k | x) that this competitor wins for
        this group, largest first; the probabilities sum to 1. For sparse features the non-zero ones of this row are
        listed. With draws (not EM) also ``lower`` and ``upper``.

        For a chooser the same for one situation: contributions to the log-odds of the predicted alternative, each
        ``of`` an alternative's attribute or of a "person" column; or winners, by ``alternative`` and feature.

        For a ranker the same for the covariates of one row: contributions to the log-odds of the item that most
        probably comes first, ``attrs["class"]``; or first arrivals, by ``item`` and feature.

    Notes
    -----
    A contribution is (x_f − x⁰_f) ∫ ∂F/∂x_f along the straight line from the reference row x⁰ to x, where F is the
    log-odds of the final prediction, including averages, stacking and κ. For covariates as normal scores the line is
    straight on their scale. Intervals are over the contributions to the predictions of single draws.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier, explain
    >>> X, y = load_iris(return_X_y=True, as_frame=True)
    >>> clf = PlackettLuceClassifier("em").fit(X, y)
    >>> why = explain(clf, X.iloc[0])
    >>> p = clf.predict_proba(X[:1])[0, why.attrs["class"]]
    >>> bool(np.isclose(why.attrs["reference"] + why.contribution.sum(), np.log(p / (1 - p))))
    True
    >>> paper = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    >>> why = explain(paper, X.iloc[0])
    >>> int(why["class"][0]), round(float(why["probability"].sum()), 6)
    (0, 1.0)
    """
    optional("pandas", "explain")
    check_is_fitted(classifier)
    refuse(of_pipeline(classifier)[0]._no_explanation())
    classifier, row = of_pipeline(classifier, one_row(row))
    columns, attributes = classifier.posterior_.explain(classifier, row, check_prob(prob))
    what = "alternative" if hasattr(classifier, "alternatives_") else classifier._labels()[0]

    def layout(table: Any) -> Sheet:
        return sheets.contributions(table, what) if attributes else sheets.race(table, prob)

    frame = printed(columns, layout, "explain")
    frame.attrs.update(attributes)
    return frame


def effects(model: Any, X: Any, prob: float = 0.9) -> pd.DataFrame:
    """Return average marginal effects on the predictions of a model, or of a pipeline that ends with one.

    Parameters
    ----------
    model : PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceChooser or Pipeline
        A fitted model, whose method `effects` does the same.
    X : array, data frame (n, d) or ChoiceSets
        Rows or situations to average over, as the model or pipeline takes them.
    prob : float
        Probability of the intervals.

    Returns
    -------
    DataFrame
        As the method returns it.

    Examples
    --------
    >>> import pandas as pd
    >>> from sklearn.pipeline import make_pipeline
    >>> from plackett import PlackettLuceClassifier, TableEncoder, effects
    >>> X = pd.DataFrame({"age": [31, 27, 54, 40] * 9, "home": ["town", "farm", "town", None] * 9})
    >>> pipe = make_pipeline(TableEncoder(), PlackettLuceClassifier("em")).fit(X, ["bus", "car", "bus", "car"] * 9)
    >>> sorted(set(effects(pipe, X)["feature"]))
    ['age', 'home: farm vs town', 'home: missing vs town']
    """
    check_is_fitted(model)
    model, X = of_pipeline(model, X)
    found: pd.DataFrame = model.effects(X, prob)
    return found


def one_row(row: Any) -> Any:
    """Return a table of one row, or raise an error that says what was passed."""
    if isinstance(row, str):
        return [row]
    if isinstance(row, ChoiceSets):
        if len(row) != 1:
            raise ValueError(f"expected one situation, got {len(row)} instead. Take one, such as X[0].")
        return row
    if sparse.issparse(row) and row.ndim == 2 and row.shape[0] == 1:
        return row
    if isinstance(row, dict):
        return optional("pandas", "a row as a dict").DataFrame([row])
    if hasattr(row, "to_frame") and np.ndim(row) == 1:  # a pandas Series
        return row.to_frame().T.infer_objects()
    table = row if hasattr(row, "columns") else np.asarray(row)
    if not hasattr(table, "columns") and table.ndim == 1:
        table = table[None, :]
    if np.ndim(table) != 2 or len(table) != 1:
        raise ValueError(f"expected one row, got shape {np.shape(row)} instead. Take one, such as X.iloc[0] or X[0].")
    return table
