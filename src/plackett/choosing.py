"""What analysts ask of a fitted chooser: effects, elasticities, willingness to pay and diversion, with intervals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.validation import check_is_fitted

from plackett.data.validation import check_prob, plain
from plackett.estimator import pandas_for
from plackett.features.choices import ChoiceDesign, EntryTable
from plackett.posterior.choices import Codes
from plackett.race_model import RaceModel

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.choices import ChoiceSets


class ChoosingModel(RaceModel):
    """A model of choices, which gives `_known_sets` and `_known`."""

    alternatives_: npt.NDArray[Any]
    attributes_: list[Any]
    design_: ChoiceDesign

    def _known_sets(self, X: ChoiceSets) -> ChoiceSets:
        """New choice sets with the alternatives and columns of the fit."""
        raise NotImplementedError

    def _known(self, groups: Any, n: int) -> Codes:
        """The place of each person among those known; −1 for new ones, and where nobody is named."""
        raise NotImplementedError

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
        from plackett.output.choices import effects

        survey, pandas = self._survey(X, groups), pandas_for("effects")
        return pandas.DataFrame(effects(survey, check_prob(prob)))

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
        from plackett.output.choices import elasticities

        survey, pandas = self._survey(X, groups), pandas_for("elasticities")
        return pandas.DataFrame(elasticities(survey, self._attribute(attribute), check_prob(prob)))

    def willingness_to_pay(
        self, attribute: str, cost: str, X: ChoiceSets | None = None, prob: float = 0.9, groups: Any = None
    ) -> pd.DataFrame:
        """What a unit less of an attribute is worth, in units of the cost.

        Parameters
        ----------
        attribute, cost : str
            Two attributes.
        X : ChoiceSets, optional
            Situations to average over, with the probabilities of the alternatives as weights. None: alternatives with
            their average attributes in the fit, for an average person.
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
        The ratio is taken under every draw; ``value`` is the median. An average need not exist, where the marginal
        utility of the cost may be 0. If it has the other sign in more than a twentieth of the draws, a warning says so.
        """
        from plackett.output.choices import Survey, willingness_to_pay

        check_is_fitted(self)
        f, c, prob = self._attribute(attribute), self._attribute(cost), check_prob(prob)
        weight, pandas = None, pandas_for("willingness_to_pay")
        if X is None:
            survey, weight = Survey(self, self.design_.average(), np.array([-1])), self.design_.shares_[None]
        else:
            survey = self._survey(X, groups)
        return pandas.DataFrame(willingness_to_pay(survey, f, c, weight, prob))

    def diversion(self, X: ChoiceSets, drop: Any, prob: float = 0.9, groups: Any = None) -> pd.DataFrame:
        """Where the choices of an alternative go if it is not there.

        Parameters
        ----------
        X : ChoiceSets
            Situations; those count in which it is available. Of more than 400, 400 that are spread evenly are taken.
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
        from plackett.output.choices import diversion

        survey, labels = self._survey(X, groups), self.alternatives_.tolist()
        if drop not in labels:
            raise ValueError(f"drop must be one of the alternatives {labels}, got {plain(drop)} instead.")
        return pandas_for("diversion").DataFrame(diversion(survey, labels.index(drop), check_prob(prob)))

    def _survey(self, X: ChoiceSets, groups: Any) -> Any:
        from plackett.output.choices import Survey

        X = self._known_sets(X)
        return Survey(self, EntryTable.of(X), self._known(groups, len(X)))

    def _attribute(self, name: str) -> int:
        if name not in self.attributes_:
            raise ValueError(f"the attributes are {', '.join(map(str, self.attributes_))}; got {plain(name)} instead.")
        return self.attributes_.index(name)
