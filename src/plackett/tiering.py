"""Methods of rankers with tiers of items."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from plackett.capabilities import Combination, Ignored
from plackett.data.validation import check_prob
from plackett.model.race import Array
from plackett.optional import optional
from plackett.posterior.tiered_worths import TieredDraws
from plackett.segmenting import SegmentingRankings
from plackett.tiers.tiers import Tiers, as_tiers

if TYPE_CHECKING:
    import pandas as pd

TIER_DRAWS = Ignored(
    ("moves", "move_budget"), "tiers are drawn by sweeps, splits and merges of their own. Leave it out."
)
NO_TIERS = "the model has no tiers; fit with tiers=True."
UNTIERED = {
    "davidson": "ties='davidson' is not conjugate, and tiers need a conjugate law. Use ties='photo-finish'.",
    "race": "ties='race' identifies the scale of the worths, and tiers take it as free. Use ties='photo-finish' for "
    "pairs, or ties='unknown-order'.",
}


class SettingAndMethod(property):
    """A method that shares its name with a setting of the estimator.

    Assignment, as by ``__init__`` and ``set_params``, stores the setting; access returns the method. `get_params`
    returns the setting. As a property, it is found by doctest.
    """

    def __init__(self, method: Callable[..., Any]):
        super().__init__(method)
        self.method = method

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, model: Any, owner: type | None = None) -> Callable[..., Any]:  # type: ignore[override]
        return self.method if model is None else MethodType(self.method, model)

    def __set__(self, model: Any, value: Any) -> None:
        vars(model)[self.name] = value


class TieringRankings(SegmentingRankings):
    """A fitted model of rankings, whose items may share worths."""

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters by name; `deep`: also those of settings that have their own."""
        found: dict[str, Any] = super().get_params(deep)
        setting = found["tiers"] = vars(self)["tiers"]
        if deep and isinstance(setting, Tiers):
            found |= {f"tiers__{name}": value for name, value in setting.get_params().items()}
        return found

    def _tiered(self) -> Tiers | None:
        """The settings of tiers; None without."""
        return as_tiers(vars(self)["tiers"])

    @SettingAndMethod
    def tiers(self, prob: float = 0.9) -> pd.DataFrame:
        """Return the items in tiers, the best first. For a model fitted with ``tiers=True``.

        Parameters
        ----------
        prob : float
            Probability that the intervals of ranks hold, equal tails.

        Returns
        -------
        DataFrame
            By item:

            - ``tier``: from 1, the best. These are the tiers of one partition that stands for all draws: among all that
              cut the items, ordered by their mean log-worths, into runs, the one nearest to the posterior in variation
              of information;
            - ``prob_same_as_next``: the posterior probability that the item and the next one share a tier;
            - ``rank_lower``, ``rank_upper``: the interval of the place. Items of one tier share its best place.

        Examples
        --------
        >>> from plackett import PlackettLuceRanker, Rankings
        >>> R = Rankings.from_pairs(["a", "b", "a", "c"], ["b", "a", "c", "a"], counts=[50, 50, 180, 20])
        >>> m = PlackettLuceRanker(tiers=True, random_state=0).fit(None, R)
        >>> m.tiers()["tier"].sort_index().tolist()
        [1, 1, 2]
        """
        order, columns = self._in_tiers().summary_tiers(check_prob(prob))
        pandas = optional("pandas", "tiers")
        return pandas.DataFrame(columns, index=pandas.Index(self.items_[order], name="item"))

    def same_tier(self) -> pd.DataFrame:
        """Return the posterior probability that two items share a tier, items × items, the best first.

        Examples
        --------
        >>> from plackett import PlackettLuceRanker, Rankings
        >>> R = Rankings.from_pairs(["a", "b", "a", "c"], ["b", "a", "c", "a"], counts=[50, 50, 180, 20])
        >>> m = PlackettLuceRanker(tiers=True, random_state=0).fit(None, R)
        >>> bool(m.same_tier().loc["a", "b"] > 0.5 > m.same_tier().loc["a", "c"])
        True
        """
        posterior = self._in_tiers()
        order, pandas = posterior.order(), optional("pandas", "same_tier")
        items = self.items_[order]
        found = posterior.together()[np.ix_(order, order)]
        return pandas.DataFrame(found, pandas.Index(items, name="item"), pandas.Index(items, name="as"))

    @property
    def n_tiers_(self) -> pd.Series:
        """Posterior probability of each number of tiers, for a model fitted with ``tiers=True``."""
        if self._tiers_drawn is None:
            raise AttributeError(f"there is no n_tiers_: {NO_TIERS}")
        number, times = np.unique(self._in_tiers().number_of_tiers(), return_counts=True)
        pandas = optional("pandas", "n_tiers_")
        return pandas.Series(times / times.sum(), pandas.Index(number, name="tiers"), name="probability")

    def _further_parameters(self) -> tuple[list[str], Array]:
        drawn = self._tiers_drawn
        if drawn is None:
            return super()._further_parameters()
        draws = np.column_stack([drawn.number_of_tiers().ravel().astype(np.float64), drawn.concentration.ravel()])
        return ["tiers", "concentration"], draws

    @property
    def _tiers_drawn(self) -> TieredDraws | None:
        """The posterior of a model with tiers; None for other models."""
        posterior = getattr(self, "posterior_", None)
        return posterior if isinstance(posterior, TieredDraws) else None

    def _in_tiers(self) -> TieredDraws:
        check_is_fitted(self)
        if self._tiers_drawn is None:
            raise ValueError(NO_TIERS)
        return self._tiers_drawn

    def _no_tiers(self, given: Combination, without: bool) -> str | None:
        """Return why there can be no tiers in this combination, or None."""
        if self._tiered() is None:
            return None
        if self._segmented() is not None:
            return "worths of segments have no tiers. Leave segments or tiers out."
        if not without:
            return "tiers are of items without covariates. Leave X out, or leave tiers out."
        if not given.inference.samples:
            return "tiers are drawn, and have no estimate of another kind. Use inference='gibbs', or leave tiers out."
        if self._attributes:
            return "attributes of comparisons have no tiers. Leave them out of Rankings.from_pairs, or leave tiers out."
        if self._ties in UNTIERED:
            return UNTIERED[self._ties]
        if given.partitions or self.engine not in ("auto", "numba", "numpy"):
            where = "rankings in partitions" if given.partitions else f"engine={self.engine!r}"
            return f"tiers are drawn from rankings in memory, not from {where}. Use engine='auto', in memory."
        if given.tailed is not None:
            return (
                f"worths of tiers have the Gamma prior, and this is prior={given.tailed!r}. Leave one of the two out."
            )
        return None

    def _unread_with_tiers(self, given: Combination) -> tuple[tuple[Any, Ignored], ...]:
        """Settings that tiers do not read."""
        return ((given.inference, TIER_DRAWS),) if self._tiered() is not None and given.inference.samples else ()
