"""What is asked of a fitted model of choices: predictions, effects, elasticities, willingness to pay, diversion."""

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
from plackett.output import choice_effects
from plackett.output.choice_effects import Survey, market_shares
from plackett.output.fit_statistics import FitStatistics, fit_statistics
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
    """A fitted model of choices; `weights` says whose weights an entry uses."""

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
        """Probabilities (n, A) of all alternatives, averaged over the posterior; 0 where one is not available.

        Of situations in partitions, a Dask array.

        Parameters
        ----------
        X : ChoiceSets
            New situations.
        groups : (n,) array, optional
            With ``weights="person"``, random tastes or segments, who chooses. Those who were in the fit are predicted
            with their own weights, tastes or memberships; a new one, as one of those known drawn at random, from the
            law of the tastes, or by the shares of the segments.
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
        """The most probable alternative of each situation."""
        if in_partitions(X):
            check_is_fitted(self)
            return self._lazily(self.predict, X, self.alternatives_[:0], groups)
        best = np.argmax(self.predict_proba(X, groups), axis=1)
        labels: npt.NDArray[Any] = self.alternatives_[best]
        return labels

    def predict_interval(self, X: ChoiceSets, prob: float = 0.9, groups: Any = None) -> tuple[Array, Array]:
        """Equal-tailed credible intervals of the probabilities, two arrays (n, A)."""
        rows = self._rows(X, groups)
        return self.posterior_.interval(rows, check_prob(prob))

    def log_likelihood(self, X: ChoiceSets, y: Any, groups: Any = None) -> Array:
        """ln of the predicted probability of what was seen in each situation, (n,)."""
        X = self._known_sets(X)
        return self.posterior_.log_probability(self._rows(X, groups), chosen(X, y))

    def to_arviz(self, X: Any = None, y: Any = None, raw: bool = False, groups: Any = None) -> Any:
        """The draws as ArviZ InferenceData (DataTree with ArviZ 1.x), as those of `PlackettLuceClassifier`.

        Parameters
        ----------
        X : ChoiceSets, optional
            Situations to predict.
        y : (n,) array or Rankings, optional
            What was seen, for the log-likelihood: ``az.loo`` is over situations. Of rankings it has no κ in it, and no
            mode beside the draws, and there is no group of observed data.
        raw : bool
            Export also draws that are not identified one by one; of random tastes those of persons.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        InferenceData or DataTree
            ``probability`` and ``y`` have alternatives where those of a classifier have classes. Random tastes have
            ``mu``, ``sigma``, ``correlation`` and ``coefficient``, and if raw ``beta`` by person. Of tastes of persons
            fewer draws are kept: with these, or with ``groups``, the others are thinned to the same.
        """
        from plackett.output.arviz import to_arviz

        check_is_fitted(self)
        model, step = self, self.posterior_.person_step if raw or groups is not None else 1
        if step > 1:
            model = copy(self)
            model.posterior_, model.trace_ = self.posterior_.thinned(step), self.trace_[:, ::step]
        return to_arviz(model, X, y, raw, groups=groups)

    def coefficients(self, prob: float = 0.9, errors: str = "classical") -> pd.DataFrame:
        """The table of a paper: coefficients of ``features="linear"`` in the units of the data, not rounded.

        Parameters
        ----------
        prob : float
            Probability that an interval holds, equal tails.
        errors : {"classical", "robust", "person"}
            Standard errors after EM: from the curvature of the log-likelihood; from the sandwich of situations, which
            holds where the model is not true; or from that of persons, ``groups`` of `fit`, whose situations depend on
            each other. With segments "robust" is the sandwich of persons.

        Returns
        -------
        DataFrame
            One row a ``column``; with segments one row a ``segment`` and column, "all" where a coefficient is shared,
            and without ``ess`` and ``rhat``. After EM ``coefficient``, ``std_error``, ``z``, ``p`` of the hypothesis
            that it is 0, ``lower`` and ``upper``. Of draws ``mean``, ``sd``, ``lower``, ``upper``, ``positive``, the
            probability that it is above 0, ``ess`` and ``rhat``. Its `to_latex` gives a tabular.

        Notes
        -----
        A constant is against the alternative without one, and for a person whose columns are all 0; ``income: car`` is
        the product of the person's income with the constant of car.

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
        return coefficients_frame(self.posterior_.coefficients_table(self, check_prob(prob), errors))

    def fit_statistics(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> FitStatistics:
        """How well the model fits: log-likelihoods, ρ², AIC and BIC; of draws LOO and WAIC.

        Parameters
        ----------
        X : ChoiceSets
            Situations, those of the fit say.
        y : (n,) array or Rankings
            What was chosen.
        sample_weight : (n,) array, optional
            How often each situation counts.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        FitStatistics
            ``log_likelihood``, ``null`` (equal chances), ``constants`` (constants alone), ``rho2``, ``rho2_adjusted``,
            ``rho2_constants``, ``parameters``, ``n``; after maximum likelihood ``aic`` and ``bic``; of draws
            ``elpd_loo``, ``se_loo``, ``p_loo`` (with ArviZ), ``elpd_waic`` and ``p_waic``. It prints as a table, and
            has `frame` and `to_latex`.

        Notes
        -----
        AIC and BIC are for the situations of the fit. A learned model has no number of parameters, since its prior
        decides how many are in use.
        """
        sets = self._known_sets(X)
        seen = chosen(sets, y, situation_weights(sample_weight, len(sets)))
        return fit_statistics(self, sets, y, seen, groups)

    def shares(self, X: ChoiceSets, prob: float = 0.9, sample_weight: Any = None, groups: Any = None) -> pd.DataFrame:
        """Simulated market shares: averages of the probabilities over situations.

        Parameters
        ----------
        X : ChoiceSets
            Situations as they are, or as they would be: change attributes or availability and compare.
        prob : float
            Probability that the interval holds, equal tails.
        sample_weight : (n,) array, optional
            How many each situation stands for.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For each ``alternative`` its ``share`` of all choices, ``lower`` and ``upper``; shares add up to 1.
        """
        rows, weight = self._rows(X, groups), situation_weights(sample_weight, len(X))
        return optional("pandas", "shares").DataFrame(market_shares(self, rows, weight, check_prob(prob)))

    def effects(self, X: ChoiceSets, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Average marginal effects on the probabilities of alternatives.

        Parameters
        ----------
        X : ChoiceSets
            Situations to average over. Of more than 400, 400 that are spread evenly are taken.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        DataFrame
            - ``attribute``, and ``of`` which alternative; "person" for persons' columns;
            - ``alternative``, whose probability changes: own effects where it is the same, else cross effects;
            - ``effect``: per unit of the attribute, averaged over situations in which ``of`` is available; of 0/1, the
              difference between 1 and 0; of a text, between each level and the most frequent one, in lines such as
              ``class: first vs second``. Over the alternatives effects add up to 0;
            - ``lower``, ``upper``, and ``positive``, the probability that it is above 0; NaN after EM.
        """
        survey, pandas = self._survey(X, groups), optional("pandas", "effects")
        return pandas.DataFrame(choice_effects.effects(survey, check_prob(prob)))

    def elasticities(self, X: ChoiceSets, attribute: str, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """By how many per cent probabilities change per per cent of an attribute of one alternative.

        Parameters
        ----------
        X : ChoiceSets
            Situations to average over. Of more than 400, 400 that are spread evenly are taken.
        attribute : str
            Which.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        DataFrame
            ``of``, whose attribute changes; ``alternative``, whose probability does; ``elasticity``, ``lower``,
            ``upper``, ``positive``.

        Notes
        -----
        Elasticities of situations are averaged with the probabilities as weights (sample enumeration; Ben-Akiva &
        Lerman 1985, section 6.4): Σ_t x_ta ∂P_tb/∂x_ta / Σ_t P_tb over situations in which both are available. That is
        the elasticity of the expected number of choices of b if x_a changes by one per cent everywhere.
        """
        survey, pandas = self._survey(X, groups), optional("pandas", "elasticities")
        return pandas.DataFrame(choice_effects.elasticities(survey, self._attribute(attribute), check_prob(prob)))

    def willingness_to_pay(
        self, attribute: str, cost: str, X: ChoiceSets | None = None, prob: float = 0.9, groups: Any = None
    ) -> pd.DataFrame:
        """What a unit less of an attribute is worth, in units of the cost.

        Parameters
        ----------
        attribute, cost : str
            Two attributes.
        X : ChoiceSets, optional
            Situations to average over, with the probabilities of the alternatives as weights. None: at most 400
            situations of the fit, spread evenly, which stay in memory with the model. They are not in a model file: of
            a model that was read from one, alternatives with their average attributes, for an average person.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For ``alternative`` "all" and each by itself: ``value``, the ratio ∂ln r/∂attribute over ∂ln r/∂cost of
            averaged marginal utilities, ``lower`` and ``upper``. Of conditional logit it is the ratio of coefficients.
            It is positive where more of either is bad: a unit less of the attribute is worth so many units of the
            cost. Where more of the attribute is good it is negative: −value is what one more is worth.

        Notes
        -----
        The marginal utilities are averaged first, and then their ratio is taken: an average of ratios need not exist,
        where the marginal utility of the cost may be 0. The ratio is taken under every draw; ``value`` is the median,
        or the ratio at the estimate after maximum likelihood. Warnings say if the cost has the other sign in more than
        a twentieth of the draws, if the slope of one of the two is positive for some of what is chosen and negative for
        more than a tenth of it, and if conditional logit of the same data has a ratio of the other sign.
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
        """Where the choices of an alternative go if it is removed.

        Parameters
        ----------
        X : ChoiceSets
            Situations. Only those in which the alternative is available are used, and at most 400 of them, evenly
            spread.
        drop : label
            The alternative.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Who chooses, as in `predict_proba`.

        Returns
        -------
        DataFrame
            For each other alternative: the ``share`` that it gets of what ``drop`` had, ``lower`` and ``upper``, and
            its probability ``before`` and ``after``, averages over the situations. Shares add up to 1.
        """
        survey, labels = self._survey(X, groups), self.alternatives_.tolist()
        if drop not in labels:
            raise ValueError(f"drop must be one of the alternatives {labels}, got {plain(drop)} instead.")
        return optional("pandas", "diversion").DataFrame(
            choice_effects.diversion(survey, labels.index(drop), check_prob(prob))
        )

    def parameters(self, prob: float = 0.9) -> pd.DataFrame:
        """Dissimilarities of nests, between 0 and 1; without rows where there are no nests.

        Parameters
        ----------
        prob : float
            Probability that the interval holds, equal tails.

        Returns
        -------
        DataFrame
            By name of the nest: ``mean``, ``lower`` and ``upper``. The smaller the dissimilarity, the more the
            alternatives of a nest substitute for each other; at 1 the nest makes no difference.
        """
        check_is_fitted(self)
        table = self.posterior_.parameter_table(check_prob(prob))
        return optional("pandas", "parameters").DataFrame(table, index=list(self._parameter_names()))

    def _parameter_names(self) -> tuple[str, ...]:
        return () if self.posterior_.nests is None else self.posterior_.nests.names

    def _no_explanation(self) -> str | None:
        return None if self.posterior_.nests is None else NO_EXPLANATION

    def _lazily(self, predict: Any, X: Any, empty: npt.NDArray[Any], groups: Any) -> Any:
        """Predictions of situations in partitions, made where they lie when they are asked for."""
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
        """The table of one situation, of a person who is not known."""
        if len(choice_sets(X)) != 1:
            raise ValueError(f"expected one situation, got {len(X)} instead. Take one, such as X[0].")
        return EntryTable.of(self._known_sets(X)), np.array([-1])

    def _survey(self, X: ChoiceSets, groups: Any) -> Survey:
        X = self._known_sets(X)
        return Survey(self, EntryTable.of(X), self._known(groups, len(X)))

    def _attribute(self, name: str) -> int:
        if name not in self.attributes_:
            raise ValueError(f"the attributes are {', '.join(map(str, self.attributes_))}; got {plain(name)} instead.")
        return self.attributes_.index(name)

    def _known_sets(self, X: ChoiceSets) -> ChoiceSets:
        """New choice sets with the alternatives and columns of the fit."""
        check_is_fitted(self)
        return choice_sets(X).with_schema(self.schema_)

    def _known(self, groups: Any, n: int) -> Codes:
        """The place of each person among those known; −1 for new ones, and where nobody is named."""
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
        """Situations as the posterior takes them."""
        learned, of = self._learned() or self._linear() or self._tasting(), table.alternative
        Z, group = self.design_.transform(table) if learned else self._log_features(table), self._group(table, person)
        return Entries(Z, group, np.arange(len(of)), table.start, of, len(self.alternatives_), logs=not learned)

    def _group(self, table: EntryTable, person: Codes | None) -> Codes:
        """Whose weights or tastes each entry uses; −1 for a person who is not known."""
        if self._tasting() or self._segmented():
            return np.full(len(table.alternative), -1) if person is None else person[table.situation]
        return groups_of_entries("shared" if self._linear() else self.weights, table, person)

    def _linear(self) -> bool:
        """Whether the utility is linear."""
        return self._has(LinearUtility)

    def _tasting(self) -> bool:
        """Whether tastes differ between persons by a law."""
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
        """ln W (entries, p), comparable within a situation."""
        return log_features(self.design_, self.features_, table)

    def _feature_names(self) -> npt.NDArray[np.object_]:
        names = feature_names(self.features_, self.design_.names_)
        if names is None:
            names = [f"feature{j}" for j in range(self.weights_.shape[1])]
        return np.asarray(names, dtype=object)

    def _labels(self) -> tuple[str, npt.NDArray[Any]]:
        return "weights of", self.group_labels_


def in_partitions(X: Any) -> bool:
    """Whether these are situations that stay where their partitions are."""
    return isinstance(X, PartitionedChoices)


def choice_sets(X: Any) -> ChoiceSets:
    """The same, where they are choice sets."""
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
