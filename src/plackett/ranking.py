"""Methods of fitted models of rankings: worths, comparisons, places, probabilities, new rankings."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from scipy.special import ndtri
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from plackett.cluster.predicting import lazily, refuse_partitions
from plackett.data.labels import Codes, codes_of
from plackett.data.model_input import check_dense, encoded, numbers, taken
from plackett.data.partitioned import PartitionedRankings, is_dask
from plackett.data.rankings import Rankings
from plackett.data.types import Labels, Lazy
from plackett.data.validation import check_prob, is_bool, is_number, plain
from plackett.engines.merged import distinct_rankings
from plackett.engines.plain_rankings import ONE
from plackett.inference.base import check_count
from plackett.model.mixture import Entries
from plackett.model.race import Array
from plackett.optional import optional
from plackett.posterior.base import Table, mean_and_bounds, refuse
from plackett.posterior.pool import Members, Pool, all_entries, log_scores
from plackett.posterior.segmented_worths import SegmentedWorths
from plackett.posterior.situations import SituationDraws
from plackett.posterior.weights import Point, WeightPosterior
from plackett.posterior.worths import (
    OF,
    averaged,
    before,
    better,
    finite_logs,
    first_intervals,
    first_places,
    item_pools,
    log_worths,
    order_of,
    place_shares,
    simulated_places,
    worth_table,
)
from plackett.race_model import RaceModel
from plackett.responses import RESPONSES, Response, make_response
from plackett.responses.attribute_effect import coefficient
from plackett.responses.base import Parameter, parameters_of
from plackett.responses.order_effect import ETA
from plackett.responses.pair_laws import law_of

if TYPE_CHECKING:
    import pandas as pd

SCALES = {"log": 1.0, "elo": 400.0 / np.log(10.0)}  # points per natural logarithm
NOTHING_TO_EXPLAIN = (
    "the model was fitted without covariates, so that every row is predicted alike, by the worths of the items: "
    "worth() lists them."
)
NO_ITEMS = "items would be ignored: the model was fitted without covariates of the items. Fit with items=..."


class RankingModel(RaceModel):
    """Fitted model of rankings. X must be None if it was fitted without covariates."""

    ties: str
    ties_: str
    tie_log_loss_: dict[str, float]
    attributes_: list[str]
    order_effect: bool
    items_: npt.NDArray[Any]
    posterior_: WeightPosterior | SituationDraws | SegmentedWorths

    def worth(
        self,
        prob: float = 0.9,
        X: Any = None,
        scale: str = "log",
        anchor: Mapping[Any, float] | None = None,
        items: Any = None,
    ) -> pd.DataFrame:
        """Return the items by their worth, the best first.

        Parameters
        ----------
        prob : float
            Probability that the intervals hold, equal tails.
        X : array or data frame (n, d), optional
            Rows to average over, for a model with covariates: those of the fit, or of some persons.
        scale : {"log", "elo"}
            Natural logarithms, or points of 400/ln 10 each, of which 400 are odds of ten to one.
        anchor : {item: value}, optional
            Item with a fixed number on that scale; by default the numbers have mean 0 over the items of the rankings.
        items : data frame or dict, optional
            For a model fitted with ``items``: new items with their covariates, by label. Their worths follow from the
            covariates, with the residual's width. None: the items of the fit's table that were never ranked.

        Returns
        -------
        DataFrame
            By item:

            - ``worth``: the probability of being the first of all items, the mean of r_k/Σ r; they sum to 1;
            - ``log_worth``, or ``elo``: the mean of ln r_k on the scale, and ``lower`` and ``upper`` of its interval
              (after EM from the information at the estimate, or NaN: see below). A difference of two log-worths is the
              log-odds of one coming before the other;
            - ``first``: the posterior probability that no other item has a larger worth;
            - ``rank``: the mean of its place among the worths, and ``rank_lower`` and ``rank_upper`` of its interval.
              NaN without intervals, as is ``first``;
            - ``new``, for a model fitted with ``items``: True for items that were never ranked.

            With segments by (``segment``, ``item``), each segment with worths of its own.

        Notes
        -----
        After EM worths are normal about the estimate, with the inverse of the observed information as covariance. There
        are no intervals with covariates or described items, a shape below 1, a GIG prior, more than 1,500 items, many
        long rankings, or Dask: use ``"gibbs"``.

        Examples
        --------
        >>> from plackett import PlackettLuceRanker, Rankings
        >>> R = Rankings.from_pairs(["a", "b"], ["b", "a"], counts=[10, 1])
        >>> m = PlackettLuceRanker("em", shape=1).fit(None, R)
        >>> m.worth(scale="elo", anchor={"b": 1000})["elo"].round().tolist()
        [1400.0, 1000.0]
        """
        unit = _scale(scale)
        check_is_fitted(self)
        certain = self.posterior_.no_interval is not None
        anchored = self._anchor(anchor, unit)
        if items is not None and not self._described:
            raise ValueError(NO_ITEMS)
        if self._segmented_worths is not None:
            self._rows(X)
            by_segment = self._worths(check_prob(prob), unit, anchored)
            return by_segment.rename(columns={"log_worth": "elo"}) if scale == "elo" else by_segment
        pool, labels = self._listed(X, items)
        order, columns = worth_table(pool, check_prob(prob), certain, unit, anchored, len(self.items_))
        if isinstance(self.posterior_, Point) and not certain:
            half = unit * ndtri(0.5 + prob / 2.0) * self.posterior_.deviations(anchored[0] if anchored else None)[order]
            columns |= {"lower": columns["log_worth"] - half, "upper": columns["log_worth"] + half}
        if self._described:
            columns["new"] = order >= len(self.items_)
        if scale == "elo":
            columns = {"elo" if name == "log_worth" else name: column for name, column in columns.items()}
        index = optional("pandas", "worth").Index(labels[order], name="item")
        return optional("pandas", "worth").DataFrame(columns, index=index)

    @property
    def _segmented_worths(self) -> SegmentedWorths | None:
        """The posterior of a model with segments; None for other models."""
        posterior = getattr(self, "posterior_", None)
        return posterior if isinstance(posterior, SegmentedWorths) else None

    @property
    def _described(self) -> bool:
        """True if the model was fitted to described items."""
        return False

    def _listed(self, X: Any, items: Any) -> tuple[Pool, Labels]:
        """Return log-rates of the items that `worth` lists, those of the rankings first, and their labels."""
        return self._whole_pool(X), self.items_

    def _pools_listed(self, X: Any, items: Any) -> tuple[Callable[[], Iterator[Pool]], Labels]:
        """Return log-rates of the items that comparisons list, for runs of rows, and their labels."""
        if items is not None:
            raise ValueError(NO_ITEMS)
        return partial(self._pools, X), self.items_

    def _anchor(self, anchor: Any, unit: float) -> tuple[int, float] | None:
        """Return the code of the anchored item and its log-worth."""
        if anchor is None:
            return None
        if not isinstance(anchor, Mapping) or len(anchor) != 1:
            raise ValueError(f"anchor must be one item with its value, {{item: value}}, got {plain(anchor)} instead.")
        ((item, value),) = anchor.items()
        code = codes_of([item], self.items_, "item")[0]
        if is_bool(value) or not is_number(value) or not np.isfinite(value):
            raise ValueError(f"the value of the anchor must be a finite number, got {plain(value)} instead.")
        return int(code), float(value) / unit

    def prob_better(self, X: Any = None, of: str = "worth", top: int | None = None, items: Any = None) -> pd.DataFrame:
        """Return the probability that an item (row) is better than another (column), the best items first.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows, for a model with covariates.
        of : {"worth", "ranking"}
            "worth": that its worth is larger, given the data; after EM without intervals 0 or 1; with tiers plus half
            the probability that the two are equal. "ranking": that it comes before the
            other in a new ranking; with ``ties="race"`` in an earlier slot, and with ``ties="photo-finish"`` ahead by
            more than θ. With the latter and with ``ties="davidson"`` the remainder to 1 is the probability of a tie.
        top : int, optional
            Number of best items; None: all.
        items : data frame or dict, optional
            As in `worth`, for a model fitted with ``items``: new items. None: those that were never ranked.

        Returns
        -------
        DataFrame
            Items × items, NaN on the diagonal; with X, row × item as index, and the items by their worth averaged over
            these rows.
        """
        self._check_of(of)
        pools, labels = self._pools_listed(X, items)
        best = self._best(pools)[: _checked_top(top, len(labels))]
        law = law_of(make_response(self._ties)) if of == "ranking" and self._law_of_pairs else None
        parameters = self._spread_members().of_response

        def chances(pool: Pool) -> Array:
            some = pool._replace(log_rates=pool.log_rates[:, :, best], available=pool.available[:, best])
            if law is not None and parameters is not None:
                return before(some, law, parameters)
            return better(some, of, self._slots)

        found = np.concatenate([chances(pool) for pool in pools()])
        return _square("prob_better", X, found, labels[best], labels[best], "than")

    @property
    def _ties(self) -> str:
        """The law of ties of the fit; model files of earlier versions have only the setting."""
        return getattr(self, "ties_", self.ties)

    def _ties_in_words(self) -> str:
        """Return which law of ties was chosen by ties='auto', and why."""
        if self.ties != "auto":
            return ""
        losses = getattr(self, "tie_log_loss_", None)
        if losses is None:
            return f"; ties={self._ties!r}, since not all rankings are of two items, or there are no ties"
        found = ", ".join(f"{law}: {loss:.4f}" for law, loss in losses.items())
        return f"; ties={self._ties!r} is chosen by the log-loss of a held-out vote ({found})"

    @property
    def _law_of_pairs(self) -> bool:
        """True if the response is a law of pairs, with a parameter for ties."""
        return self._ties in RESPONSES and bool(parameters_of(make_response(self._ties)))

    def _refuse_longer_rankings(self) -> None:
        """Raise if the response is a law of pairs."""
        if self._law_of_pairs:
            raise ValueError(
                f"ties={self._ties!r} is a law of pairs and says nothing of rankings of all items. Use of='worth', or "
                "prob_better(of='ranking') for pairs."
            )

    def _members(self, every: bool = False) -> Members:
        """Return the predicting members, with separate effects of order and attributes; or all draws, if `every`."""
        effects = self.order_effect, len(self._attributes)
        if any(effects) and isinstance(self.posterior_, WeightPosterior):
            return self.posterior_.shifted_members(*effects)
        return self.posterior_.members(every)

    def _spread_members(self) -> Members:
        """Return the predicting members, before them normal draws if the posterior is an estimate with covariances."""
        if not isinstance(self.posterior_, Point) or self.posterior_.covariance is None:
            return self._members()
        found = self.posterior_.spread_members(self._parameters())
        if found.of_response is None:
            return found
        n = found.of_response.shape[1] - self.order_effect - len(self._attributes)
        return replace(found, of_response=found.of_response[:, :n] if n else None)

    @property
    def _attributes(self) -> tuple[str, ...]:
        """Attributes of comparisons that the model knows."""
        return tuple(getattr(self, "attributes_", ()))

    def _check_of(self, of: Any) -> None:
        """Raise for what is not known, and for worths of all where those of segments differ."""
        if of not in OF:
            raise ValueError(f"of must be one of {list(OF)}, got {plain(of)} instead.")
        check_is_fitted(self)
        if of == "worth" and self._segmented_worths is not None:
            raise ValueError("worths differ between segments: worth() lists them by segment. Use of='ranking'.")

    def _best(self, pools: Callable[[], Iterator[Pool]]) -> Codes:
        """Return the items by their log-worth averaged over the rows, the best first; with segments as in `predict`."""
        if self._segmented_worths is not None:
            return self._segmented_worths.order(next(pools()))
        logs = np.concatenate([averaged(pool, log_worths(pool)) for pool in pools()])
        found: Codes = np.argsort(-logs.mean(axis=0), kind="stable")
        return found

    def rank_distribution(
        self, X: Any = None, of: str = "worth", top: int | None = None, items: Any = None
    ) -> pd.DataFrame:
        """Return the probability of every place of each item, the best items first.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows, for a model with covariates.
        of : {"worth", "ranking"}
            "worth": places among the worths, given the data; after EM without intervals 0 or 1. "ranking": places in a
            new ranking of all items, simulated: ``attrs["error"]`` is the largest standard error. Tied items have the
            place of the first of them.
        top : int, optional
            Number of best items and first places; None: all.
        items : data frame or dict, optional
            As in `worth`, for a model fitted with ``items``: new items. None: those that were never ranked.

        Returns
        -------
        DataFrame
            Items × places, from 1 on; with X, row × item as index.
        """
        self._check_of(of)
        if of == "ranking":
            self._refuse_longer_rankings()
        rng = np.random.default_rng(self._run_settings()[0])
        pools, labels = self._pools_listed(X, items)
        best = self._best(pools)[: _checked_top(top, len(labels))]
        found, errors = zip(*(place_shares(pool, of, self._slots, rng) for pool in pools()), strict=True)
        shares = np.concatenate([each[:, best, : len(best)] for each in found])
        frame = _square("rank_distribution", X, shares, labels[best], np.arange(1, len(best) + 1), "place")
        frame.attrs["error"] = max(errors)
        return frame

    @overload
    def predict(self, X: Lazy) -> Any: ...
    @overload
    def predict(self, X: Any = None) -> Labels: ...
    def predict(self, X: Any = None) -> Any:
        """Return the items in the order of their mean log-worths, best first: labels (n, K), without covariates (K,).

        Under any one draw this is the most probable ranking of all items. With segments: in the order of their expected
        places in a new ranking. For a Dask collection, returns a Dask array.
        """
        if is_dask(X):
            check_is_fitted(self)
            return lazily(self.predict, X, np.empty((0, len(self.items_)), dtype=self.items_.dtype))
        if self._segmented_worths is not None:
            order = self._best(partial(self._pools, X))
            return self.items_[order if X is None else np.tile(order, (len(X), 1))]
        found = np.concatenate([order_of(pool) for pool in self._pools(X)])
        return self.items_[found if X is not None else found[0]]

    @overload
    def predict_proba(self, X: Lazy, groups: Any = None) -> Any: ...
    @overload
    def predict_proba(self, X: Any = None, groups: Any = None) -> Array: ...
    def predict_proba(self, X: Any = None, groups: Any = None) -> Any:
        """Return the probability of each item to come first, (n, K), without covariates (K,); rows sum to 1.

        With ``ties="race"`` a tie for the first place is divided as the race itself would decide it. For a Dask
        collection, returns a Dask array.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows of covariates.
        groups : (n,) array, optional
            With segments: persons of the fit, each of whom is predicted by their memberships. None: a new person, by
            the shares of the segments.
        """
        if groups is not None:
            check_is_fitted(self)
            self._rows(X)
            return self._of_known(groups)
        if is_dask(X):
            check_is_fitted(self)
            return lazily(self.predict_proba, X, np.empty((0, len(self.items_))))
        found = np.concatenate([first_places(pool) for pool in self._pools(X)])
        return found if X is not None else found[0]

    def predict_interval(self, X: Any = None, prob: float = 0.9) -> tuple[Array, Array]:
        """Return equal-tailed credible intervals of the probabilities of `predict_proba`, two arrays."""
        check_is_fitted(self)
        refuse(self.posterior_.no_interval)
        found = [first_intervals(pool, check_prob(prob)) for pool in self._pools(X)]
        lower, upper = (np.concatenate(each) for each in zip(*found, strict=True))
        return (lower, upper) if X is not None else (lower[0], upper[0])

    def log_likelihood(self, X: Any, R: Rankings) -> Array:
        """Return ln of the predicted probability of each row of R, (n,), averaged over the posterior.

        Counts have no effect: a row with count c has the value of one. The total is ``(R.counts * m.log_likelihood(X,
        R)).sum()``, and `score` the mean weighted by counts.
        """
        check_is_fitted(self)
        R = rankings_of(R)
        if X is not None or R.attributes is not None:
            return log_scores(self._members(), *self._situations(X, R))
        distinct, which = distinct_rankings(R, self.order_effect)
        return log_scores(self._members(), *self._situations(X, R[distinct]))[which]

    def score(self, X: Any, R: Rankings, sample_weight: Any = None) -> float:
        """Return the mean of `log_likelihood` over the rankings, weighted by counts; larger is better."""
        weight = R.counts if sample_weight is None else R.counts * np.asarray(sample_weight, dtype=np.float64)
        return float(np.average(self.log_likelihood(X, R), weights=weight))

    def sample(self, X: Any = None, n: int = 1, random_state: Any = None) -> Rankings:
        """Draw new rankings of all items: n of each row of X in turn, or n in all; ties follow `ties`.

        `random_state` seeds the draws; None uses the model's own.
        """
        check_count("n", n)
        self._refuse_longer_rankings()
        seed = self._run_settings()[0] if random_state is None else check_random_state(random_state).randint(2**31)
        rng = np.random.default_rng(seed)
        places = [
            simulated_places(pool, i, n, self._slots, rng)
            for pool in self._pools(X)
            for i in range(pool.log_rates.shape[1])
        ]
        return Rankings.from_ranks(np.concatenate(places) + 1, items=self.items_)

    def to_arviz(self, X: Any = None, R: Any = None, raw: bool = False) -> Any:
        """Return the draws as ArviZ InferenceData (DataTree with ArviZ 1.x), by chain.

        Parameters
        ----------
        X : array or data frame (n, d), optional
            Rows whose log-worths are listed, at most 20 of them, evenly spaced.
        R : Rankings, optional
            Rankings of these rows, or for a model without covariates, for their log-likelihood: ``az.loo`` then leaves
            out one ranking at a time. A ranking with count c appears c times.
        raw : bool
            Also export unidentified draws, as `PlackettLuceClassifier` does.

        Returns
        -------
        InferenceData or DataTree
            - ``posterior``: without covariates ``log_worth``, with mean 0 over the items, else ``weight`` of fixed
              features, and with X ``log_worth`` of some of its rows; ``shape`` if it is learned; ``log_mass``, the
              logarithm of the sum of all weights, with ``ties="race"``;
            - ``sample_stats``: ``lp``, which is `trace_`;
            - ``log_likelihood``, with R: of ``ranking``.
        """
        from plackett.output.arviz import rankings_to_arviz

        check_is_fitted(self)
        return rankings_to_arviz(self, X, R, raw)

    def summary(self, prob: float = 0.9) -> pd.DataFrame:
        """Return a summary: without covariates `worth` with ESS and R-hat, with fixed features each weight."""
        check_is_fitted(self)
        return self._printed_summary(self._table(check_prob(prob)))

    def _of_known(self, groups: Any) -> Array:
        """Probabilities of known persons."""
        raise ValueError("groups would be ignored: only with segments are persons told apart.")

    def _worths(self, prob: float, unit: float, anchor: tuple[int, float] | None) -> pd.DataFrame:
        """The table of `worth` by segment."""
        raise NotImplementedError

    def _table(self, prob: float) -> Table:
        if not self._plain or self._segmented_worths is not None:
            return dict(self.posterior_.table(self, prob))
        order, columns = worth_table(self._whole_pool(None), prob, self.posterior_.no_interval is not None)
        found = getattr(self, "diagnostics_", None)
        rounded: Table = {"item": self.items_[order]} | {name: column.round(4) for name, column in columns.items()}
        if found is not None:
            ess, rhat = np.minimum(found.ess_bulk, found.ess_tail)[order, 0], found.rhat[order, 0]
            rounded |= {"ess": ess.round().astype(int), "rhat": rhat.round(2)}
        return rounded

    def _largest(self, n: int) -> tuple[str, Table]:
        if not self._plain:
            return super()._largest(n)
        return "worths", {name: column[:n] for name, column in self._table(0.9).items()}

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "item", self.items_

    def _predicted(self) -> npt.NDArray[Any]:
        return self.items_

    def _no_explanation(self) -> str | None:
        return NOTHING_TO_EXPLAIN if self._plain else None

    def _counted(self, K: int, p: int) -> str:
        return f"{K} items" if self._plain else f"{K} items × {p} features"

    @property
    def _plain(self) -> bool:
        """True if there are no covariates."""
        return self.n_features_in_ == 0

    def _feature_names(self) -> npt.NDArray[np.object_]:
        return np.array(["worth"], dtype=object) if self._plain else super()._feature_names()

    def _rows(self, X: Any) -> Any:
        """Return rows of W, or their equivalent for the posterior; one row of ones without covariates."""
        check_is_fitted(self)
        refuse_partitions(X)
        if not self._plain:
            if X is None:
                raise ValueError(f"the model knows {self.n_features_in_} covariates; give X, rows that have them.")
            return np.asarray(self._features_of(self._checked_rows(X, reset=False))[:])
        if X is None:
            return ONE
        if np.shape(X)[1:] != (0,):
            raise ValueError("the model was fitted without covariates; leave X out, X=None.")
        return np.ones((len(X), 1))

    def _features_of(self, X: Any) -> Any:
        assert not isinstance(self.posterior_, SegmentedWorths)
        return self.posterior_.rows(self.features_, X)

    def _situations(self, X: Any, R: Any) -> tuple[Entries, Any, Response]:
        """Return new rankings as input of the posterior: entries, outcomes and the response."""
        Z, R = self._rows(X), rankings_of(R).with_items(self.items_)
        if X is not None and len(Z) != len(R):
            raise ValueError(f"X has {len(Z)} rows and R has {len(R)} rankings; each needs its own.")
        row = R.situation if X is not None else np.zeros_like(R.item)
        if R.attribute_names != self._attributes:
            raise ValueError(
                f"the model knows the attributes {list(self._attributes)} of comparisons, and these rankings have "
                f"{list(R.attribute_names)}. Give Rankings.from_pairs(..., attributes=...) as in fit."
            )
        shifts = [] if not self.order_effect else [shown_rows(R)[:, None]]
        if R.attributes is not None:
            half = np.repeat(R.attributes / 2.0, 2, axis=0)
            half[1::2] *= -1.0
            shifts.append(half)
        if shifts:
            Z, row = np.hstack([np.ones((len(R.item), 1)), *shifts]), np.arange(len(R.item))
        return Entries(Z, R.item, row, R.outcomes.start), R.outcomes, self._response(R)

    def _parameters(self) -> tuple[Parameter, ...]:
        """Return the parameters of the response, followed by the order effect and coefficients of attributes."""
        own = parameters_of(make_response(self._ties)) if self._ties in RESPONSES else ()
        return *own, *((ETA,) if self.order_effect else ()), *map(coefficient, self._attributes)

    def _parameter_names(self) -> tuple[str, ...]:
        return tuple(each.name for each in self._parameters())

    def parameters(self, prob: float = 0.9) -> pd.DataFrame:
        """Return the parameters of the response, of tiers, and of covariates of the items.

        They are the width ``theta`` or the weight ``nu`` of ties, the order effect ``eta``, and by their names the
        coefficients of attributes of comparisons: the log-odds that the first item gains per unit of the difference.
        With tiers they include their number ``tiers`` and the ``concentration`` α of the Dirichlet process. With
        `items` they include for each column its coefficient ``gamma[column]``, the change of the log-worth per unit,
        and the ``shape`` a of the residuals, whose standard deviation is about a^(-1/2).

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            By name: ``mean``, ``lower`` and ``upper``; after EM the maximum, with bounds from the information there.
            Empty if there are none.

        Examples
        --------
        >>> from plackett import PlackettLuceRanker, Rankings
        >>> R = Rankings.from_orders([["c", "b", "a"], ["b", "c", "a"], ["c", "a", "b"]])
        >>> items = {"a": {"size": 1}, "b": {"size": 2}, "c": {"size": 4}}
        >>> m = PlackettLuceRanker("em", shape=10).fit(None, R, items=items)
        >>> m.parameters()["mean"].round(1).to_dict()
        {'gamma[size]': 0.6, 'shape': 10.0}
        """
        check_is_fitted(self)
        names, prob = self._parameter_names(), check_prob(prob)
        further, draws = self._further_parameters()
        if isinstance(self.posterior_, Point):
            own = self.posterior_.bounds_of_parameters(self._parameters(), prob)
        else:
            found = self.posterior_.members(every=True).of_response if names else None
            own = mean_and_bounds(np.empty((1, 0)) if found is None else found, prob)
        tables = [own, mean_and_bounds(draws, prob)]
        columns = {name: np.concatenate([table[name] for table in tables]) for name in tables[0]}
        return optional("pandas", "parameters").DataFrame(columns, index=[*names, *further])

    def _further_parameters(self) -> tuple[list[str], Array]:
        """Return names (n) and draws (S, n) of parameters that do not belong to the response."""
        return [], np.empty((1, 0))

    @property
    def _slots(self) -> bool:
        """True if arrivals are observed in slots of time, which makes ties."""
        return self._ties == "race"

    def _pools(self, X: Any) -> Iterator[Pool]:
        """Yield log-rates of all items, for runs of rows."""
        return item_pools(self._spread_members(), self._rows(X))

    def _whole_pool(self, X: Any) -> Pool:
        """Return log-rates of all items in all rows."""
        found = list(self._pools(X))
        log_rates = np.concatenate([pool.log_rates for pool in found], axis=1)
        return found[0]._replace(log_rates=log_rates, available=np.concatenate([pool.available for pool in found]))

    def _chain_log_worths(self, X: Any) -> Array:
        """Return ln r with mean 0 over the items, (chain, draw, row, K), for draws of a chain."""
        logs = self.posterior_.members(every=True).log_rates(all_entries(self._rows(X), len(self.items_)))
        logs = finite_logs(logs.reshape(*self.trace_.shape, -1, len(self.items_)))
        centred: Array = logs - logs.mean(axis=3, keepdims=True)
        return centred

    def _checked_rows(self, X: Any, reset: bool) -> Any:
        """Check covariates and convert them for the feature map."""
        if not self._takes_numbers():
            validate_data(self, X, reset=reset, skip_check_array=True)
            return X
        check_dense(X)
        X = encoded(self, X) if reset else taken(self, X)
        checked = numbers(self, X, reset)
        return X if hasattr(X, "columns") and not self._learned() else checked

    def _response(self, R: Rankings) -> Response:
        """Return the response; without ties it is the plain ranking, except for race ties."""
        if R.tied and self._ties == "error":
            t = int(np.searchsorted(R.outcomes.bucket_start, np.argmax(R.outcomes.sizes > 1), side="right")) - 1
            raise ValueError(
                f"items share a place in row {t}, and ties='error'. Say what a tie means: ties='unknown-order' or "
                "ties='race', or of pairs ties='davidson' or ties='photo-finish'."
            )
        if self._ties in ("race", "photo-finish", "davidson"):
            return make_response(self._ties)
        return make_response("unknown-order" if R.tied else "ranking")


def _scale(scale: Any) -> float:
    """Return the points of a scale per natural logarithm."""
    if scale not in SCALES:
        raise ValueError(f"scale must be one of {list(SCALES)}, got {plain(scale)} instead.")
    return SCALES[scale]


def _square(
    what: str, X: Any, found: Array, items: npt.NDArray[Any], columns: npt.NDArray[Any], name: str
) -> pd.DataFrame:
    """Return tables (n, items, columns) of the rows as a data frame."""
    pandas = optional("pandas", what)
    index = pandas.Index(items, name="item")
    if X is not None:
        index = pandas.MultiIndex.from_product([range(len(found)), items], names=["row", "item"])
    return pandas.DataFrame(found.reshape(-1, len(columns)), index, pandas.Index(columns, name=name))


def _checked_top(top: int | None, K: int) -> int:
    """Return the number of items to list."""
    if top is None:
        return K
    check_count("top", top)
    return min(top, K)


def shown_rows(R: Rankings) -> Codes:
    """Return 1 for each entry whose item was shown first, else 0."""
    if R.first is None:
        return np.zeros(len(R.item), dtype=np.int64)
    found: Codes = (R.item == R.first[R.situation]).astype(np.int64)
    return found


def rankings_of(R: Any) -> Rankings:
    """Return R if it is a `Rankings`; raises otherwise."""
    if isinstance(R, PartitionedRankings):
        raise ValueError("these rankings are in partitions, which fit takes alone; here give some that are in memory.")
    if R is None:
        raise ValueError(
            "R, the rankings, is missing. A ranker takes covariates first: fit(X, R), and fit(None, R) without them."
        )
    if not isinstance(R, Rankings):
        raise ValueError(
            f"R must be plackett.Rankings, made with Rankings.from_orders or the like, got {type(R).__name__} instead."
        )
    return R
