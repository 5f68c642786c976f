"""Classifier of the Plackett–Luce model: validate once, choose the parts, predict."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from plackett.capabilities import Combination, Kind
from plackett.cluster.class_parts import ClassTable, read_classes
from plackett.cluster.client import cluster, cluster_for
from plackett.cluster.predicting import refuse_partitions
from plackett.compute.blas import one_blas_thread
from plackett.data.model_input import check_dense, encoded, numbers, taken
from plackett.data.observations import Observations
from plackett.data.partitioned import is_dask
from plackett.data.rows import take_rows
from plackett.data.validation import (
    _weights_of_classes,
    check_prob,
    check_whole,
    class_labels,
    coded_groups,
    coded_labels,
    is_whole,
    plain,
    row_weights,
)
from plackett.directions import Gates
from plackett.engines.device import present
from plackett.estimator import Classifier, whole_or_not_at_all
from plackett.features import ExpFeatures
from plackett.features.gate_summary import relevances
from plackett.features.gates_on_gpu import GatesOnGpu
from plackett.fit import (
    Run,
    direct_class_parts,
    direct_classes,
    fit_directions,
    fit_weights,
    prepare_class_parts,
    prepare_map,
)
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output import stored_models
from plackett.posterior.base import RacePosterior, mean_and_bounds
from plackett.priors import GIG
from plackett.race_model import STORED, RaceModel

if TYPE_CHECKING:
    import pandas as pd

MANY_GATES = 1 << 26  # number of gates per prediction from which a GPU is faster


class PlackettLuceClassifier(RaceModel, Classifier):
    """Bayesian Plackett–Luce regression: Pr(Y=k|x) = W(x)·λ_k / Σ_l W(x)·λ_l.

    The features W are non-negative, the weights λ non-negative and sparse with a Gam(a, b) prior.

    Parameters
    ----------
    inference : {"gibbs", "bootstrap", "variational", "em"} or EM, Variational, Gibbs or Bootstrap
        Method of inference: draws from the posterior, a fast approximation of it ("bootstrap" for learned
        directions, "variational" for fixed features), or its mode with exact zeros. An instance sets the details.
    shape : float or "learn"
        Shape a of the Gamma prior; smaller values are sparser. "learn": sampled (Gibbs), type-II maximum likelihood
        (variational), cross-validated log-loss (EM).
    rate : float
        Rate b of the Gamma prior, for fixed features. It sets the scale of the weights, which has no effect on
        predictions.
    features : "learned", "exp" or transformer
        Feature map W. "learned" is `LearnedDirections`: W_j = exp(x·β_j) with β learned from the labels, which
        predicts best. "exp" is `ExpFeatures`, the paper's model, with a weight to read for every feature and class.
        Or any transformer with non-negative output; sparse output stays sparse.
    prior : "gamma" or GIG
        Prior of the weights of fixed features: Gam(shape, rate), or a `plackett.priors.GIG` with its own parameters,
        in which case ``shape`` and ``rate`` here must keep their defaults.
    engine : {"auto", "numba", "numpy", "cupy", "dask"}
        Place of the passes over the rows: compiled on all cores; in plain NumPy, the readable reference; on an NVIDIA
        GPU (``pip install 'plackett[cuda]'``), dense features only; or on the workers of the Dask client in use, or
        else of a temporary local cluster. "auto": on a GPU if present and rows are many, on Dask if X is a Dask
        collection, and otherwise compiled.
    class_weight : None, "balanced" or dict
        Factors of the row weights by class; a class missing from the dictionary has 1. "balanced": inversely
        proportional to the total weight of each class, so that all classes count the same. Probabilities then refer to
        data with such class shares. Not all samplers accept fractions; see `fit`.
    random_state : int, RandomState or None
        Seed of everything random; results do not depend on the number of threads or the order of the rows. EM starts
        at a fixed point and draws nothing.
    progress : bool
        Show a progress bar for chains and held-out rows; in a terminal it appears anyway after five seconds.

    Attributes
    ----------
    classes_ : (K,) array
        Class labels, in the order of all outputs.
    columns_ : tuple of Number and Category
        Columns of the table of the fit, if it held texts or missing values; covariates, such as
        ``feature_names_in_``, are then the numbers made of them.
    features_ : transformer
        The fitted feature map.
    inference_ : EM, Variational, Gibbs or Bootstrap
        The inference, with its open settings replaced by the values used.
    weights_ : (K, p) array
        Normalised weights: the mode (EM) or the posterior mean; they sum to 1.
    shape_ : float
        Fixed a, or its estimate (Gibbs: geometric mean over the draws); for a GIG its own shape.
    trace_ : array
        EM: penalised log-likelihood per iteration since the last pruning; variational: bound per iteration;
        Gibbs: log-likelihood (chain, draw); of learned directions the log-posterior, up to a constant.
    posterior_ : Point, Gammas, GIGs, Draws, DirectionDraws or DirectionPoint
        Posterior; for Gibbs `.log_weights` (chain, draw, K, p) and `.shape` (chain, draw).
    diagnostics_ : Diagnostics
        Gibbs and Bootstrap: how far predictions may be trusted, R-hat and effective sample sizes.
    notes_ : list of str
        Descriptions of what a time limit has cut short. Learned directions with Gibbs and Bootstrap.
    cv_log_loss_ : dict
        EM with ``shape="learn"`` only: held-out log-loss by shape. Learned directions: by components of a class and
        scale.
    relevance_ : Series
        Learned directions only: change of the log-odds between gates per standard deviation of each covariate, by
        name; ``attrs`` has ``lower`` and ``upper`` of 90 % intervals, and `relevance` those of any probability.
    gate_shares_ : (S, M) array
        Learned directions only: share of the gates of each predicting component, over the training rows.
    readable_draw_ : ReadableDraw
        Learned directions only: draw that `summary` shows, with the share of the gates of each component.
    n_iter_ : int
        Passes over the data (EM, variational) or sweeps of each chain (Gibbs).

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier(random_state=0).fit(X, y)
    >>> clf.predict(X[:2])
    array([0, 0])
    >>> sparse = PlackettLuceClassifier("em", shape=0.9, features="exp").fit(X, y)
    >>> sparse.weights_.shape, int((sparse.weights_ > 0).sum()) < 27
    ((3, 9), True)
    """

    posterior_: RacePosterior
    kind = Kind(
        "rows",
        "X is a Dask collection",
        "Use engine='auto', or give it X.compute().",
        "groups say which rows to hold out together, which only features='learned' with inference='gibbs' or "
        "'bootstrap' does by itself; leave them out, or give EM(cv=...) the folds.",
        repeated_up_to=20_000,  # with the draws of repeated rows to the last bit
    )

    def __init__(
        self,
        inference: str | EM | Variational | Gibbs | Bootstrap = "gibbs",
        shape: float | str = "learn",
        rate: float = 1.0,
        features: Any = "learned",
        prior: str | GIG = "gamma",
        engine: str = "auto",
        class_weight: str | dict[Any, float] | None = None,
        random_state: Any = None,
        progress: bool = False,
    ):
        self.inference = inference
        self.shape = shape
        self.rate = rate
        self.features = features
        self.prior = prior
        self.engine = engine
        self.class_weight = class_weight
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None) -> PlackettLuceClassifier:
        """Fit the model.

        Parameters
        ----------
        X : array, sparse matrix, data frame (n, d), list of texts, or Dask array or data frame
            Covariates, of any type that the feature map accepts. A data frame in memory may hold texts, categories,
            booleans and missing values: they become numbers as by `TableEncoder`, and the model takes such tables from
            then on; a warning tells once what is filled in. Arrays must hold finite numbers. Rows of a Dask collection
            stay in their partitions, as with ``engine="dask"``.
        y : (n,) array
            Labels: texts, whole numbers or booleans, all of one kind and none missing. For a Dask X a Dask array or
            series with the same partitions, or an array.
        sample_weight : (n,) array, optional
            Non-negative weights of the rows, which are exponents of their likelihoods: a weight of 2 equals two rows,
            and the sum of weights should be the effective number of rows. They may be large: a table of counts costs
            no more than its rows. Gibbs with fixed features accepts whole numbers only, as it draws the winning
            feature once per count; learned directions, EM and the variational scheme accept any.
        groups : (n,) array, optional
            For sampled learned directions: rows with the same label, such as those of one person, are held out
            together, so that predictions are calibrated for new groups. Not with ``engine="dask"``.

        Returns
        -------
        self
        """
        run = self._run(groups, is_dask(X))
        with whole_or_not_at_all(self):
            if is_dask(X):
                with one_blas_thread(), cluster() as client:
                    table = read_classes(client, X, y, sample_weight)
                    factors = self._factors(table)
                    if self._learned():
                        fit = fit_directions(run, direct_class_parts(run, table, factors))
                    else:
                        fit = fit_weights(run, prepare_class_parts(run, table, factors))
                return self._keep_classes(run, table.classes, fit)
            X, y = self._validate(X, y)
            classes, codes = coded_labels(y)
            weight = row_weights(sample_weight, codes, classes, self.class_weight)
            if run.samples and not self._learned():
                others = "inference='variational', inference='em' or features='learned'"
                check_whole(weight, "Gibbs with fixed features", f"Use {others} for other weights.")
            if weight is not None and not weight.all():
                some = np.flatnonzero(weight)
                X, codes, weight = take_rows(X, some), codes[some], weight[some]
                groups = None if groups is None else take_rows(groups, some)
            units = None if groups is None else coded_groups(groups, len(codes))[1]
            seen = Observations.of_classes(codes, len(classes), weight, units)
            with one_blas_thread(), cluster_for(self.engine):
                if self._learned():
                    fit = fit_directions(run, direct_classes(run, X, seen))
                else:
                    fit = fit_weights(run, prepare_map(run, X, seen))
            return self._keep_classes(run, classes, fit)

    def _keep_classes(self, run: Run, classes: npt.NDArray[Any], fit: Fit) -> PlackettLuceClassifier:
        """Set the attributes of a fit."""
        self.classes_ = classes
        self._keep(run.inference, fit)
        self.weights_ = fit.posterior.weights
        return self

    def _factors(self, table: ClassTable) -> Array:
        """Store the columns of a table in partitions; return the weights of its classes."""
        self._know_columns(table.n_columns, table.names)
        check_classification_targets(table.classes)
        if len(table.classes) < 2:
            raise ValueError(
                f"a classifier needs at least two classes, and y holds one class only: {plain(table.classes[0])}."
            )
        return _weights_of_classes(self.class_weight, table.classes, table.weight)

    def _combination(self, grouped: bool = False, partitions: bool = False, without: bool = False) -> Combination:
        given = super()._combination(grouped, partitions, without)
        given = replace(given, holds_out=given.learned and given.inference.groups_rows)
        if not given.engine.partitions:
            return given
        cv = getattr(given.inference, "cv", 0)
        if grouped:
            refused: str | None = (
                "groups cannot be had with engine='dask', where what a row holds decides with which others it is held "
                "out. Leave them out, or use engine='auto' where the rows fit into memory."
            )
        elif given.learned and not is_whole(cv):
            refused = (
                f"EM(cv={cv!r}) cannot be had with engine='dask' and learned directions, where what a row holds "
                "decides its fold. Give the number of folds, or use engine='auto' where the rows fit into memory."
            )
        else:
            refused = None
        return replace(given, refused=refused)

    @property
    def relevance_(self) -> pd.Series:
        """Change of the log-odds between gates per standard deviation of each covariate, by name."""
        centre, lower, upper = self._relevance_interval()
        try:
            pandas = optional("pandas", "relevance_")
        except ImportError as error:  # scikit-learn reads all attributes for dir() and in notebooks
            raise AttributeError(str(error)) from error
        column = pandas.Series(centre, index=self._covariates(), name="relevance")
        column.attrs = {"prob": 0.9, "lower": lower.tolist(), "upper": upper.tolist()}
        return column

    def relevance(self, prob: float = 0.9) -> pd.DataFrame:
        """Return how much each covariate matters to learned directions, regardless of sign; `effects` have signs.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            By covariate, largest first: ``relevance``, the average change of the log-odds between gates per standard
            deviation of the covariate; ``lower`` and ``upper``, NaN after EM.

        Examples
        --------
        >>> from sklearn.datasets import load_iris
        >>> from plackett import PlackettLuceClassifier
        >>> X, y = load_iris(return_X_y=True, as_frame=True)
        >>> PlackettLuceClassifier("em").fit(X, y).relevance_.index[2]
        'petal length (cm)'
        """
        check_is_fitted(self)
        centre, lower, upper = self._relevance_interval(check_prob(prob))
        table = {"relevance": centre, "lower": lower, "upper": upper}
        frame = optional("pandas", "relevance").DataFrame(table, index=self._covariates())
        return frame.iloc[np.argsort(-centre, kind="stable")]

    def _relevances(self) -> Array:
        """Return relevances (S, d) of the predicting draws; early model files have their mean alone."""
        if hasattr(self, "gate_shares_"):
            return relevances(self.features_, self.gate_shares_)
        if hasattr(self, "mean_relevance_"):
            mean: Array = np.asarray(self.mean_relevance_)[None]
            return mean
        raise AttributeError("only learned directions have a relevance of columns: fit with features='learned'.")

    def _relevance_interval(self, prob: float = 0.9) -> tuple[Array, Array, Array]:
        """Return means (d,) over the predicting draws, with interval bounds; NaN bounds for a point estimate."""
        found = mean_and_bounds(self._relevances(), prob)
        return found["mean"], found["lower"], found["upper"]

    def _rows(self, X: Any) -> Any:
        check_is_fitted(self)
        refuse_partitions(X)
        if isinstance(self.features_, (ExpFeatures, Gates)):
            check_dense(X)
            X = taken(self, X)
            X = _named(X, numbers(self, X, reset=False))
        else:
            validate_data(self, X, reset=False, skip_check_array=True)
        features = self.features_
        many = isinstance(features, Gates) and len(X) * features.offsets.size >= MANY_GATES
        if many and self.engine in ("auto", "cupy") and present():
            features = GatesOnGpu.of(features)
        return self.posterior_.rows(features, X)

    def _validate(self, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
        y = class_labels(y)
        if self._takes_numbers():
            check_dense(X)
            X = encoded(self, X)
            checked = numbers(self, X)
            X = checked if self._learned() else _named(X, checked)
        else:
            validate_data(self, X, skip_check_array=True)
        check_consistent_length(X, y)
        return X, y


def _named(X: Any, checked: Array) -> Any:
    """Return the table if it has column names, so that features use them; otherwise the checked array."""
    return X if hasattr(X, "columns") else checked


stored_models.register(stored_models.classifier(PlackettLuceClassifier, STORED))
