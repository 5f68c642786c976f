"""Ranker: validate once, choose the parts, and fit."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from plackett.capabilities import Combination, Ignored, Kind, NoMoves
from plackett.cluster.client import cluster, cluster_for
from plackett.cluster.gathering import gather_rankings
from plackett.cluster.ranking_parts import read_rankings
from plackett.comparing import losses_of_ties, with_effects
from plackett.compute.blas import one_blas_thread
from plackett.data.observations import Observations
from plackett.data.partitioned import PartitionedRankings, is_dask
from plackett.data.rankings import Rankings
from plackett.data.rows import count_rows, take_rows
from plackett.data.validation import check_bool, coded_groups, plain
from plackett.describing import DescribingRankings
from plackett.engines.base import check_counts
from plackett.engines.merged import merged_rankings
from plackett.estimator import whole_or_not_at_all
from plackett.features.scaled_columns import designs
from plackett.fit import (
    Run,
    direct_situations,
    fit_directions,
    fit_segmented_rankings,
    fit_tiers,
    fit_weights,
    fit_worths,
    prepare_map,
    prepare_ranking_parts,
    prepare_situations,
)
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.inference.base import Fit
from plackett.inference.maximum import check_attained, check_identified, network_of_pairs
from plackett.inference.tie_choice import LAWS_OF_TIES
from plackett.output import stored_models
from plackett.priors import GIG
from plackett.race_model import STORED
from plackett.ranking import rankings_of
from plackett.responses.base import of_pairs
from plackett.segments import Segments
from plackett.tiers import Tiers

TIES = ("unknown-order", "race", "photo-finish", "davidson", "auto", "error")
IGNORED = 0.01  # share of the rankings from which uninformative ties are noted
LENGTH = {"draws": 1000, "tune": 300, "max_draws": 200_000}  # without covariates: one mode
WITH_TIERS = LENGTH | {"moves": "none"}
NO_COVARIATES = Ignored(
    ("features",), "it is a map of covariates, and there are none: X is None or has no columns. Leave it out."
)
ONE_WEIGHT = NoMoves.here("without covariates there is one weight an item, and plain sweeps mix")
KNOWN_SCALE = NoMoves.here("race ties know the scale of the weights, which the moves take for unknown")


class PlackettLuceRanker(DescribingRankings):
    """Bayesian Plackett–Luce model of rankings, without covariates or with covariates of each ranking.

    Items arrive in a race: item k has the rate W(x)·λ_k, and without covariates λ_k alone, its worth. The order of
    arrivals is the ranking.

    Parameters
    ----------
    inference : {"gibbs", "bootstrap", "variational", "em"} or EM, Variational, Gibbs or Bootstrap
        Method of inference: draws from the posterior, a fast approximation of it ("bootstrap" for learned directions,
        "variational" for worths and fixed features), or its mode. ``"em"`` with ``shape=1`` is maximum likelihood;
        with ``ties="race"``, which identify the scale, this is the limit as the rate goes to 0.
    shape : float or "learn"
        Shape a of the prior λ ~ Gam(a, rate) of worths and weights; smaller values let worths differ more.
        "learn": sampled (Gibbs), type-II maximum likelihood (variational), held-out rankings (EM).
    rate : float
        Rate of the prior. It matters only with ``ties="race"``, where the scale of the weights determines the frequency
        of ties.
    features : "learned", "exp" or transformer
        Feature map W of the covariates, as for `PlackettLuceClassifier`. Without covariates it must keep its default.
    prior : "gamma" or GIG
        Prior of worths, or of the weights of fixed features.
    ties : {"unknown-order", "race", "photo-finish", "davidson", "auto", "error"}
        Meaning of a shared place: the items came in an unknown order; they arrived in the same slot of a race observed
        in slots of time; in a pair, neither was ahead by a factor θ, which is learned (Rao & Kupper 1967); a third
        entrant of rate ν√(r_i r_j) won, with ν learned (Davidson 1970); or an error. "photo-finish" and "davidson"
        are for pairs without covariates. "auto" chooses between these two by held-out votes; without ties, and for
        rankings of more than two items, it is "unknown-order".
    order_effect : bool
        True to multiply the rate of the item that was shown first, or played at home, by a learned factor η; for pairs
        without covariates, from ``Rankings.from_pairs(..., first=...)``.
    tiers : bool or Tiers
        True to let items share worths: λ_k ~ G with G ~ DP(α, Gam(a, b)), so that the data decide how many tiers of
        equal items there are. `tiers` lists them. For Gibbs without covariates. As the name is also that of the method,
        read the setting by ``get_params()``.
    segments : int, "auto" or Segments
        Number of segments (latent classes) of persons, ``groups`` of `fit`, each with its own worths; see `segments_`.
        "auto" chooses the number by held-out persons. Without covariates.
    engine : {"auto", "numba", "numpy", "cupy", "dask"}
        Place of the passes over the rankings; "dask" is the cluster of the current Dask client, or a local one.
        "auto": on a GPU if present and entries are many, on Dask if R is in partitions, and otherwise compiled.
    random_state : int, RandomState or None
        Seed of everything random; results do not depend on the number of threads or the order of the rankings.
    progress : bool
        Show a progress bar; in a terminal it appears anyway after five seconds.

    Attributes
    ----------
    items_ : (K,) array
        Labels of the items, in the order of all outputs but `worth`.
    weights_ : (K, p) array
        Without covariates or with fixed features: normalised worths or weights, the mode (EM) or the posterior mean.
    shape_ : float
        Fixed a, or its estimate.
    features_ : transformer
        The fitted feature map, with covariates.
    ties_ : str
        Law of ties of the fit: `ties`, or the one that "auto" chose.
    attributes_ : list of str
        Attributes of comparisons, if `Rankings.from_pairs` gave some; `parameters` lists their coefficients.
    tie_log_loss_ : dict
        ``ties="auto"``: log-loss of a held-out vote by law, if there was a choice.
    segment_log_loss_ : dict
        ``segments="auto"``: log-loss of a held-out person by the number of segments.
    group_labels_ : array
        With segments: the persons of the fit, if there were groups.
    item_covariates_ : ItemCovariates
        With `items` of `fit`: the columns in use, ``names`` of their numbers, and standardised covariates ``z``.
    inference_, posterior_, trace_, n_iter_, diagnostics_, cv_log_loss_
        As in `PlackettLuceClassifier`.

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
        shape_steps=10,  # few worths are little evidence of a, and a step is cheap
        side_by_side_below=1 << 22,
    )

    def __init__(
        self,
        inference: str | EM | Variational | Gibbs | Bootstrap = "gibbs",
        shape: float | str = "learn",
        rate: float = 1.0,
        features: Any = "learned",
        prior: str | GIG = "gamma",
        ties: str = "unknown-order",
        order_effect: bool = False,
        tiers: bool | Tiers = False,
        segments: int | str | Segments = 1,
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
        self.order_effect = order_effect
        self.tiers = tiers
        self.segments = segments
        self.engine = engine
        self.random_state = random_state
        self.progress = progress

    def fit(
        self, X: Any, R: Any = None, sample_weight: Any = None, groups: Any = None, items: Any = None
    ) -> PlackettLuceRanker:
        """Fit the model.

        Parameters
        ----------
        X : array or data frame (n, d), or None
            Covariates of each ranking: of the person, or of the occasion. None, or a table without columns: none. Texts
            and missing values of a data frame become numbers as by `TableEncoder`.
        R : Rankings
            Rankings. From a Dask collection, they stay in their partitions, except for learned directions, which need
            them on the client; X is then a Dask collection with the same partitions.
        sample_weight : (n,) array, optional
            Weights of the rankings, which multiply their counts. Gibbs accepts whole numbers only, except for learned
            directions.
        groups : (n,) array, optional
            Rankings with the same label, such as those of one rater, are held out together. With segments they are the
            persons; None: each ranking is that of a person.
        items : data frame, dict or array, optional
            Covariates that describe the items, for rankings without X: a table with the items as index (numbers, or
            texts with few levels), a dictionary of items, or an array in the order of ``R.items``. The prior of a worth
            is then λ_k ~ Gam(a, a e^(−z_k·γ)), with a learned coefficient γ of each standardised column, whose prior is
            normal with mean 0 and standard deviation 3. Items of the table that were never ranked are predicted by
            `worth`.

        Returns
        -------
        self
        """
        with whole_or_not_at_all(self):
            self.ties_ = self.ties
            for stale in ("tie_log_loss_", "attributes_"):
                self.__dict__.pop(stale, None)
            if R is None and isinstance(X, (Rankings, PartitionedRankings)):
                raise ValueError("rankings come second: fit(X, R) with covariates X, and fit(None, R) without.")
            if not isinstance(R, PartitionedRankings):
                return self._fit_here(X, R, sample_weight, groups, items)
            run = self._run(groups, partitions=True, without=X is None)
            if items is not None:
                self._check_items(run, X, groups, partitions=True)
            run = self._with_length(run, None) if X is None else run
            learned = X is not None and self._learned()
            with one_blas_thread(), cluster() as client:
                network = run.inference.maximises and not learned
                table = read_rankings(client, X, R, sample_weight, groups, self.ties_, network)
                if learned:
                    return self._fit_here(**gather_rankings(table))
                known = table.covariates
                self._know_columns(*((0, None) if known is None else (known.n_columns, known.names)))
                fit = fit_weights(run, prepare_ranking_parts(run, table))
            return self._keep_items(run, table.items, fit)

    def _fit_here(self, X: Any, R: Any, sample_weight: Any, groups: Any, items: Any = None) -> PlackettLuceRanker:
        """Fit to rankings in memory."""
        labels, (R, X, groups) = groups, self._checked_data(X, R, groups)
        if R.attributes is not None:
            self.attributes_ = list(R.attribute_names)
        if self.ties == "auto" and X is None:
            losses = losses_of_ties(_weighted(R, sample_weight), self.order_effect, self._run_settings()[0])
            self.ties_ = "unknown-order"
            if losses is not None:
                self.tie_log_loss_ = losses
                self.ties_ = min(losses, key=losses.__getitem__)
        run = self._run(groups, without=X is None)
        if items is not None:
            self._check_items(run, X, groups, partitions=False)
        segments = self._segmented()
        self._no_weights_with_segments(sample_weight)
        run = self._with_length(run, R) if X is None and items is None else run
        response, learned = self._response(R), X is not None and self._learned()
        R = _weighted(R, sample_weight)
        if run.samples and not learned:
            check_counts(R.counts, "counts", "rankings")
        some = np.flatnonzero(R.counts)
        if not len(some):
            raise ValueError("all rankings have weight 0.")
        if len(some) < len(R):
            R, X = R[some], None if X is None else take_rows(X, some)
            groups = None if groups is None else groups[some]
        self._note_ignored_ties(R, X is None and of_pairs(R.outcomes))
        if X is None and groups is None and segments is None and self._should_count(run, R):
            R = merged_rankings(R)
        seen = Observations.of_rankings(R.outcomes, R.item, response, len(R.items), groups)
        seen = with_effects(seen, R, self.order_effect)
        with one_blas_thread(), cluster_for(self.engine):
            if segments is not None:
                fit = fit_segmented_rankings(run, segments, seen)
                if seen.units is not None:
                    fit.extra["group_labels_"] = np.unique(labels)[np.unique(seen.units)]
            elif learned:
                candidates = designs(X, R.counts)
                fit = fit_directions(run, direct_situations(run, [each.of(X) for each in candidates], seen, owned=True))
                fit.extra["features_"] = candidates[fit.extra.pop("design_")]
            elif X is None:
                network = network_of_pairs(R, self._law_of_pairs, self.order_effect) if run.inference.maximises else R
                data, tiers = prepare_situations(run, None, seen, network=network), self._tiered()
                checked = run.inference.maximises and R.attributes is not None
                if checked:
                    check_identified(data.rows())
                if tiers is not None:
                    fit = fit_tiers(run, tiers, data)
                else:
                    fit = fit_worths(run, data) if items is None else self._fit_described(run, data, items, R.items)
                if checked:
                    check_attained(data.rows(), fit.posterior)
            else:
                fit = fit_weights(run, prepare_map(run, X, seen, R))
        return self._keep_items(run, R.items, fit)

    def _keep_items(self, run: Run, items: npt.NDArray[Any], fit: Fit) -> PlackettLuceRanker:
        """Set the attributes of a fit."""
        self.items_ = items
        for stale in ("group_labels_", "item_covariates_", "weights_"):
            self.__dict__.pop(stale, None)
        self._keep(run.inference, fit)
        if hasattr(fit.posterior, "weights"):
            self.weights_ = fit.posterior.weights
        return self

    def _checked_data(self, X: Any, R: Any, groups: Any) -> tuple[Rankings, Any, npt.NDArray[np.intp] | None]:
        """Return rankings, covariates (None if there are none), and groups as 0 … G−1."""
        R = rankings_of(R)
        if is_dask(X):
            raise ValueError("X is a Dask collection, and the rankings are in memory: make them from one, too.")
        if X is not None and count_rows(X) != len(R):
            raise ValueError(f"X has {count_rows(X)} rows and R has {len(R)} rankings; each needs its own.")
        if groups is not None:
            groups = coded_groups(groups, len(R), "rankings")[1]
        if X is None or np.shape(X)[1:] == (0,):
            self.n_features_in_ = 0
            self.__dict__.pop("feature_names_in_", None)
            return R, None, groups
        return R, self._checked_rows(X, reset=True), groups

    def _run(self, groups: object, partitions: bool = False, without: bool = False) -> Run:
        if self.ties not in TIES:
            raise ValueError(f"ties must be one of {list(TIES)}, got {plain(self.ties)} instead.")
        check_bool("order_effect", self.order_effect)
        return super()._run(groups, partitions, without)

    def _with_length(self, run: Run, R: Rankings | None) -> Run:
        """Return the run with lengths for models without covariates; a walk on worths runs until it converges."""
        if self._tiered() is not None and run.inference.samples:
            return replace(run, inference=run.inference.completed(**WITH_TIERS))
        if (
            not run.inference.samples
            or self._segmented() is not None
            or (R is not None and self._walks(run.inference, R))
        ):
            return run
        return replace(run, inference=run.inference.completed(**LENGTH))

    def _walks(self, gibbs: Gibbs, R: Rankings) -> bool:
        """True if draws of rankings in memory, without covariates, use a walk on worths."""
        if gibbs.moves not in ("auto", "walk") or self.engine not in ("auto", "numba", "numpy"):
            return False
        pairs = bool((np.diff(R.outcomes.start) <= 2).all())
        return (pairs and self.ties_ == "race") or bool(self._parameter_names()) or (R.tied and self.ties_ != "race")

    def _combination(self, grouped: bool = False, partitions: bool = False, without: bool = False) -> Combination:
        given = super()._combination(grouped, partitions, without)
        absolute = self._ties == "race"
        return replace(
            given,
            refused=self._no_tiers(given, without)
            or self._no_parameters(given, without)
            or self._no_segments(given, without),
            holds_out=given.learned
            or (given.shape is None and "cv" in given.inference.shape_settings)
            or self._segmented() is not None,
            absolute=absolute,
            no_moves=ONE_WEIGHT if without else KNOWN_SCALE if absolute else None,
            ignored=(
                *(((self, NO_COVARIATES),) if without else given.ignored),
                *self._unread_with_segments(given),
                *self._unread_with_tiers(given),
            ),
        )

    def _no_parameters(self, given: Combination, without: bool) -> str | None:
        """Return why the parameters of the response cannot be learned in this combination, or None."""
        law = self._ties
        of_ties = f"ties={law!r}, which ties='auto' chose," if law != self.ties else f"ties={law!r}"
        if self._attributes:
            setting = "Rankings.from_pairs(attributes=...)"
        elif self.order_effect:
            setting = "order_effect=True"
        elif law in (*LAWS_OF_TIES, "auto"):
            setting = of_ties
        else:
            return None
        if not without:
            return f"{setting} is for pairs without covariates. Leave X out, or leave {setting} out."
        if given.inference.no_directions is not None:
            return f"{setting} has no variational approximation. Use inference='gibbs' or inference='em'."
        if self.engine not in ("auto", "numba", "numpy") or given.partitions:
            where = "for rankings in partitions" if given.partitions else f"with engine={self.engine!r}"
            return f"{setting} cannot be had {where}. Use engine='auto', in memory."
        if law == "davidson" and given.inference.samples and given.inference.moves == "none":
            return f"{of_ties} is not conjugate, as Gibbs(moves='none') needs laws to be. Use Gibbs(moves='auto')."
        return None

    def _should_count(self, run: Run, R: Rankings) -> bool:
        """True if there are many pairs, and counts of distinct ones say as much as the pairs one by one."""
        if len(R) <= len(R.items) ** 2:
            return False
        folds = run.inference.maximises and run.shape is None
        return R.attributes is None and not self.order_effect and of_pairs(R.outcomes) and not folds

    def _note_ignored_ties(self, R: Rankings, choice: bool) -> None:
        """Warn if ties of pairs are read as an unknown order, and thus tell nothing; `choice`: laws of pairs apply."""
        if self.ties_ != "unknown-order" or not R.tied:
            return
        (_, bucket_start, sizes, counts), pair = R.outcomes, np.diff(R.outcomes.start) == 2
        tied = pair & (sizes[np.minimum(bucket_start[:-1], len(sizes) - 1)] == 2) & (np.diff(bucket_start) > 0)
        ignored = float(counts[tied].sum())
        if ignored >= IGNORED * counts.sum():
            warnings.warn(
                f"{ignored:,.12g} of {counts.sum():,.12g} rankings are ties of two items, which tell nothing with "
                f"ties='unknown-order'. With ties={'auto' if choice else 'race'!r} they say that items are alike"
                f"{', by the law of ties that predicts held-out votes best' if choice else ''}.",
                UserWarning,
                stacklevel=4,
            )


def _weighted(R: Rankings, sample_weight: Any) -> Rankings:
    """Return the rankings with their counts multiplied."""
    if sample_weight is None:
        return R
    weight = np.asarray(sample_weight, dtype=np.float64)
    if weight.shape != (len(R),) or not (np.isfinite(weight).all() and (weight >= 0).all()):
        raise ValueError(f"sample_weight must have a number that is not negative for each of the {len(R)} rankings.")
    return replace(R, outcomes=R.outcomes._replace(counts=R.counts * weight))


stored_models.register(stored_models.ranker(PlackettLuceRanker, STORED, TIES))
