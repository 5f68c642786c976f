"""Methods of fitted models with random tastes: population law, persons' tastes, and fit statistics."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.data.choice_outcomes import chosen, coded_persons
from plackett.data.validation import check_prob, plain
from plackett.features.choice_design import EntryTable
from plackett.inference.base import check_count
from plackett.optional import optional
from plackett.output.fit_statistics import FitStatistics
from plackett.output.published import coefficients_frame
from plackett.posterior.base import significant
from plackett.posterior.taste_choices import TasteChoices
from plackett.segmenting import SegmentingChoices
from plackett.tastes.integrated import integrated_values
from plackett.tastes.panel import make_panel
from plackett.tastes.population import Population

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets

DOUBTFUL = 0.05  # share of the population with the opposite sign of the cost from which a warning is given


class TastingModel(SegmentingChoices):
    """A fitted model of choices, which may have random tastes."""

    def population(self, prob: float = 0.9) -> pd.DataFrame:
        """Return the population law of tastes.

        Parameters
        ----------
        prob : float
            Probability that the intervals hold, equal tails.

        Returns
        -------
        DataFrame
            Indexed by ``attribute``, random ones first:

            - ``law``: "normal", "lognormal", "-lognormal" or "fixed";
            - ``mean`` and ``sd`` with ``mean_lower``, ``mean_upper``, ``sd_lower`` and ``sd_upper``: averages and
              intervals of the draws. For a log-normal law they refer to the logarithm, as in papers; for a fixed
              coefficient the mean is the coefficient, and the standard deviation 0;
            - ``median_taste`` and ``mean_taste`` of the coefficient over the population, in the units of the data
              (medians of the draws). Under a normal law both are ``mean``; under a log-normal one they are
              ±e^μ and ±e^(μ + σ²/2);
            - ``positive``: the share of the population with a positive coefficient.

            ``.attrs["correlation"]`` is a data frame with the average correlations of the random coefficients (of
            logarithms, where they are log-normal), and ``.attrs["base_levels"]`` has the base level of each text.
        """
        pandas, names, found = optional("pandas", "population"), self.design_names(), self._law()
        columns, correlation = found.population(names, check_prob(prob))
        frame = coefficients_frame(columns, self.design_.known_base_levels(), "attribute")
        frame.attrs["correlation"] = pandas.DataFrame(correlation, names[found.random], names[found.random])
        return frame

    def tastes(self, persons: Any = None, prob: float = 0.9) -> pd.DataFrame:
        """Return the tastes of the fitted persons: their coefficients, or part-worths.

        Parameters
        ----------
        persons : list of labels, optional
            Labels of persons; None: all. If the fit had no ``groups``, each situation is a person, with its label.
        prob : float
            Probability that an interval holds, equal tails.

        Returns
        -------
        DataFrame
            Indexed by (``person``, ``attribute``): ``mean``, ``lower`` and ``upper`` of each random coefficient in the
            units of the data. Averages shrink towards the population, more so for persons with few choices.
        """
        found, labels = self._law(), self.group_labels_
        some = np.arange(len(labels)) if persons is None else self._places(persons)
        mean, lower, upper = found.part_worths(some, check_prob(prob))
        pandas, names = optional("pandas", "tastes"), self.design_names()[found.random]
        index = pandas.MultiIndex.from_product([labels[some], names], names=["person", "attribute"])
        return pandas.DataFrame({"mean": mean.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}, index=index)

    def willingness_to_pay(
        self, attribute: str, cost: str, X: ChoiceSets | None = None, prob: float = 0.9, groups: Any = None
    ) -> pd.DataFrame:
        """Return the value of a unit less of an attribute, in units of the cost; for random tastes, by population.

        Parameters
        ----------
        attribute, cost : str
            Two attributes.
        X : ChoiceSets, optional
            Situations to average over, weighted by the probabilities of the alternatives. None: at most 400
            situations of the fit, evenly spaced, which stay in memory with the model. Model files do not contain
            them: for a loaded model, alternatives with their average attributes, for an average person. Random tastes
            have the same ratio in all situations, and so has a segment.
        prob : float
            Probability that the interval holds, equal tails.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`; not with random tastes, for which see `tastes`.

        Returns
        -------
        DataFrame
            For ``alternative`` "all" and each alternative: ``value``, the ratio ∂ln r/∂attribute over ∂ln r/∂cost of
            averaged marginal utilities, ``lower`` and ``upper``. For conditional logit it is the ratio of coefficients.
            It is positive if more of either is bad: the value of a unit less of the attribute, in units of the cost.
            It is negative if more of the attribute is good: −value is the value of one more.

            For random tastes one row: ``value`` is the ratio of the median person, with its interval;
            ``population_lower`` and ``population_upper`` contain the ratios of that share of the population. For
            segments one row each, with ``segment`` instead of ``alternative``.

        Notes
        -----
        The ratio is that of averaged marginal utilities: an average of ratios need not exist, as the marginal utility
        of the cost may be 0. It is computed under every draw; ``value`` is the median, or the ratio at the estimate
        after maximum likelihood. Warnings are given if the cost has the opposite sign in more than a twentieth of the
        draws, if the slope of one of the two changes sign for more than a tenth of the choices, and if conditional
        logit of the same data has a ratio of the opposite sign. For random tastes the ratios are those of single
        persons, and a warning is given if more than a twentieth of the population has the opposite sign of the cost:
        a log-normal law has one sign.
        """
        check_is_fitted(self)
        if not self._tasting():
            return super().willingness_to_pay(attribute, cost, X, prob, groups)
        if groups is not None:
            raise ValueError("groups would be ignored: willingness to pay is that of the population; see tastes().")
        prob, names = check_prob(prob), self.design_names()
        places = [self._column_of(name) for name in (attribute, cost)]
        tastes = self._law().tastes_of_population()[..., places]
        against = (np.sign(tastes[..., 1]) != np.sign(np.median(tastes[..., 1]))).mean()
        if against > DOUBTFUL:
            warnings.warn(
                f"{100 * against:.0f} % of the population have the opposite sign of {names[places[1]]!r}: their "
                "ratios have another meaning. The median and the quantiles are valid, a mean would not exist; a "
                "log-normal law, "
                f"Tastes(law={{{cost!r}: '-lognormal'}}), has one sign.",
                UserWarning,
                stacklevel=2,
            )
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = tastes[..., 0] / tastes[..., 1]
        tail, middle = (1 - prob) / 2, np.median(ratio, axis=1)
        numbers = (*np.quantile(middle, [0.5, tail, 1 - tail]), *np.quantile(ratio, [tail, 1 - tail]))
        names_of = ("value", "lower", "upper", "population_lower", "population_upper")
        columns = {name: significant(np.array([x])) for name, x in zip(names_of, numbers, strict=True)}
        return optional("pandas", "willingness_to_pay").DataFrame({"alternative": ["all"], **columns})

    def fit_statistics(self, X: ChoiceSets, y: Any, sample_weight: Any = None, groups: Any = None) -> FitStatistics:
        """Return fit statistics: log-likelihoods, ρ², AIC and BIC; for draws LOO and WAIC.

        Parameters
        ----------
        X : ChoiceSets
            Situations, for instance those of the fit.
        y : (n,) array or Rankings
            Choices or rankings.
        sample_weight : (n,) array, optional
            Weight of each situation; not with random tastes.
        groups : (n,) array, optional
            Person of each situation, as in `predict_proba`.

        Returns
        -------
        FitStatistics
            ``log_likelihood``, ``null`` (equal chances), ``constants`` (constants alone), ``rho2``, ``rho2_adjusted``,
            ``rho2_constants``, ``parameters``, ``n``; after maximum likelihood ``aic`` and ``bic``; for draws
            ``elpd_loo``, ``se_loo``, ``p_loo`` (with ArviZ), ``elpd_waic`` and ``p_waic``. It prints as a table, and
            has `frame` and `to_latex`. For random tastes the log-likelihood is `integrated_log_likelihood`; with
            segments it is that of whole persons, for which give the ``groups`` of the fit, and LOO is for situations
            without groups.

        Notes
        -----
        AIC and BIC require the situations of the fit. A learned model has no number of parameters, since its prior
        determines how many are active.
        """
        found = super().fit_statistics(X, y, sample_weight, groups)
        if not self._tasting():
            return found
        if sample_weight is not None:
            raise ValueError("sample_weight would be ignored: with random tastes every situation counts once.")
        return replace(found, log_likelihood=self.integrated_log_likelihood(X, y, groups))

    def integrated_log_likelihood(self, X: ChoiceSets, y: Any, groups: Any = None, points: int = 4096) -> float:
        """Return the log-likelihood of random tastes integrated over the population, at the average law of the draws.

        Parameters
        ----------
        X, y
            Situations and choices, as in `fit`.
        groups : (n,) array, optional
            Person of each situation, whose choices share tastes; None: a separate person for each situation.
        points : int
            Quasi-random points of the population; a power of two.

        Returns
        -------
        float
            Σ_i ln ∫ Π_t Pr(y_it | b) N(b; μ, Σ) db, with averages of the means, deviations, correlations and fixed
            coefficients for μ, Σ and the others. It compares with the simulated log-likelihood of other programs at
            their maximum, which it cannot exceed by more than simulation error.
        """
        found = self._law()
        check_count("points", points)
        X = self._known_sets(X)
        seen = chosen(X, y)
        _, person = coded_persons(groups, len(X))
        Z = self.design_.in_units(EntryTable.of(X), found.to_standard)
        panel = make_panel(Z, seen.outcomes, seen.entry, person, np.ones(Z.shape[1]))
        return float(integrated_values(panel, found.law, Population(*found.central()), points).sum())

    def design_names(self) -> npt.NDArray[np.object_]:
        """Return the names of the columns with coefficients."""
        names: npt.NDArray[np.object_] = self.design_.names_
        return names

    def _law(self) -> TasteChoices:
        check_is_fitted(self)
        if not isinstance(self.posterior_, TasteChoices):
            raise ValueError(
                "only random tastes have a law over the population; fit with features=Tastes(random=[...])."
            )
        return self.posterior_

    def _places(self, persons: Any) -> npt.NDArray[np.intp]:
        """Return the positions of labels among the fitted persons."""
        place = {label: k for k, label in enumerate(self.group_labels_.tolist())}
        wanted = np.atleast_1d(np.asarray(persons)).tolist()
        unknown = [label for label in wanted if label not in place]
        if unknown:
            raise ValueError(f"{plain(unknown[0])} is not among the {len(place)} persons of the fit.")
        return np.array([place[label] for label in wanted], dtype=np.intp)
