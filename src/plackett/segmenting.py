"""What is asked of fitted models with segments: shares, memberships, predictions of known persons, fit to data."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.capabilities import Combination, Ignored
from plackett.choosing import ChoosingModel
from plackett.data.choice_outcomes import chosen
from plackett.data.validation import check_prob, plain
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output.fit_statistics import FitStatistics
from plackett.posterior.base import Table, refuse, significant
from plackett.posterior.choosers import as_outcomes
from plackett.posterior.segment_members import memberships_of, mixture_values, person_values
from plackett.posterior.segmented_choices import SegmentedChoices
from plackett.posterior.segmented_worths import SegmentedWorths
from plackett.posterior.worths import first_intervals, item_pools
from plackett.ranking import RankingModel
from plackett.segments.segments import Segments, as_segments

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets
    from plackett.data.rankings import Rankings

SEGMENT_DRAWS = Ignored(("moves", "move_budget"), "segments are drawn by their labels, without moves. Leave it out.")
SEGMENT_CLIMB = Ignored(("accelerate",), "the climb of segments has an extrapolation of its own. Leave it out.")
PROB = 0.9  # of the intervals of `segments_`
UNKNOWN = (
    "groups would be ignored: memberships are known of persons of the fit, and it had no groups. Fit with groups=..., "
    "or leave groups out."
)
ONE_SEGMENT = "the model has a single segment; fit with segments=2, or segments='auto'."
NO_WEIGHTS = (
    "sample_weight would be ambiguous with segments: two of an observation may be two persons, or one person twice. "
    "Leave it out. Counts of rankings count persons without groups, and with groups rankings of one person."
)


class SegmentedModel:
    """A fitted model whose persons may belong to segments."""

    segments: Any
    nests: Any
    posterior_: Any
    segment_log_loss_: dict[int, float]

    def _segmented(self) -> Segments | None:
        """The settings; None for a single segment."""
        return as_segments(self.segments)

    @property
    def segments_(self) -> pd.DataFrame:
        """Shares of the segments in the population, the largest first, with 90 % intervals; NaN where there are none.

        After EM intervals are those of the curvature of the log-likelihood.
        """
        if not hasattr(getattr(self, "posterior_", None), "of_segments"):
            raise AttributeError(f"there are no segments_: {ONE_SEGMENT}")
        posterior = self._of_segments()
        centre, draws = posterior.of_segments.shares.mean(axis=(0, 1)), posterior.share_draws()
        lower, upper = np.full((2, len(centre)), np.nan)
        if posterior.no_interval is None:
            lower, upper = np.quantile(draws, [(1 - PROB) / 2, (1 + PROB) / 2], axis=0)
        pandas = optional("pandas", "segments_")
        columns = {"share": centre, "lower": lower, "upper": upper}
        return pandas.DataFrame(columns, index=pandas.RangeIndex(1, len(centre) + 1, name="segment"))

    def _no_weights_with_segments(self, weight: Any) -> None:
        """Raise for weights, which segments do not take."""
        if weight is not None and self._segmented() is not None:
            raise ValueError(NO_WEIGHTS)

    def _of_segments(self) -> SegmentedChoices | SegmentedWorths:
        raise NotImplementedError

    def _members_by_person(self, found: Array, labels: npt.NDArray[Any]) -> pd.DataFrame:
        """Membership probabilities as a table."""
        pandas = optional("pandas", "segment_proba")
        columns = pandas.RangeIndex(1, found.shape[1] + 1, name="segment")
        return pandas.DataFrame(found, index=pandas.Index(labels, name="person"), columns=columns)

    def _number_in_words(self) -> str:
        """How the number of segments was chosen, and how the others predicted."""
        losses = getattr(self, "segment_log_loss_", None)
        if losses is None:
            return ""
        found = ", ".join(f"{segments}: {loss:.4f}" for segments, loss in losses.items())
        farther = min(losses, key=lambda segments: losses[segments]) == max(losses)
        more = "; it is the largest that was tried: Segments('auto', most=...) tries more" if farther else ""
        return f"; their number is chosen by the log-loss of a held-out person ({found}){more}"


class SegmentingChoices(SegmentedModel, ChoosingModel):
    """A fitted model of choices, whose persons may belong to segments."""

    def _with_segments(self, given: Combination) -> Combination:
        """The same combination, with the reason why it cannot have segments."""
        if self._segmented() is None or given.refused is not None:
            return given
        if not self._linear():
            why = "segments are of persons with linear utilities. Use features='linear', or leave segments out."
            return replace(given, refused=why)
        return given if self.nests is None else replace(given, refused="segments have no nests. Leave one of them out.")

    @property
    def _segmented_choices(self) -> SegmentedChoices | None:
        """The posterior of a model with segments; None for other models."""
        posterior = getattr(self, "posterior_", None)
        return posterior if isinstance(posterior, SegmentedChoices) else None

    def _of_segments(self) -> SegmentedChoices:
        check_is_fitted(self)
        if self._segmented_choices is None:
            raise ValueError(ONE_SEGMENT)
        return self._segmented_choices

    def _refuse_unknown_persons(self) -> None:
        posterior = self._segmented_choices
        if posterior is not None and posterior.of_segments.membership is None:
            raise ValueError(UNKNOWN)

    def segment_proba(self, X: ChoiceSets, y: Any, groups: Any = None) -> pd.DataFrame:
        """The probability of each segment for persons, given what they chose.

        Parameters
        ----------
        X : ChoiceSets
            Situations, those of the fit or of new persons.
        y : (n,) array or Rankings
            What was chosen.
        groups : (n,) array, optional
            The person of each situation; None: each situation has a person of its own.

        Returns
        -------
        DataFrame
            Persons × segments, averaged over the posterior; rows sum to 1.
        """
        values, members, labels = self._person_values(X, y, groups, self._of_segments().predicting())
        return self._members_by_person(memberships_of(members, values), labels)

    def _person_values(self, X: ChoiceSets, y: Any, groups: Any, members: Any) -> tuple[Array, Any, npt.NDArray[Any]]:
        """Log-likelihoods (S, N) of persons under members, these, and labels of persons."""
        X = self._known_sets(X)
        labels, person = _persons(groups, X.situations)
        ordered = as_outcomes(self._rows(X), chosen(X, y))
        return person_values(members, *ordered, person), members, labels

    def willingness_to_pay(
        self, attribute: str, cost: str, X: ChoiceSets | None = None, prob: float = 0.9, groups: Any = None
    ) -> pd.DataFrame:
        """What a unit less of an attribute is worth, in units of the cost; for each segment, if there are some."""
        posterior = self._segmented_choices
        if posterior is None:
            return super().willingness_to_pay(attribute, cost, X, prob, groups)
        if X is not None or groups is not None:
            raise ValueError(
                "X and groups would be ignored: a segment has the same ratio in all situations. Leave them out."
            )
        if self.weights == "alternative":
            raise ValueError("with weights='alternative' ratios differ by alternative as well: see coefficients().")
        tail = (1 - check_prob(prob)) / 2
        places = [self._column_of(name) for name in (attribute, cost)]
        draws, best = posterior.in_units(self)[..., places], None
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = draws[..., 0] / draws[..., 1]
            centre, lower, upper = np.quantile(ratio, [0.5, tail, 1 - tail], axis=0)
            if posterior.classical is not None:
                best = (posterior.of_segments.parameters[0, 0] @ self.design_.to_units().T)[:, places]
                centre = best[:, 0] / best[:, 1]
        columns: Table = {"segment": np.arange(1, len(centre) + 1)}
        columns |= {"value": significant(centre), "lower": significant(lower), "upper": significant(upper)}
        return optional("pandas", "willingness_to_pay").DataFrame(columns)

    def fit_statistics(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> FitStatistics:
        """How well the model fits; with segments the log-likelihood is that of whole persons."""
        posterior = self._segmented_choices
        if posterior is None:
            return super().fit_statistics(X, y, sample_weight, groups)
        if sample_weight is not None:
            raise ValueError("sample_weight would be ignored: with segments every person counts once.")
        found = super().fit_statistics(X, y)
        values, members, _ = self._person_values(X, y, groups, posterior.reported())
        found = replace(found, log_likelihood=float(mixture_values(members, values).sum()))
        if groups is None:
            return found
        loo = dict.fromkeys(("elpd_loo", "se_loo", "p_loo", "elpd_waic", "p_waic"), np.nan)
        return replace(found, **loo)  # type: ignore[arg-type]

    def _column_of(self, attribute: str) -> int:
        """The column of the design that is an attribute."""
        self._attribute(attribute)
        return int(np.flatnonzero(self.design_.source_ == attribute)[0])


class SegmentingRankings(SegmentedModel, RankingModel):
    """A fitted model of rankings, whose rankers may belong to segments."""

    group_labels_: npt.NDArray[Any]

    def _of_segments(self) -> SegmentedWorths:
        check_is_fitted(self)
        if self._segmented_worths is None:
            raise ValueError(ONE_SEGMENT)
        return self._segmented_worths

    def segment_proba(self, X: Any, R: Rankings, groups: Any = None) -> pd.DataFrame:
        """The probability of each segment for persons, given their rankings.

        Parameters
        ----------
        X : None
            There are no covariates.
        R : Rankings
            Rankings, those of the fit or of new persons.
        groups : (n,) array, optional
            The person of each ranking; None: each ranking has a person of its own.

        Returns
        -------
        DataFrame
            Persons × segments, averaged over the posterior; rows sum to 1.
        """
        members = self._of_segments().members()
        entries, outcomes, response = self._situations(X, R)
        labels, person = _persons(groups, np.arange(len(outcomes.counts)))
        if groups is None:
            outcomes = outcomes._replace(counts=np.ones(len(person)))  # equal rankings are of different persons
        values = person_values(members, entries, outcomes, response, person)
        return self._members_by_person(memberships_of(members, values), labels)

    def _no_segments(self, given: Combination, without: bool) -> str | None:
        """Why there can be no segments in this combination, if there cannot."""
        settings = self._segmented()
        if settings is None:
            return None
        if not without:
            return "segments are of rankers without covariates. Leave X out, or leave segments out."
        if self._attributes:
            return (
                "segments have worths alone, and Rankings.from_pairs(attributes=...) needs more. Leave one of them out."
            )
        if self.ties in ("race", "photo-finish", "davidson", "auto") or self.order_effect:
            setting = "order_effect=True" if self.order_effect else f"ties={self.ties!r}"
            return f"segments have worths alone, and {setting} needs more. Leave one of the two out."
        if not (given.inference.samples or given.inference.maximises):
            return "segments are found by EM or drawn: use inference='em' or 'gibbs'."
        if given.partitions or self.engine not in ("auto", "numba"):
            where = "rankings in partitions" if given.partitions else f"engine={self.engine!r}"
            return f"segments are compiled for rankings in memory, not for {where}. Use engine='auto', in memory."
        if given.tailed is not None:
            return f"segments have the Gamma prior, and this is prior={given.tailed!r}. Leave one of the two out."
        if settings.by is not None or settings.ignored is not None:
            return "Segments(by=..., ignored=...) are about columns of choices. Leave them out: all worths differ."
        if given.inference.maximises and given.shape is not None and given.shape < 1:
            return f"EM with segments takes a shape of at least 1, got shape={given.shape:g}: below 1 worths go to 0."
        return None

    def _unread_with_segments(self, given: Combination) -> tuple[tuple[Any, Ignored], ...]:
        """Settings that segments do not read."""
        if self._segmented() is None:
            return ()
        if given.inference.samples:
            return ((given.inference, SEGMENT_DRAWS),)
        return ((given.inference, SEGMENT_CLIMB),) if given.inference.maximises else ()

    def _of_known(self, groups: Any) -> Array:
        """Probabilities (n, K) of the items to be first, for persons of the fit by their memberships."""
        posterior, labels = self._of_segments(), np.asarray(groups)
        if posterior.of_segments.membership is None:
            raise ValueError(UNKNOWN)
        place = {label: i for i, label in enumerate(self.group_labels_.tolist())}
        unknown = [label for label in labels.tolist() if label not in place]
        if unknown:
            raise ValueError(
                f"{plain(unknown[0])} is not among the {len(place)} persons of the fit. Leave groups out for new "
                "persons."
            )
        known = np.array([place[label] for label in labels.tolist()], dtype=np.intp)
        return posterior.predicted(known)

    def predict_interval(self, X: Any = None, prob: float = 0.9) -> tuple[Array, Array]:
        """Equal-tailed intervals of the probabilities of `predict_proba`; with segments of those of a new person."""
        posterior = self._segmented_worths
        if posterior is None:
            return super().predict_interval(X, prob)
        rows = self._rows(X)
        refuse(posterior.no_interval)
        (pool,) = item_pools(posterior.spread_members(), rows)
        lower, upper = first_intervals(pool, check_prob(prob))
        return lower[0], upper[0]

    def _worths(self, prob: float, unit: float, anchor: tuple[int, float] | None) -> pd.DataFrame:
        """The table of `worth` by segment."""
        pandas, posterior = optional("pandas", "worth"), self._of_segments()
        found = posterior.worths(prob, unit, anchor)
        frames = [pandas.DataFrame(columns, index=self.items_[order]) for order, columns in found]
        return pandas.concat(frames, keys=range(1, len(frames) + 1), names=["segment", "item"])


def _persons(groups: Any, alone: npt.NDArray[Any]) -> tuple[npt.NDArray[Any], npt.NDArray[np.intp]]:
    """Labels of persons, and the person of each observation; without groups these have labels of their own."""
    if groups is None:
        return alone, np.arange(len(alone))
    labels = np.asarray(groups)
    if labels.shape != alone.shape:
        raise ValueError(f"groups must have one label for each of the {len(alone)} observations, got {labels.shape}.")
    found, person = np.unique(labels, return_inverse=True)
    return found, person.ravel().astype(np.intp)
