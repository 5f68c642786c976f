"""The manners that fitted models share: what any of them has, and what is about classes."""

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
from plackett.output.modelfile import save
from plackett.output.summary import as_html, describe
from plackett.posterior.base import Codes, Posterior, Table

if TYPE_CHECKING:
    import pandas as pd


@contextmanager
def whole_or_not_at_all(model: Any) -> Iterator[None]:
    """What is set on the model within stays if all goes well; else the model is left as it was.

    An interruption arrives here only where nothing can be kept: it is raised again without the depths of the fit.
    """
    before = dict(vars(model))
    try:
        yield
    except BaseException as error:
        vars(model).clear()
        vars(model).update(before)
        if isinstance(error, KeyboardInterrupt):
            raise KeyboardInterrupt("the fit was interrupted before there was anything to keep") from None
        raise


class Model(BaseEstimator):
    """What any model has once it is fitted: a posterior that can be read, kept in a file and handed to ArviZ.

    A model gives `_rows`, `_observed`, `_inference_in_words` and `_settings`; all else it leaves to its posterior.
    """

    random_state: Any
    progress: bool
    classes_: npt.NDArray[Any]
    posterior_: Posterior
    trace_: Array
    n_iter_: int
    n_features_in_: int

    def _rows(self, X: Any) -> Any:
        """New rows, checked, as the posterior takes them."""
        raise NotImplementedError

    def _observed(self, X: Any, y: Any) -> tuple[Any, Codes]:
        """New rows as the posterior takes them, and what was seen of each as it takes that."""
        raise NotImplementedError

    def _inference_in_words(self) -> tuple[str, int]:
        """The inference by its name, and the iterations of tuning."""
        raise NotImplementedError

    def _settings(self) -> dict[str, Any]:
        """Parameters with those of the parts; numbers that were left open are those that were used."""
        settings: dict[str, Any] = self.get_params(deep=True)
        return settings

    def _run_settings(self) -> Source:
        """Seed, whether to show progress, and whether the user chose the seed."""
        words = check_random_state(self.random_state).randint(2**31, size=4).tolist()
        return Source(np.random.SeedSequence(words), bool(self.progress), self.random_state is not None)

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        """What has weights, in a word, and their labels: classes or items."""
        raise NotImplementedError

    def _predicted(self) -> npt.NDArray[Any]:
        """Labels of what is predicted: classes, alternatives or items."""
        labels: npt.NDArray[Any] = self.classes_
        return labels

    def _no_explanation(self) -> str | None:
        """Why no prediction can be taken apart, if none can."""
        return None

    def _largest(self, n: int) -> tuple[str, Table]:
        """What matters most: its name, and the first rows of the summary."""
        return self.posterior_.largest(self, n)

    def _covariates(self) -> npt.NDArray[np.object_]:
        return np.asarray(OneToOneFeatureMixin.get_feature_names_out(self), dtype=object)

    def summary(self, prob: float = 0.9) -> pd.DataFrame:
        """A data frame to read: each weight with its uncertainty, the largest first; numbers are rounded.

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
              where the shape is small (a < 0.1) weights spread over so many orders of magnitude that the threshold
              matters little; where it is larger nothing is clearly off, and this column says little;
            - Gibbs only: ``ess``, the smaller of bulk and tail, and ``rhat`` of ln λ̄.

            Where medians are equal the larger mean comes first.

            Of learned directions, whose components have no identity from draw to draw, those of the draw that predicts
            most like the average are shown. A row for each ``component`` and ``covariate``: the component's ``share``
            of the gates, the class that it ``votes for`` and with which share, ``vote``
            (``posterior_.votes[readable_draw_.draw]`` has the votes for the other classes), and its ``direction`` along
            the covariate.

            Of `SparseLogitClassifier` the same as of weights, of intercepts and coefficients against the last class,
            whose own are zero: by how much one standard deviation of the covariate moves the log-odds (with
            ``standardize=False`` one unit), and for the intercept the log-odds of an average row; ``active`` is the
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
        return optional("pandas", "summary").DataFrame(self.posterior_.table(self, check_prob(prob)))

    def to_arviz(self, X: Any = None, y: Any = None, raw: bool = False) -> Any:
        """The draws as ArviZ InferenceData (DataTree with ArviZ 1.x): what is identified, chain by chain.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows to predict, those of the fit say, or a few that matter. It takes 12 bytes a draw and row.
        y : (n,) array, optional
            Their labels, for the log-likelihood.
        raw : bool
            Export also draws that are not identified one by one: directions, log-weights and scales of learned
            directions, whose components have no identity from draw to draw, so that their R-hat says nothing; of
            fixed features the logarithms of the weights.

        Returns
        -------
        InferenceData or DataTree
            - ``posterior``: with fixed features the normalised ``weight``, and ``shape`` where it is learned; of
              `SparseLogitClassifier` ``coef``, ``intercept`` and ``penalty``; with X also ``probability``, the class
              probabilities of 20 of its rows evenly spread, or of all where there are no more. The dimension ``at``
              has their places in X.
            - ``sample_stats``: ``lp``, which is `trace_`.
            - ``posterior_predictive``, with X: for every draw and row a class ``y``, by its place in `classes_`; from
              ``random_state``.
            - ``log_likelihood`` and ``observed_data``, with X and y: of ``y``, by place as well.

        Notes
        -----
        Probabilities, predictive draws and log-likelihoods are those of the prediction that is made. Learned
        directions predict p ∝ (w·mode + (1 − w)·average)^κ, the average being that of the draws. Of draw s this is
        p_s ∝ (w·mode_s + (1 − w)·draw_s)^κ, where mode_s ∝ mode·draw_s/average: the mode has no draws of its own, and
        its log-odds are taken to vary as those of the draws do. The mean of p_s is close to `predict_proba`, and not
        equal, as powers and ratios are averaged. ``az.loo`` then estimates the log-loss of `predict_proba` on new rows;
        w and κ, which were chosen on held-out rows, it takes as given.

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
        """Write the fitted model to a file that `plackett.load` reads and that cannot run code."""
        check_is_fitted(self)
        save(self, path)

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        parameters: str = super().__repr__(N_CHAR_MAX)
        return "\n  ".join([parameters, *describe(self)]) if hasattr(self, "posterior_") else parameters

    @property
    def _repr_html_(self) -> Callable[[], str]:
        diagram: Callable[[], str] = super()._repr_html_  # AttributeError where scikit-learn is set to show text
        return lambda: self._above(diagram())

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)
        return bundle | {"text/html": self._above(bundle["text/html"])} if "text/html" in bundle else bundle

    def _above(self, diagram: str) -> str:
        """What a fit has found, above scikit-learn's diagram."""
        return as_html(self) + diagram if hasattr(self, "posterior_") else diagram


class Classifier(ClassifierMixin, Model):
    """A model of one label a row."""

    @overload
    def predict_proba(self, X: Lazy) -> Any: ...
    @overload
    def predict_proba(self, X: Any) -> Array: ...
    def predict_proba(self, X: Any) -> Any:
        """Class probabilities (n, K), averaged over the posterior; of a Dask collection, a Dask array."""
        check_is_fitted(self)
        if is_dask(X):
            return lazily(self.predict_proba, X, np.empty((0, len(self.classes_))))
        return self.posterior_.predict(self._rows(X))

    def predict_interval(self, X: Any, prob: float = 0.9) -> tuple[Array, Array]:
        """Credible intervals of the class probabilities: shortest with learned directions, equal-tailed otherwise.

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
        """The most probable class of each row."""
        if is_dask(X):
            check_is_fitted(self)
            return lazily(self.predict, X, self.classes_[:0])
        probability = self.predict_proba(X)
        labels: npt.NDArray[Any] = self.classes_[np.argmax(probability, axis=1)]
        return labels

    def effects(self, X: Any, prob: float = 0.9) -> pd.DataFrame:
        """Average marginal effects: by how much class probabilities move, on average over rows, if a column does.

        Parameters
        ----------
        X : array or data frame (n, d)
            Rows to average over, those of the fit say. Of more than 400, 400 that are spread evenly are taken.
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            One row per class and feature, rounded:

            - ``class``, ``feature``;
            - ``effect``: of a number, the change of the class probability per unit of it, averaged over the rows; of a
              0/1 column, the average difference between 1 and 0; of a text column, between each level and the most
              frequent one, in lines such as ``home: town vs farm``;
            - ``lower`` and ``upper`` of an interval over draws, at most 400 of them, and ``positive``, the probability
              that the effect is above 0. EM has one estimate, and these are NaN.

        Notes
        -----
        Effects are of the predictions that are made, by central differences over 0.02 standard deviations of the
        column, or over half of one where covariates are taken as normal scores, which bend at every value seen. Under
        a draw the same is done with what it would predict by itself. Over the classes, effects of a feature add up
        to 0. The indicators of a text column are known by the model's table, or by names such as ``home=town``.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> clf = PlackettLuceClassifier("variational", features="exp", random_state=0).fit(X, y)
        >>> table = clf.effects(X)
        >>> table.columns.tolist(), len(table)
        (['class', 'feature', 'effect', 'lower', 'upper', 'positive'], 12)
        """
        check_is_fitted(self)
        from plackett.output.effects import average_effects

        pandas, prob = optional("pandas", "effects"), check_prob(prob)
        found = average_effects(self, X)
        return pandas.DataFrame(found.table(self.classes_, prob, self.posterior_.no_interval is not None))

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "class", self.classes_

    def _observed(self, X: Any, y: Any) -> tuple[Any, Codes]:
        labels = column_or_1d(y)
        check_consistent_length(X, labels)
        known = np.isin(labels, self.classes_)
        if not known.all():
            raise ValueError(f"the model does not know the class {plain(labels[~known][0])} in y; leave such rows out.")
        return self._rows(X), np.searchsorted(self.classes_, labels)
