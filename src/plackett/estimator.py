"""Base classes of fitted models: common methods, and those of classifiers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator, ClassifierMixin, OneToOneFeatureMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d

from plackett.cluster.predicting import lazily
from plackett.data.partitioned import is_dask
from plackett.data.types import Labels, Lazy
from plackett.data.validation import check_prob, plain
from plackett.inference.driver import Source
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output import sheets
from plackett.output.modelfile import save
from plackett.output.printed import printed
from plackett.output.summary import as_html, describe
from plackett.posterior.base import Codes, Posterior, Table

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def whole_or_not_at_all(model: Any) -> Iterator[None]:
    """Keep attributes set within the block if it succeeds; otherwise restore the model.

    An interruption arrives here only if there are no results to keep: it is raised again without the traceback of the
    fit.
    """
    before = dict(vars(model))
    vars(model).pop("columns_", None)  # of the table of an earlier fit
    try:
        yield
    except BaseException as error:
        vars(model).clear()
        vars(model).update(before)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt("the fit was interrupted before there was anything to keep") from None
        raise


class Model(BaseEstimator):
    """Base of all models: a fitted one has a posterior, which can be read, saved and exported to ArviZ.

    A model implements `_rows`, `_observed`, `_inference_in_words` and `_settings`; its posterior does the rest.
    """

    random_state: Any
    progress: bool
    classes_: npt.NDArray[Any]
    posterior_: Posterior
    trace_: Array
    n_iter_: int
    n_features_in_: int

    def _rows(self, X: Any) -> Any:
        """Check new rows and convert them for the posterior."""
        raise NotImplementedError

    def _observed(self, X: Any, y: Any) -> tuple[Any, Codes]:
        """Return new rows and their outcomes, as input of the posterior."""
        raise NotImplementedError

    def _inference_in_words(self) -> tuple[str, int]:
        """Name the inference and its tuning iterations."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """Return the parameters, with those of the parts; open settings are replaced by the values used."""
        settings: dict[str, Any] = self.get_params(deep=True)
        return settings

    def _run_settings(self) -> Source:
        """Return the seed, whether to show progress, and whether the user chose the seed."""
        words = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        return Source(np.random.SeedSequence(words), bool(self.progress), self.random_state is not None)

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        """Return the name of what has weights (classes or items), and its labels."""
        raise NotImplementedError

    def _predicted(self) -> npt.NDArray[Any]:
        """Labels of the predictions: classes, alternatives or items."""
        labels: npt.NDArray[Any] = self.classes_
        return labels

    def _no_explanation(self) -> str | None:
        """Return why no prediction can be explained, or None."""
        return None

    def _largest(self, n: int) -> tuple[str, Table]:
        """Return a title, and the first rows of the summary."""
        return self.posterior_.largest(self, n)

    def _covariates(self) -> npt.NDArray[np.object_]:
        return np.asarray(OneToOneFeatureMixin.get_feature_names_out(self), dtype=object)

    def summary(self, prob: float = 0.9) -> pd.DataFrame:
        """Return a data frame of weights with their uncertainty, largest first, with rounded numbers.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            One row per class and feature:

            - ``class``, ``feature``;
            - ``median`` of the normalised weight λ̄ (EM: ``mode``, and no further column);
            - two quantiles, by default ``5%`` and ``95%``;
            - ``active``: the probability that λ̄ is above a tenth of the mean weight 1/(Kp). No draw is ever zero, but
              for a small shape (a < 0.1) weights spread over so many orders of magnitude that the threshold hardly
              matters; for a larger one no weight is clearly inactive, and this column is not informative;
            - Gibbs only: ``ess``, the smaller of bulk and tail, and ``rhat`` of ln λ̄.

            Equal medians are sorted by the mean.

            For learned directions, whose components have no identity across draws, the table shows the draw whose
            predictions are closest to the average. One row per ``component`` in use: its ``share`` of the gates, the
            class that it ``votes for`` and the share of this ``vote`` (``posterior_.votes[readable_draw_.draw]`` has
            the votes for the other classes), and its ``direction`` in words: the covariates along which it rises (+) or
            falls (−) most, with the change of its log-odds per standard deviation. Components with a share below 0.0005
            are left out.

            For `SparseLogitClassifier` the same columns for intercepts and coefficients against the last class, whose
            own are zero: the change of the log-odds per standard deviation of the covariate (with
            ``standardize=False`` per unit), and for the intercept the log-odds of an average row; ``active`` is the
            probability that this is more than 0.1. `coef_` is in the units of X.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = PlackettLuceClassifier("variational", shape=0.1, features="exp", random_state=0).fit(X, y)
        >>> clf.summary().columns.tolist()
        ['class', 'feature', 'median', '5%', '95%', 'active']
        """
        check_is_fitted(self)
        return self._printed_summary(self.posterior_.table(self, check_prob(prob)))

    def _printed_summary(self, columns: Table) -> pd.DataFrame:
        """Return a data frame with these columns of a summary, which prints below the description of the model."""
        statistic = next((name for name in ("median", "mode") if name in columns), None)
        left = [name for name, column in columns.items() if column.dtype.kind not in "iuf"]
        head = [*describe(self), *filter(None, [self.posterior_.unit])]
        return printed(columns, lambda table: sheets.summary(table, head, statistic, left), "summary")

    def to_arviz(self, X: Any = None, y: Any = None, raw: bool = False) -> Any:
        """Return the identified draws as ArviZ InferenceData (DataTree with ArviZ 1.x), by chain.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows to predict, for instance those of the fit. Memory is 12 bytes per draw and row.
        y : (n,) array, optional
            Labels of the rows, for the log-likelihood.
        raw : bool
            Also export unidentified draws: directions, log-weights and scales of learned directions, whose components
            have no identity across draws, so that their R-hat is meaningless; for fixed features the logarithms of the
            weights.

        Returns
        -------
        InferenceData or DataTree
            - ``posterior``: with fixed features the normalised ``weight``, and ``shape`` if it is learned; for
              `SparseLogitClassifier` ``coef``, ``intercept`` and ``penalty``; with X also ``probability``, the class
              probabilities of at most 20 of its rows, evenly spaced. The dimension ``at`` has their positions in X.
            - ``sample_stats``: ``lp``, which is `trace_`.
            - ``posterior_predictive``, with X: for every draw and row a class ``y``, as index of `classes_`; from
              ``random_state``.
            - ``log_likelihood`` and ``observed_data``, with X and y: of ``y``, as index too.

        Notes
        -----
        Probabilities, predictive draws and log-likelihoods belong to the model's predictions. Learned directions
        predict p ∝ (w·mode + (1 − w)·average)^κ, where the average is that of the draws. For draw s this is
        p_s ∝ (w·mode_s + (1 − w)·draw_s)^κ with mode_s ∝ mode·draw_s/average: the mode has no draws of its own, and
        its log-odds are assumed to vary as those of the draws. The mean of p_s is close to `predict_proba`, but not
        equal, as powers and ratios are averaged. ``az.loo`` then estimates the log-loss of `predict_proba` on new rows,
        with w and κ, which were chosen on held-out rows, as given.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True)
        >>> clf = PlackettLuceClassifier(features="exp", random_state=0).fit(X, y)
        >>> clf.to_arviz(X, y).posterior["probability"].dims
        ('chain', 'draw', 'at', 'class')
        """
        from plackett.output.arviz import to_arviz

        check_is_fitted(self)
        return to_arviz(self, X, y, raw)

    def save(self, path: Any) -> None:
        """Write the fitted model to a file for `plackett.load`, which cannot run code."""
        check_is_fitted(self)
        save(self, path)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters: str = super().__repr__(N_CHAR_MAX)
        return "\n  ".join([parameters, *describe(self)]) if hasattr(self, "posterior_") else parameters

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # AttributeError if scikit-learn is set to show text
        return lambda: self._above(diagram())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self._above(bundle["text/html"])} if "text/html" in bundle else bundle

    def _above(self, diagram: str) -> str:
        """Prepend the results of a fit to scikit-learn's diagram."""
        return as_html(self) + diagram if hasattr(self, "posterior_") else diagram


class Classifier(ClassifierMixin, Model):
    """Model of one label per row."""

    @overload
    def predict_proba(self, X: Lazy) -> Any: ...
    @overload
    def predict_proba(self, X: Any) -> Array: ...
    def predict_proba(self, X: Any) -> Any:
        """Return class probabilities (n, K), averaged over the posterior; for a Dask collection, a Dask array."""
        check_is_fitted(self)
        if is_dask(X):
            return lazily(self.predict_proba, X, np.empty((0, len(self.classes_))))
        return self.posterior_.predict(self._rows(X))

    def predict_interval(self, X: Any, prob: float = 0.9) -> tuple[Array, Array]:
        """Return credible intervals of the class probabilities: equal-tailed, or shortest for learned directions.

        Parameters
        ----------
        X : array or data frame (n, d)
            New rows.
        prob : float
            Probability that an interval holds.

        Returns
        -------
        lower, upper : arrays (n, K)
        """
        check_is_fitted(self)
        return self.posterior_.interval(self._rows(X), check_prob(prob))

    @overload
    def predict(self, X: Lazy) -> Any: ...
    @overload
    def predict(self, X: Any) -> Labels: ...
    def predict(self, X: Any) -> Any:
        """Return the most probable class of each row."""
        if is_dask(X):
            check_is_fitted(self)
            return lazily(self.predict, X, self.classes_[:0])
        probability = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[np.argmax(probability, axis=1)]
        return labels

    def effects(self, X: Any, prob: float = 0.9) -> pd.DataFrame:
        """Return average marginal effects: changes of class probabilities when a column changes, averaged over rows.

        Parameters
        ----------
        X : array or data frame (n, d)
            Rows to average over, for instance those of the fit; at most 400, evenly spaced.
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            One row per class and feature, rounded:

            - ``class``, ``feature``;
            - ``effect``: for a number, the change of the class probability per unit, averaged over the rows; for a
              0/1 column, the average difference between 1 and 0; for a text column, between each level and the most
              frequent one, in lines such as ``home: town vs farm``;
            - ``lower`` and ``upper`` of an interval over at most 400 draws, and ``positive``, the probability that the
              effect is above 0. NaN after EM, which has a single estimate;
            - ``effect_per_sd``: for a number, the effect times its standard deviation over the rows, which compares
              columns in different units; otherwise the effect itself. Features with the largest come first.

        Notes
        -----
        Effects refer to the model's predictions, by central differences over 0.02 standard deviations of the column,
        or over half of one if covariates enter as normal scores, which bend at every observed value. The interval
        uses the predictions of single draws. Effects of a feature add up to 0 over the classes. The indicators of a
        text column are identified by the model's table, or by names such as ``home=town``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = PlackettLuceClassifier("variational", features="exp", random_state=0).fit(X, y)
        >>> table = clf.effects(X)
        >>> table.columns.tolist(), len(table)
        (['class', 'feature', 'effect', 'lower', 'upper', 'positive', 'effect_per_sd'], 12)
        """
        check_is_fitted(self)
        from plackett.output.effects import average_effects

        optional("pandas", "effects")
        prob, found = check_prob(prob), average_effects(self, X)
        columns = found.table(self.classes_, prob, self.posterior_.no_interval is not None)
        rows = f"{np.shape(X)[0]:,} rows"
        return printed(columns, lambda table: sheets.effects(table, ("class", "feature"), rows), "effects")

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "class", self.classes_

    def _observed(self, X: Any, y: Any) -> tuple[Any, Codes]:
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        known = np.isin(labels, self.classes_)
        if not known.all():
            raise ValueError(f"the model does not know the class {plain(labels[~known][0])} in y; leave such rows out.")
        return self._rows(X), np.searchsorted(self.classes_, labels)
