"""What is asked of a fitted model of random tastes: the law over the population, persons' tastes, and fit to data."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.choosing import ChoosingModel
from plackett.data.choice_outcomes import chosen, coded_persons
from plackett.data.validation import check_prob, plain
from plackett.features.choice_design import EntryTable
from plackett.inference.base import check_count
from plackett.model.race import Array
from plackett.optional import optional
from plackett.posterior.taste_choices import TasteChoices
from plackett.tastes.integrated import integrated_values
from plackett.tastes.panel import make_panel
from plackett.tastes.population import Population

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choice_sets import ChoiceSets

DOUBTFUL = 0.05  # of the population with another sign of the cost, from which a ratio is warned of


class TastingModel(ChoosingModel):
    """A fitted model of choices, which may have random tastes."""

    def population(self, prob: float = 0.9) -> pd.DataFrame:
        """The law of tastes over the population.

        Parameters
        ----------
        prob : float
            Probability that the intervals hold, equal tails.

        Returns
        -------
        DataFrame
            Indexed by ``attribute``, first those that are random:

            - ``law``: "normal", "lognormal", "-lognormal" or "fixed";
            - ``mean`` and ``sd`` with ``mean_lower``, ``mean_upper``, ``sd_lower`` and ``sd_upper``: averages and
              intervals of the draws. Of a log-normal law they are those of the logarithm, as papers print them; of a
              fixed coefficient the mean is the coefficient, and the deviation 0;
            - ``median_taste`` and ``mean_taste``: of the coefficient itself over the population, in the units of the
              data (medians of the draws). Under a normal law both are ``mean``; under a log-normal one they are
              ±e^μ and ±e^(μ + σ²/2);
            - ``positive``: the share of the population with a positive coefficient.

            ``.attrs["correlation"]`` is a data frame with the average correlations of the random coefficients (of
            logarithms, where they are log-normal).
        """
        pandas, names, found = optional("pandas", "population"), self.design_names(), self._law()
        columns, correlation = found.population(names, check_prob(prob))
        frame = pandas.DataFrame(columns).set_index("attribute")
        frame.attrs["correlation"] = pandas.DataFrame(correlation, names[found.random], names[found.random])
        return frame

    def tastes(self, persons: Any = None, prob: float = 0.9) -> pd.DataFrame:
        """The tastes of the persons of the fit: their coefficients, or part-worths.

        Parameters
        ----------
        persons : list of labels, optional
            Whose; None: all. Where the fit had no ``groups``, persons are situations, under the labels of these.
        prob : float
            Probability that an interval holds, equal tails.

        Returns
        -------
        DataFrame
            Indexed by (``person``, ``attribute``): ``mean``, ``lower`` and ``upper`` of each random coefficient in the
            units of the data. Averages shrink towards the population, the more the less a person has chosen.
        """
        found, labels = self._law(), self.group_labels_
        some = np.arange(len(labels)) if persons is None else self._places(persons)
        mean, lower, upper = found.part_worths(some, check_prob(prob))
        pandas, names = optional("pandas", "tastes"), self.design_names()[found.random]
        index = pandas.MultiIndex.from_product([labels[some], names], names=["person", "attribute"])
        return pandas.DataFrame({"mean": mean.ravel(), "lower": lower.ravel(), "upper": upper.ravel()}, index=index)

    def integrated_log_likelihood(self, X: ChoiceSets, y: Any, groups: Any = None, points: int = 4096) -> float:
        """Log-likelihood of random tastes integrated over the population, at the average of the draws of the law.

        Parameters
        ----------
        X, y
            Situations, and what was chosen in each, as in `fit`.
        groups : (n,) array, optional
            The person of each situation, whose choices share tastes; None: each situation has a person of its own.
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
        Z = self.design_.transform(EntryTable.of(X)) @ found.to_standard
        panel = make_panel(Z, seen.outcomes, seen.entry, person, np.ones(Z.shape[1]))
        return float(integrated_values(panel, found.law, Population(*found.central()), points).sum())

    def design_names(self) -> npt.NDArray[np.object_]:
        """Names of the columns that have coefficients."""
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
        """Places of labels among the persons of the fit."""
        place = {label: k for k, label in enumerate(self.group_labels_.tolist())}
        wanted = np.atleast_1d(np.asarray(persons)).tolist()
        unknown = [label for label in wanted if label not in place]
        if unknown:
            raise ValueError(f"{plain(unknown[0])} is not among the {len(place)} persons of the fit.")
        return np.array([place[label] for label in wanted], dtype=np.intp)


def ratios(tastes: Array, f: int, cost: int) -> Array:
    """Ratios (S, persons) of two coefficients of persons of the population (S, persons, p)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found: Array = tastes[..., f] / tastes[..., cost]
    return found
