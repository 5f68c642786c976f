"""Methods of fitted models of choices: predictions, effects, elasticities, willingness to pay, diversion."""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from plackett.cluster.predicting import lazily
from plackett.data.choice_outcomes import Codes, chosen, situation_weights
from plackett.data.partitioned import PartitionedChoices
from plackett.data.types import Labels
from plackett.data.validation import check_prob, plain
from plackett.features.choice_design import ChoiceDesign, EntryTable
from plackett.features.entry_features import groups_of_entries, log_features
from plackett.features.mapped import feature_names
from plackett.linear import LinearUtility
from plackett.model.mixture import Entries
from plackett.model.race import Array
from plackett.optional import optional
from plackett.output import choice_effects, sheets
from plackett.output.choice_effects import Survey, market_shares
from plackett.output.fit_statistics import FitStatistics, fit_statistics
from plackett.output.printed import printed
from plackett.output.published import coefficients_frame
from plackett.posterior.choosers import ChoicePosterior
from plackett.race_model import RaceModel
from plackett.tastes import Tastes

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets


NO_EXPLANATION = (
    "contributions add up to log-odds where all alternatives substitute alike, which those of a nest do not. effects, "
    "elasticities and diversion know the nests."
)


class ChoosingModel(RaceModel):
    """Fitted model of choices; `weights` determines the groups of weights."""

    weights: str
    schema_: ChoiceSets
    alternatives_: npt.NDArray[Any]
    attributes_: list[Any]
    group_labels_: npt.NDArray[Any]
    design_: ChoiceDesign
    posterior_: ChoicePosterior
    _seen: EntryTable | None = None  # some situations of the fit

    @overload
    def predict_proba(self, X: PartitionedChoices, groups: Any = None) -> Any: ...
    @overload
    def predict_proba(self, X: ChoiceSets, groups: Any = None) -> Array: ...
    def predict_proba(self, X: ChoiceSets | PartitionedChoices, groups: Any = None) -> Any:
        """Return probabilities (n, A) of all alternatives, averaged over the posterior; 0 for unavailable ones.

        For situations in partitions, returns a Dask array.

        Parameters
        ----------
        X : ChoiceSets
            New situations.
        groups : (n,) array, optional
            Person of each situation, for ``weights="person"``, random tastes or segments. Persons of the fit are
            predicted with their own weights, tastes or memberships; a new one as a random known person, by a draw from
            the law of tastes, or by the shares of the segments.
        """
        if in_partitions(X):
            check_is_fitted(self)
            return self._lazily(self.predict_proba, X, np.empty((0, len(self.alternatives_))), groups)
        rows = self._rows(X, groups)
        return self.posterior_.predict(rows)

    @overload
    def predict(self, X: PartitionedChoices, groups: Any = None) -> Any: ...
    @overload
    def predict(self, X: ChoiceSets, groups: Any = None) -> Labels: ...
    def predict(self, X: ChoiceSets | PartitionedChoices, groups: Any = None) -> Any:
        """Return the most probable alternative of each situation."""
        if in_partitions(X):
            check_is_fitted(self)
            return self._lazily(self.predict, X, self.alternatives_[:0], groups)
        best = np.argmax(self.predict_proba(X, groups), axis=1)
        labels: npt.NDArray[Any] = self.alternatives_[best]
        return labels

    def predict_interval(self, X: ChoiceSets, prob: float = 0.9, groups: Any = None) -> tuple[Array, Array]:
        """Return equal-tailed credible intervals of the probabilities, two arrays (n, A)."""
        rows = self._rows(X, groups)
        return self.posterior_.interval(rows, check_prob(prob))

    def log_likelihood(self, X: ChoiceSets, y: Any, groups: Any = None) -> Array:
        """Return ln of the predicted probability of the outcome of each situation, (n,)."""
        X = self._known_sets(X)
        return self.posterior_.log_probability(self._rows(X, groups), chosen(X, y))

    def to_arviz(self, X: Any = None, y: Any = None, raw: bool = False, groups: Any = None) -> Any:
        """Return the draws as ArviZ InferenceData (DataTree with ArviZ 1.x), as `PlackettLuceClassifier` does.

        Parameters
        ----------
        X : ChoiceSets, optional
            Situations to predict.
        y : (n,) array or Rankings, optional
            Outcomes, for the log-likelihood: ``az.loo`` is over situations. For rankings it includes neither κ nor the
            stacked mode, and there is no group of observed data.
        raw : bool
            Also export unidentified draws; for random tastes those of persons.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        InferenceData or DataTree
            ``probability`` and ``y`` refer to alternatives instead of classes. Random tastes have ``mu``, ``sigma``,
            ``correlation`` and ``coefficient``, and if raw ``beta`` by person. Fewer draws of persons' tastes are kept:
            with these, or with ``groups``, the others are thinned accordingly.
        """
        from plackett.output.arviz import to_arviz

        check_is_fitted(self)
        model, step = self, self.posterior_.person_step if raw or groups is not None else 1
        if step > 1:
            model = copy(self)
            model.posterior_, model.trace_ = self.posterior_.thinned(step), self.trace_[:, ::step]
        return to_arviz(model, X, y, raw, groups=groups)

    def coefficients(self, prob: float = 0.9, errors: str = "classical") -> pd.DataFrame:
        """Return coefficients of ``features="linear"`` in the units of the data as in papers, not rounded.

        Parameters
        ----------
        prob : float
            Probability that an interval holds, equal tails.
        errors : {"classical", "robust", "person"}
            Standard errors after EM: from the curvature of the log-likelihood; from the sandwich by situations, which
            is valid for a misspecified model; or from that by persons, ``groups`` of `fit`, whose situations are
            dependent. With segments "robust" is the sandwich by persons.

        Returns
        -------
        DataFrame
            One row per ``column``; with segments one per ``segment`` and column, "all" for a shared coefficient, and
            without ``ess`` and ``rhat``. After EM ``coefficient``, ``std_error``, ``z``, ``p`` of the hypothesis that
            it is 0, ``lower`` and ``upper``. For draws ``mean``, ``sd``, ``lower``, ``upper``, ``positive``, the
            probability that it is above 0, ``ess`` and ``rhat``. Its `to_latex` returns a tabular.
            ``.attrs["base_levels"]`` has the base level of each text, which the table names when printed.

        Notes
        -----
        A constant is relative to the alternative without one, for a person whose columns are all 0; ``income: car`` is
        the product of the person's income with the constant of car. The coefficient of a level of a text is its
        difference from the base level, the first in alphabetical order of those in the data.

        Examples
        --------
        >>> from plackett import PlackettLuceChooser
        >>> from plackett.datasets import load
        >>> travel = load("travelmode")
        >>> model = PlackettLuceChooser("em", features="linear").fit(travel.choices, travel.y)
        >>> model.coefficients().columns.tolist()
        ['column', 'coefficient', 'std_error', 'z', 'p', 'lower', 'upper']
        """
        check_is_fitted(self)
        columns = self.posterior_.coefficients_table(self, check_prob(prob), errors)
        return coefficients_frame(columns, self.design_.known_base_levels())

    def fit_statistics(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> FitStatistics:
        """Return fit statistics: log-likelihoods, ρ², AIC and BIC; for draws LOO and WAIC.

        Parameters
        ----------
        X : ChoiceSets
            Situations, for instance those of the fit.
        y : (n,) array or Rankings
            Choices or rankings.
        sample_weight : (n,) array, optional
            Weight of each situation.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        FitStatistics
            ``log_likelihood``, ``null`` (equal chances), ``constants`` (constants alone), ``rho2``, ``rho2_adjusted``,
            ``rho2_constants``, ``parameters``, ``n``; after maximum likelihood ``aic`` and ``bic``; for draws
            ``elpd_loo``, ``se_loo``, ``p_loo`` (with ArviZ), ``elpd_waic`` and ``p_waic``. It prints as a table, and
            has `frame` and `to_latex`.

        Notes
        -----
        AIC and BIC require the situations of the fit. A learned model has no number of parameters, since its prior
        determines how many are active.
        """
        sets = self._known_sets(X)
        seen = chosen(sets, y, situation_weights(sample_weight, len(sets)))
        return fit_statistics(self, sets, y, seen, groups)

    def shares(self, X: ChoiceSets, prob: float = 0.9, sample_weight: Any = None, groups: Any = None) -> pd.DataFrame:
        """Return simulated market shares: averages of the probabilities over situations.

        Parameters
        ----------
        X : ChoiceSets
            Actual or hypothetical situations: change attributes or availability and compare.
        prob : float
            Probability that the interval holds, equal tails.
        sample_weight : (n,) array, optional
            Weight of each situation in the population.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For each ``alternative`` its ``share`` of all choices, ``lower`` and ``upper``; shares add up to 1.
        """
        rows, weight = self._rows(X, groups), situation_weights(sample_weight, len(X))
        return optional("pandas", "shares").DataFrame(market_shares(self, rows, weight, check_prob(prob)))

    def effects(self, X: ChoiceSets, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Return average marginal effects on the probabilities of alternatives.

        Parameters
        ----------
        X : ChoiceSets
            Situations to average over; at most 400, evenly spaced.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        DataFrame
            - ``attribute``, and its alternative ``of``; "person" for persons' columns;
            - ``alternative``, whose probability changes: own effects if it equals ``of``, otherwise cross effects;
            - ``effect``: per unit of the attribute, averaged over situations in which ``of`` is available; for 0/1, the
              difference between 1 and 0; for a text, between each level and the most frequent one, in lines such as
              ``class: first vs second``. Effects add up to 0 over the alternatives;
            - ``lower``, ``upper``, and ``positive``, the probability that it is above 0; NaN after EM;
            - ``effect_per_sd``: for a number, the effect times its standard deviation; otherwise the effect itself.
        """
        survey, names = self._survey(X, groups), ("attribute", "of", "alternative")
        optional("pandas", "effects")
        columns = choice_effects.effects(survey, check_prob(prob))
        return printed(columns, lambda table: sheets.effects(table, names, f"{len(X):,} situations"), "effects")

    def elasticities(self, X: ChoiceSets, attribute: str, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Return percentage changes of probabilities per percent of an attribute of one alternative.

        Parameters
        ----------
        X : ChoiceSets
            Situations to average over; at most 400, evenly spaced.
        attribute : str
            Name of the attribute.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        DataFrame
            ``of``, whose attribute changes; ``alternative``, whose probability changes; ``elasticity``, ``lower``,
            ``upper``, ``positive``.

        Notes
        -----
        Elasticities of situations are averaged with the probabilities as weights (sample enumeration; Ben-Akiva &
        Lerman 1985, section 6.4): Σ_t x_ta ∂P_tb/∂x_ta / Σ_t P_tb over situations in which both are available. This is
        the elasticity of the expected number of choices of b if x_a changes by one per cent everywhere.
        """
        survey, pandas = self._survey(X, groups), optional("pandas", "elasticities")
        return pandas.DataFrame(choice_effects.elasticities(survey, self._attribute(attribute), check_prob(prob)))

    def willingness_to_pay(
        self, attribute: str, cost: str, X: ChoiceSets | None = None, prob: float = 0.9, groups: Any = None
    ) -> pd.DataFrame:
        """Return the value of a unit less of an attribute, in units of the cost.

        Parameters
        ----------
        attribute, cost : str
            Two attributes.
        X : ChoiceSets, optional
            Situations to average over, weighted by the probabilities of the alternatives. None: at most 400
            situations of the fit, evenly spaced, which stay in memory with the model. Model files do not contain
            them: for a loaded model, alternatives with their average attributes, for an average person.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For ``alternative`` "all" and each alternative: ``value``, the ratio ∂ln r/∂attribute over ∂ln r/∂cost of
            averaged marginal utilities, ``lower`` and ``upper``. For conditional logit it is the ratio of coefficients.
            It is positive if more of either is bad: the value of a unit less of the attribute, in units of the cost.
            It is negative if more of the attribute is good: −value is the value of one more.

        Notes
        -----
        The ratio is that of averaged marginal utilities: an average of ratios need not exist, as the marginal utility
        of the cost may be 0. It is computed under every draw; ``value`` is the median, or the ratio at the estimate
        after maximum likelihood. Warnings are given if the cost has the opposite sign in more than a twentieth of the
        draws, if the slope of one of the two changes sign for more than a tenth of the choices, and if conditional
        logit of the same data has a ratio of the opposite sign.
        """
        check_is_fitted(self)
        f, c, prob = self._attribute(attribute), self._attribute(cost), check_prob(prob)
        weight, pandas = None, optional("pandas", "willingness_to_pay")
        if X is not None:
            survey = self._survey(X, groups)
        elif self._seen is not None:
            survey = Survey(self, self._seen, np.full(len(self._seen.context), -1))
        else:
            survey, weight = Survey(self, self.design_.average(), np.array([-1])), self.design_.shares_[None]
        return pandas.DataFrame(choice_effects.willingness_to_pay(survey, f, c, weight, prob))

    def diversion(self, X: ChoiceSets, drop: Any, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Return how the choices of a removed alternative divide among the others.

        Parameters
        ----------
        X : ChoiceSets
            Situations; only those in which it is available count. At most 400, evenly spaced.
        drop : label
            The removed alternative.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For each other alternative: its ``share`` of the choices of ``drop``, ``lower`` and ``upper``, and its
            average probability ``before`` and ``after``. Shares add up to 1.
        """
        survey, labels = self._survey(X, groups), self.alternatives_.tolist()
        if drop not in labels:
            raise ValueError(f"drop must be one of the alternatives {labels}, got {plain(drop)} instead.")
        return optional("pandas", "diversion").DataFrame(
            choice_effects.diversion(survey, labels.index(drop), check_prob(prob))
        )

    def parameters(self, prob: float = 0.9) -> pd.DataFrame:
        """Return dissimilarities of nests, between 0 and 1; empty without nests.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            By name of the nest: ``mean``, ``lower`` and ``upper``. With smaller dissimilarity the alternatives of a
            nest substitute more closely for each other; at 1 the nest has no effect.
        """
        check_is_fitted(self)
        table = self.posterior_.parameter_table(check_prob(prob))
        return optional("pandas", "parameters").DataFrame(table, index=list(self._parameter_names()))

    def _parameter_names(self) -> tuple[str, ...]:
        return () if self.posterior_.nests is None else self.posterior_.nests.names

    def _no_explanation(self) -> str | None:
        return None if self.posterior_.nests is None else NO_EXPLANATION

    def _lazily(self, predict: Any, X: Any, empty: npt.NDArray[Any], groups: Any) -> Any:
        """Return lazy predictions of situations in partitions."""
        if groups is not None:
            raise ValueError(
                "of situations in partitions, predictions are for persons who are not named: leave groups."
            )
        return lazily(predict, X, empty)

    def _rows(self, X: Any, groups: Any = None) -> Entries:
        X = self._known_sets(X)
        return self._entries(EntryTable.of(X), self._known(groups, len(X)))

    def _observed(self, X: Any, y: Any, groups: Any = None) -> tuple[Entries, Any]:
        X = self._known_sets(X)
        seen = chosen(X, y)
        return self._rows(X, groups), X.alternative[seen.first] if seen.response == "choice" else seen

    def _one(self, X: ChoiceSets) -> tuple[EntryTable, Codes]:
        """Return the table of one situation, of an unknown person."""
        if len(choice_sets(X)) != 1:
            raise ValueError(f"expected one situation, got {len(X)} instead. Take one, such as X[0].")
        return EntryTable.of(self._known_sets(X)), np.array([-1])

    def _survey(self, X: ChoiceSets, groups: Any) -> Survey:
        X = self._known_sets(X)
        return Survey(self, EntryTable.of(X), self._known(groups, len(X)))

    def _attribute(self, name: str) -> int:
        if name not in self.attributes_:
            raise ValueError(f"the attributes are {', '.join(map(str, self.attributes_))}; got {plain(name)} instead.")
        place: int = self.attributes_.index(name)
        if place in self.design_.left_out()[0]:
            raise ValueError(
                f"{plain(name)} is a base level, whose coefficient is 0: name another level, which is compared with it."
            )
        return place

    def _known_sets(self, X: ChoiceSets) -> ChoiceSets:
        """Convert new choice sets to the alternatives and columns of the fit."""
        check_is_fitted(self)
        return choice_sets(X).with_schema(self.schema_)

    def _known(self, groups: Any, n: int) -> Codes:
        """Return the position of each person among the known ones; −1 for new ones, and without persons."""
        if groups is None:
            return np.full(n, -1)
        if self.weights != "person" and not (self._tasting() or self._segmented()):
            raise ValueError(
                "groups would be ignored: only with weights='person', features=Tastes(...) or segments do persons have "
                "weights, tastes or memberships of their own."
            )
        self._refuse_unknown_persons()
        labels = np.asarray(groups)
        if labels.shape != (n,):
            raise ValueError(f"groups must have one label for each of the {n} situations, got shape {labels.shape}.")
        place = {label: k for k, label in enumerate(self.group_labels_.tolist())}
        return np.array([place.get(label, -1) for label in labels.tolist()], dtype=np.intp)

    def _entries(self, table: EntryTable, person: Codes | None) -> Entries:
        """Return situations as input of the posterior."""
        learned, of = self._learned() or self._linear() or self._tasting(), table.alternative
        Z, group = self.design_.transform(table) if learned else self._log_features(table), self._group(table, person)
        return Entries(Z, group, np.arange(len(of)), table.start, of, len(self.alternatives_), logs=not learned)

    def _group(self, table: EntryTable, person: Codes | None) -> Codes:
        """Return the group of weights or tastes of each entry; −1 for an unknown person."""
        if self._tasting() or self._segmented():
            return np.full(len(table.alternative), -1) if person is None else person[table.situation]
        return groups_of_entries("shared" if self._linear() else self.weights, table, person)

    def _linear(self) -> bool:
        """True if the utility is linear."""
        return self._has(LinearUtility)

    def _tasting(self) -> bool:
        """True if tastes follow a population law."""
        return self._has(Tastes)

    def _segmented(self) -> object:
        """The settings of segments, if there are some."""
        return None

    def _refuse_unknown_persons(self) -> None:
        """Raise for groups where no memberships are known."""

    def _make_features(self) -> Any:
        own = not isinstance(self.features, str) and (self._linear() or self._tasting())
        return clone(self.features) if own else super()._make_features()

    def _log_features(self, table: EntryTable) -> Array:
        """Return ln W (entries, p), comparable within a situation."""
        return log_features(self.design_, self.features_, table)

    def _feature_names(self) -> npt.NDArray[np.object_]:
        names = feature_names(self.features_, self.design_.names_)
        if names is None:
            names = [f"feature{j}" for j in range(self.weights_.shape[1])]
        return np.asarray(names, dtype=object)

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "weights of", self.group_labels_


def in_partitions(X: Any) -> bool:
    """True for situations that stay in their partitions."""
    return isinstance(X, PartitionedChoices)


def choice_sets(X: Any) -> ChoiceSets:
    """Return X if it is a `ChoiceSets`; raises otherwise."""
    from plackett.data.choice_sets import ChoiceSets

    if in_partitions(X):
        raise ValueError(
            "these situations are in partitions, which fit, predict and predict_proba take; here give some that are in "
            "memory, made from frame.partitions[0].compute()."
        )
    if not isinstance(X, ChoiceSets):
        raise ValueError(
            f"X must be ChoiceSets, got {type(X).__name__} instead. Make them with ChoiceSets.from_long(frame, ...) or "
            "ChoiceSets.from_wide(frame, ...)."
        )
    return X
