"""The face for rankings: validate once, choose the parts, and answer what is asked of items."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from plackett.capabilities import Combination, Ignored, Kind, NoMoves, moves_between_modes
from plackett.cluster.client import cluster, cluster_for
from plackett.cluster.directions import send_situations
from plackett.cluster.gathering import gather_rankings
from plackett.cluster.held_out import ranking_folds
from plackett.cluster.ranking_parts import read_rankings
from plackett.compute.blas import one_blas_thread
from plackett.data.observations import Observations
from plackett.data.partitioned import PartitionedRankings, is_dask
from plackett.data.rankings import Rankings
from plackett.data.rows import count_rows, take_rows
from plackett.data.validation import plain
from plackett.directions import LearnedDirections
from plackett.directions.learning import learn
from plackett.directions.settings import SHAPE
from plackett.directions.situation_task import make_situation_task
from plackett.engines.base import Features, Rows, check_counts
from plackett.engines.cupy_situations import engine_for
from plackett.engines.factory import make_engine
from plackett.engines.plain_rankings import ONE, without_covariates
from plackett.engines.situations import merge_equal
from plackett.estimator import whole_or_not_at_all
from plackett.features.mapped import dense, fit_features, transform
from plackett.features.scaled_columns import designs
from plackett.inference import EM, Gibbs, Variational
from plackett.inference.base import Fit, Problem
from plackett.inference.folds import path_of
from plackett.inference.ranking_folds import Make, folds_of, held_out_shape
from plackett.model.race import Array, Weights
from plackett.output import stored_models
from plackett.posterior.learned import of_situations
from plackett.priors import GIG
from plackett.race_model import STORED
from plackett.ranking import RankingModel, rankings_of
from plackett.responses import Response

TIES = ("unknown-order", "race", "photo-finish", "error")
LENGTH = {"draws": 1000, "tune": 300, "max_draws": 200_000}  # of a chain without covariates, which has one mode
LARGE = 1 << 22  # numbers of a pass from which the cores share the rankings of one chain instead of the chains
SHAPE_STEPS = 10  # of a, between two passes: few worths say little of it, and a step is cheap
NAMED = 8  # items of a component that an error names
NO_COVARIATES = Ignored(
    ("features",), "it is a map of covariates, and there are none: X is None or has no columns. Leave it out."
)
ONE_WEIGHT = NoMoves.here("without covariates there is one weight an item, and plain sweeps mix")
KNOWN_SCALE = NoMoves.here("race ties know the scale of the weights, which the moves take for unknown")


class PlackettLuceRanker(RankingModel):
    """Bayesian Plackett–Luce model of rankings, without covariates or with those of whoever ranks.

    Items arrive in a race: item k has the rate W(x)·λ_k, and without covariates λ_k alone, its worth. Who arrives first
    is ranked first, and so on among those that are left.

    Parameters
    ----------
    inference : {"gibbs", "variational", "em"} or EM, Variational or Gibbs
        How the weights are found: draws from the posterior, a fast approximation of it, or its mode. ``"em"`` with
        ``shape=1`` is maximum likelihood; with ``ties="race"``, which know the scale, it is so as the rate goes to 0.
    shape : float or "learn"
        The shape a of the prior λ ~ Gam(a, rate) of worths and weights; the smaller, the more may worths differ.
        "learn": sampled (Gibbs), type-II maximum likelihood (variational), held-out rankings (EM).
    rate : float
        The rate of the prior. It matters only with ``ties="race"``, where the scale of the weights says how often ties
        are.
    features : "learned", "exp" or transformer
        The feature map W of the covariates, as for `PlackettLuceClassifier`. Without covariates it stays as it is.
    prior : "gamma" or GIG
        The prior of worths, or of the weights of fixed features.
    ties : {"unknown-order", "race", "photo-finish", "error"}
        What it means that items share a place: that they came in some order, of which nothing is known; that the race
        is seen in slots of time, and they arrived in the same one; that of a pair neither was ahead by a factor θ,
        which is learned (Rao & Kupper 1967; pairs without covariates); or that something is wrong.
    engine : {"auto", "numba", "numpy", "cupy", "dask"}
        Where the passes over the rankings run; "dask" is the cluster of the Dask client in use, or a local one.
        "auto": on a GPU where there is one and entries are many, on Dask where R is in partitions, and else compiled.
    random_state : int, RandomState or None
        Seed of everything random; results do not depend on the number of threads or the order of the rankings.
    progress : bool
        Show a progress bar; in a terminal one comes by itself after five seconds.

    Attributes
    ----------
    items_ : (K,) array
        Labels of the items, in the order of all outputs but `worth`.
    weights_ : (K, p) array
        Without covariates or with fixed features: normalised worths or weights, the mode (EM) or the posterior mean.
    shape_ : float
        The a that was used, or its estimate.
    features_ : transformer
        The fitted feature map, with covariates.
    inference_, posterior_, trace_, n_iter_, diagnostics_, cv_log_loss_
        As of `PlackettLuceClassifier`.

    Examples
    --------
    >>> from plackett import PlackettLuceRanker, Rankings
    >>> R = Rankings.from_orders([["b", "a", "c"], ["b", "c", "a"], ["a", "b", "c"]], counts=[5, 2, 3])
    >>> m = PlackettLuceRanker(random_state=0).fit(None, R)
    >>> m.worth().index.tolist()
    ['b', 'a', 'c']
    >>> m.predict()
    array(['b', 'a', 'c'], dtype='<U1')
    """

    kind = Kind(
        "rankings",
        "these rankings are in partitions",
        "Use engine='auto', or make them from a table in memory, frame.compute().",
        "groups say which rankings to hold out together, and none are held out but for learned directions, and for EM "
        "with shape='learn'; leave them out.",
        scale_free="rankings, but with ties='race'",
    )

    def __init__(
        self,
        inference: str | EM | Variational | Gibbs = "gibbs",
        shape: float | str = "learn",
        rate: float = 1.0,
        features: Any = "learned",
        prior: str | GIG = "gamma",
        ties: str = "unknown-order",
        engine: str = "auto",
        random_state: Any = None,
        progress: bool = False,
    ):
        self.inference = inference
        self.shape = shape
        self.rate = rate
        self.features = features
        self.prior = prior
        self.ties = ties
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def fit(self, X: Any, R: Rankings, sample_weight: Any = None, groups: Any = None) -> PlackettLuceRanker:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame (n, d), or None
            Covariates of each ranking: of the person, or of the occasion. None, or a table without columns: none.
        R : Rankings
            What was seen. Made from a Dask collection, rankings stay where they are, but for learned directions, for
            which they come here, and X is one too, cut alike.
        sample_weight : (n,) array, optional
            Weights of the rankings, by which their counts are multiplied. Gibbs takes whole numbers alone, but for
            learned directions.
        groups : (n,) array, optional
            Rankings with the same label, those of one rater say, are held out together where rankings are held out.

        Returns
        -------
        self
        """
        with whole_or_not_at_all(self):
            if isinstance(R, PartitionedRankings):
                return self._fit_partitions(X, R, sample_weight, groups)
            return self._fit_here(X, R, sample_weight, groups)

    def _fit_here(self, X: Any, R: Any, sample_weight: Any, groups: Any) -> PlackettLuceRanker:
        """Fit to rankings in memory."""
        R, X, groups = self._checked_data(X, R, groups)
        features, inference, shape = self._checked_parts(groups, without=X is None)
        response = self._response(R)
        R = _weighted(R, sample_weight)
        if isinstance(inference, Gibbs) and not (X is not None and self._learned()):
            check_counts(R.counts, "counts", "rankings")
        seen = np.flatnonzero(R.counts)
        if not len(seen):
            raise ValueError("all rankings have weight 0.")
        if len(seen) < len(R):
            R, X = R[seen], None if X is None else take_rows(X, seen)
            groups = None if groups is None else groups[seen]
        with one_blas_thread(), cluster_for(self.engine):
            if X is not None and self._learned():
                fit = self._learn_directions(features, inference, X, R, response, shape, groups)
            else:
                fit = self._learn_weights(features, inference, X, R, response, shape, groups)
        self._keep_items(inference, R.items, fit)
        return self

    def _keep_items(self, inference: EM | Variational | Gibbs, items: npt.NDArray[Any], fit: Fit) -> None:
        """What a fit found."""
        self.items_ = items
        self._keep(inference, fit)
        self.__dict__.pop("weights_", None)
        if hasattr(fit.posterior, "weights"):
            self.weights_ = fit.posterior.weights

    def _fit_partitions(self, X: Any, R: PartitionedRankings, sample_weight: Any, groups: Any) -> PlackettLuceRanker:
        """Fit to rankings in partitions, which stay where they are, but for learned directions."""
        learned = X is not None and self._learned()
        features, inference, shape = self._checked_parts(groups, partitions=True, without=X is None)
        climbs = isinstance(inference, EM)
        with one_blas_thread(), cluster() as client:
            table = read_rankings(client, X, R, sample_weight, groups, self.ties, climbs and not learned)
            if learned:
                return self._fit_here(**gather_rankings(table))
            known = table.covariates
            self._know_columns(*((0, None) if known is None else (known.n_columns, known.names)))
            recipe = table.recipe(features)
            rows = table.hold(recipe, isinstance(inference, Gibbs))
            found: dict[str, Any] = {} if X is None else {"features_": recipe.features}
            if isinstance(inference, EM):
                above = table.network()
                if shape is None:
                    folds = ranking_folds(table, features, recipe)
                    shape, found["cv_log_loss_"] = self._held_out_shape(inference, above, rows, *folds)
                elif shape <= 1 and not isinstance(self.prior, GIG):
                    _check_maximum(above, rows, shape)
            fit = inference.fit(self._problem(rows, True), shape)  # type: ignore[arg-type]
        self._keep_items(inference, table.items, replace(fit, extra=fit.extra | found))
        return self

    def _problem(self, rows: Rows, beside: bool, mirrors: Any = None) -> Problem:
        """For an inference; chains run side by side where a pass keeps to one thread."""
        shared = (float(self.rate), *self._run_settings(), self._tailed(), SHAPE_STEPS, beside)
        return Problem(rows, *shared, mirrors)

    def _checked_data(self, X: Any, R: Any, groups: Any) -> tuple[Rankings, Any, npt.NDArray[np.intp] | None]:
        """Rankings, covariates, None if there are none, and groups as 0 … G−1."""
        R = rankings_of(R)
        if is_dask(X):
            raise ValueError("X is a Dask collection, and the rankings are in memory: make them from one, too.")
        if X is not None and count_rows(X) != len(R):
            raise ValueError(f"X has {count_rows(X)} rows and R has {len(R)} rankings; each needs its own.")
        if groups is not None:
            groups = np.unique(np.asarray(groups), return_inverse=True)[1].ravel()
            if len(groups) != len(R):
                raise ValueError(f"groups must have one label for each of the {len(R)} rankings, got {len(groups)}.")
        if X is None or np.shape(X)[1:] == (0,):
            self.n_features_in_ = 0
            self.__dict__.pop("feature_names_in_", None)
            return R, None, groups
        return R, self._checked_rows(X, reset=True), groups

    def _checked_parts(
        self, groups: Any, partitions: bool = False, without: bool = False
    ) -> tuple[Any, EM | Variational | Gibbs, float | None]:
        if self.ties not in TIES:
            raise ValueError(f"ties must be one of {list(TIES)}, got {plain(self.ties)} instead.")
        features, inference, shape = super()._checked_parts(groups, partitions, without)
        if isinstance(inference, Gibbs) and without:
            inference = inference.completed(**LENGTH)
        return features, inference, shape

    def _combination(self, grouped: bool = False, partitions: bool = False, without: bool = False) -> Combination:
        given = super()._combination(grouped, partitions, without)
        absolute = self.ties == "race"
        return replace(
            given,
            refused=self._no_parameters(given, without),
            holds_out=given.learned or (given.shape is None and "cv" in given.inference.shape_settings),
            absolute=absolute,
            no_moves=ONE_WEIGHT if without else KNOWN_SCALE if absolute else None,
            ignored=((self, NO_COVARIATES),) if without else (),
        )

    def _no_parameters(self, given: Combination, without: bool) -> str | None:
        """Why the parameters of the response cannot be learned in this combination, if they cannot."""
        if self.ties != "photo-finish":
            return None
        if not without:
            return "ties='photo-finish' is for pairs without covariates. Leave X out, or use another reading of ties."
        if given.inference.no_directions is not None:
            return "ties='photo-finish' has no variational approximation. Use inference='gibbs' or inference='em'."
        if self.engine not in ("auto", "numba", "numpy") or given.partitions:
            return f"ties='photo-finish' cannot be had with engine={self.engine!r}. Use engine='auto', in memory."
        return None

    def _learn_weights(
        self,
        features: Any,
        inference: EM | Variational | Gibbs,
        X: Any,
        R: Rankings,
        response: Response,
        shape: float | None,
        groups: npt.NDArray[np.intp] | None,
    ) -> Fit:
        """Worths, or weights of a feature map that does not know the rankings."""
        found: dict[str, Any] = {}
        engine = self.engine
        if X is None:
            rows = _rows_of(ONE, R, response, engine)
        else:
            found["features_"] = fit_features(features, X, None, R.counts)
            W = dense(transform(found["features_"], X))
            if not moves_between_modes(inference):
                engine = engine_for(engine, W.shape, _observed(R, response))
            rows = _rows_of(W, R, response, engine)
        if isinstance(inference, EM):
            if shape is None:
                make = self._maker(X, R, response, engine)
                shape, found["cv_log_loss_"] = self._held_out_shape(inference, R, rows, rows.order, groups, make)
            elif shape <= 1 and not isinstance(self.prior, GIG):
                _check_maximum(R, rows, shape)
        if rows.parameters:  # a value for each of many parameters: equal pairs are counted
            rows = make_engine(engine).rows(None, merge_equal(without_covariates(_observed(R, response))))
        small = engine in ("auto", "numba") and rows.work < LARGE
        beside = isinstance(inference, Gibbs) and (small or engine == "dask")
        if beside:
            rows.set_threads(1)
        mirrors = getattr(found.get("features_"), "mirrors_", None)
        fit = inference.fit(self._problem(rows, beside, mirrors), shape)  # type: ignore[arg-type]
        return replace(fit, extra=fit.extra | found)

    def _held_out_shape(
        self,
        em: EM,
        R: Rankings,
        rows: Rows,
        order: npt.NDArray[np.intp],
        groups: npt.NDArray[np.intp] | None,
        make: Make,
    ) -> tuple[float, dict[float, float]]:
        """The shape that predicts held-out rankings best, and the loss of each.

        At 1 and below a maximum may not exist: such shapes are not tried, and refused where they were asked for.
        """
        shapes = path_of(em)
        if shapes.min() <= 1 and _without_maximum(R, rows) is not None:
            if not np.array_equal(em.shapes, EM().shapes):
                _check_maximum(R, rows, float(shapes.min()))
            shapes = shapes[shapes > 1]
        return held_out_shape(em, shapes, folds_of(em.cv, order, groups), make, float(self.rate), bool(self.progress))

    def _maker(self, X: Any, R: Rankings, response: Response, engine: str) -> Make:
        """What makes rows to train on and rows to test on, with a map fitted to those to train on."""

        def make(train: npt.NDArray[np.intp], test: npt.NDArray[np.intp]) -> tuple[Rows, Rows]:
            W_train: Features = ONE
            W_test: Features = ONE
            if X is not None:
                some = take_rows(X, train)
                fitted = fit_features(clone(self._make_features()), some, None, R.counts[train])
                W_train, W_test = transform(fitted, some), transform(fitted, X, test, empty=True)
            return _rows_of(W_train, R[train], response, engine), _rows_of(W_test, R[test], response, engine)

        return make

    def _learn_directions(
        self,
        features: LearnedDirections,
        inference: EM | Variational | Gibbs,
        X: Array,
        R: Rankings,
        response: Response,
        shape: float | None,
        groups: npt.NDArray[np.intp] | None,
    ) -> Fit:
        """Weights and directions together; held-out rankings say how covariates are best taken."""
        candidates = designs(X, R.counts)
        seen, Zs = _observed(R, response), [each.of(X) for each in candidates]
        engine = engine_for(self.engine, Zs[-1].shape, seen)
        task = make_situation_task(Zs, replace(seen, units=groups), self._run_settings(), True, engine)
        if engine == "dask":
            task = send_situations(task)
        fit = of_situations(learn(inference, task, features, SHAPE if shape is None else shape))
        found = {name: value for name, value in fit.extra.items() if name != "design_"}
        return replace(fit, extra=found | {"features_": candidates[fit.extra["design_"]]})


def _observed(R: Rankings, response: Response) -> Observations:
    """Every ranking has a row, and an item is a group."""
    return Observations.of_rankings(R.outcomes, R.item, response, len(R.items))


def _rows_of(W: Features, R: Rankings, response: Response, engine: str) -> Rows:
    """The rankings as the engine holds them, with W of each, or without anything."""
    return make_engine(engine).rows(None if W is ONE else W, _observed(R, response))


def _weighted(R: Rankings, sample_weight: Any) -> Rankings:
    """The rankings with their counts multiplied."""
    if sample_weight is None:
        return R
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(R),) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"sample_weight must have a number that is not negative for each of the {len(R)} rankings.")
    return replace(R, outcomes=R.outcomes._replace(counts=R.counts * weight))


def _without_maximum(R: Rankings, rows: Rows) -> str | None:
    """Why no maximum of the likelihood exists, if none does."""
    if rows.absolute:
        arrived = rows.expect(Weights.point(np.zeros((rows.n_groups, rows.n_features)))).wins.sum(axis=1)
        never = R.items[arrived == 0].tolist()
        return f"nobody placed {_named(never)} above another item" if never else None
    parts = R.components()
    if len(parts) == 1:
        return None
    told = "; ".join(_named(part) for part in parts[:NAMED]) + ("; …" if len(parts) > NAMED else "")
    return (
        f"the items fall into {len(parts)} components, of which no later one was ever placed above an earlier: {told}"
    )


def _named(items: list[Any]) -> str:
    more = f" and {len(items) - NAMED} more" if len(items) > NAMED else ""
    return ", ".join(map(plain, items[:NAMED])) + more


def _check_maximum(R: Rankings, rows: Rows, shape: float) -> None:
    """Refuse EM where worths would run away."""
    why = _without_maximum(R, rows)
    if why is not None:
        raise ValueError(
            f"with shape={shape:g} there is no maximum: {why}. Use inference='gibbs', whose posterior exists in any "
            "case, or a shape above 1, or leave such items out."
        )


stored_models.register(stored_models.ranker(PlackettLuceRanker, STORED, TIES))
