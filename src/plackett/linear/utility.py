"""Settings of ``features="linear"``."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from plackett.capabilities import Ignored
from plackett.data.validation import check_bool, plain, positive
from plackett.inference import EM, Gibbs

SPREAD = 10.0  # of the prior of coefficients per standard deviation of their columns, where draws are made
LENGTH = {"draws": 500, "tune": 150, "max_draws": 4000}  # of a chain, where Gibbs leaves them open
CLIMB = "it is a setting of EM for fixed features, and the likelihood of features='linear' is climbed by Newton steps."
MOVES = "the posterior of features='linear' has a single mode, so there are no moves between modes."


class LinearUtility(BaseEstimator):
    """Settings of ``features="linear"``: ln r = z·β, conditional logit, exploded for rankings.

    The columns z are constants of all alternatives but one, the attributes (with ``weights="alternative"`` those of
    each alternative by themselves) and the person's columns by alternative. Of a text column they have indicators of
    all levels but the first, the base level. `EM` maximises the likelihood, `Gibbs` draws from the posterior under
    independent normal priors.

    Parameters
    ----------
    base : label, optional
        The alternative without a constant, which the others are compared with. None: the one that is available most
        often.
    constants : bool
        Whether alternatives have constants, and persons' columns products with them. False suits alternatives whose
        labels mean nothing, such as the first and the second offer.
    spread : float, optional
        Standard deviation of the normal prior of every coefficient, per standard deviation of its column. None: 10
        with `Gibbs`, next to nothing; no prior with `EM`. A number makes `EM` find the mode of the posterior.

    Examples
    --------
    >>> from plackett import PlackettLuceChooser
    >>> from plackett.linear import LinearUtility
    >>> PlackettLuceChooser("em", features=LinearUtility(base="bus"))
    PlackettLuceChooser(features=LinearUtility(base='bus'), inference='em')
    """

    unread_by: ClassVar[dict[str, Ignored]] = {  # settings that nothing reads, by the inference
        "EM": Ignored(("tol", "accelerate", "shapes", "cv"), f"{CLIMB} Leave it out."),
        "Gibbs": Ignored(("moves", "shape_prior", "move_budget"), f"{MOVES} Leave it out."),
    }
    unread = Ignored(("shape", "rate", "prior"), "coefficients of features='linear' have no Gamma prior. Leave it out.")

    def __init__(self, base: Any = None, constants: bool = True, spread: float | None = None):
        self.base = base
        self.constants = constants
        self.spread = spread

    def check(self, n_traits: int) -> None:
        """Raise for invalid values, or useless columns of the person."""
        check_bool("LinearUtility(constants)", self.constants)
        if self.spread is not None:
            positive("LinearUtility(spread)", self.spread)
        if self.constants:
            return
        if self.base is not None:
            raise ValueError(
                f"LinearUtility(base={plain(self.base)}) would be ignored: with constants=False no alternative has a "
                "constant. Leave one of the two out."
            )
        if n_traits:
            raise ValueError(
                "with LinearUtility(constants=False) the person's columns would be ignored: what is the same for all "
                "alternatives cancels, and they enter by their products with constants. Leave person=[...] out of the "
                "choice sets, or constants=False."
            )

    def precision(self, samples: bool) -> float:
        """Return the precision of a standardised coefficient's prior: 1/spread², 0 for maximum likelihood."""
        spread = SPREAD if self.spread is None and samples else self.spread
        return 0.0 if spread is None else float(spread) ** -2


def iterations(inference: EM | Gibbs) -> int:
    """Return the maximum number of iterations to the mode, where chains start as well."""
    em = inference if inference.maximises else EM()
    em._check()
    return int(em.max_iter)
