"""Settings of learned directions, with the prior and the lengths of runs that they imply."""

from __future__ import annotations

import numpy as np
from sklearn.base import BaseEstimator

from plackett.capabilities import Ignored
from plackett.data.validation import plain, positive
from plackett.directions.prior import Prior
from plackett.features.choice_design import BENDS
from plackett.inference.base import check_count

SCALE_CENTRE, SCALE_SPREAD = (-1.0, -1.0), (0.5, 1.0)  # means and standard deviations of ln σ_0 and ln σ_1
FEW_COLUMNS = 20  # number of columns up to which the prior of σ is constant
OWNED, ALL_OWNED = 4, 128  # default number of components per class, and the limit over all classes
OWNED_BY_FEW = 2  # default number of components per class if there are too few rows to hold out
LENGTH = {"draws": 150, "tune": 150, "max_draws": 1000}  # default lengths of a chain
WORK, FEWEST_DRAWS = 20_000_000, 300  # limit of draws × observations per chain, and a number of draws always allowed
LEAPFROGS = 96
WIDE = {"max_draws": 500, "leapfrogs": 24}  # defaults if covariates outnumber rows, where steps are expensive
SHAPE = 0.02  # value for shape="learn": learning it is worse for few rows


def lengths(wide: bool, n_seen: float) -> dict[str, int]:
    """Return default lengths of a chain; `wide` if covariates outnumber the observations."""
    most = WIDE["max_draws"] if wide else LENGTH["max_draws"]
    return LENGTH | {"max_draws": int(np.clip(WORK / n_seen, FEWEST_DRAWS, most))}


def shrinkage(n_columns: int) -> float:
    """Return the factor of σ that gives x·β the prior variance of FEW_COLUMNS columns if there are more."""
    return float(np.sqrt(FEW_COLUMNS / max(n_columns, FEW_COLUMNS)))


class LearnedDirections(BaseEstimator):
    """Settings of ``features="learned"``: W_j(x) = exp(x·β_j), Pr(k|x) = Σ_j softmax_j(x·β_j + ln Λ_j) θ_jk.

    Parameters
    ----------
    components : int, optional
        Number of components per class. None: 4; fewer with more than 32 classes, 128 in all or one each; 2 if rows are
        too few to hold out. For rankings, number per item, None: 2, or fewer; for choices, total number, None: 6.
    own_shape : float
        Prior shape of the weight of a component for the class that owns it; smaller values activate fewer components.
    covariate_spread : float
        Gibbs: standard deviation of ln s_f, the scale of each covariate; larger values let covariates differ more.
    leapfrogs : int, optional
        Gibbs: longest trajectory in leapfrog steps. None: 96, or 24 if covariates outnumber rows.
    bend : {"auto", "none", "hinges", "scores"}
        Choices: non-linearity of the log-rate in an attribute. "none": linear; "hinges": changes of slope at the
        quartiles; "scores": linear in normal scores. "auto": held-out situations decide.

    Examples
    --------
    >>> from plackett import PlackettLuceClassifier
    >>> from plackett.directions import LearnedDirections
    >>> PlackettLuceClassifier(features=LearnedDirections(components=2))
    PlackettLuceClassifier(features=LearnedDirections(components=2))
    """

    sampler_only = Ignored(
        ("covariate_spread", "leapfrogs"), "it is for the chains of inference='gibbs'. Leave it out."
    )
    choices_only = Ignored(("bend",), "it is for attributes of alternatives, in PlackettLuceChooser. Leave it out.")

    def __init__(
        self,
        components: int | None = None,
        own_shape: float = 0.05,
        covariate_spread: float = 0.8,
        leapfrogs: int | None = None,
        bend: str = "auto",
    ):
        self.components = components
        self.own_shape = own_shape
        self.covariate_spread = covariate_spread
        self.leapfrogs = leapfrogs
        self.bend = bend

    def prior(self, n_classes: int, n_columns: int, shape: float, components: int | None = None) -> Prior:
        """Return the prior for this number of classes and columns.

        `shape` is the shape of a weight for a class that does not own the component.
        """
        owner = np.repeat(np.arange(n_classes), components or self.owned(n_classes))
        shapes = np.full((n_classes, len(owner)), shape)
        shapes[owner, np.arange(len(owner))] = self.own_shape
        return Prior(
            owner,
            shapes,
            float(self.covariate_spread),
            np.log(shrinkage(n_columns)) + SCALE_CENTRE,
            np.array(SCALE_SPREAD),
        )

    def owned(self, n_classes: int, few: bool = False) -> int:
        """Return the number of components per class; `few` if there are too few rows to hold out."""
        usual = OWNED_BY_FEW if few else OWNED
        return int(np.clip(ALL_OWNED // n_classes, 1, usual)) if self.components is None else self.components

    def longest(self, wide: bool) -> int:
        """Return the leapfrog steps of the longest trajectory."""
        return self.leapfrogs or (WIDE["leapfrogs"] if wide else LEAPFROGS)

    def check(self) -> None:
        """Raise for invalid values."""
        if self.components is not None:
            check_count("LearnedDirections(components)", self.components)
        if self.leapfrogs is not None:
            check_count("LearnedDirections(leapfrogs)", self.leapfrogs)
        positive("LearnedDirections(own_shape)", self.own_shape)
        positive("LearnedDirections(covariate_spread)", self.covariate_spread)
        self.bends()

    def bends(self) -> tuple[str, ...]:
        """Return the bends of attributes to try, the simplest first."""
        if self.bend == "auto":
            return BENDS
        if self.bend not in BENDS:
            named = ["auto", *BENDS]
            raise ValueError(f"LearnedDirections(bend) must be one of {named}, got {plain(self.bend)} instead.")
        return (self.bend,)
