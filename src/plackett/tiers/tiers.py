"""Settings of tiers."""

from __future__ import annotations

from typing import Any

from sklearn.base import BaseEstimator

from plackett.data.validation import is_bool, number_or_learn, plain, positive

USUAL = (1.0, 1.0)  # shape and rate of the prior of α


class Tiers(BaseEstimator):
    """Settings of tiers: groups of items of equal worth, λ_k ~ G with G ~ DP(α, Gam(a, b)).

    Parameters
    ----------
    concentration : float or "learn"
        α of the Dirichlet process. The expected number of tiers of K items before any data is Σ_{k<K} α/(α + k).
        "learn": drawn with the tiers.
    prior : (float, float)
        Shape and rate of the Gamma prior of α, for ``concentration="learn"``.

    Examples
    --------
    >>> from plackett import PlackettLuceRanker, Tiers
    >>> PlackettLuceRanker(tiers=Tiers(concentration=2.0))
    PlackettLuceRanker(tiers=Tiers(concentration=2.0))
    """

    def __init__(self, concentration: float | str = "learn", prior: tuple[float, float] = USUAL):
        self.concentration = concentration
        self.prior = prior

    def check(self) -> None:
        """Raise for impossible values, and for a prior that would be ignored."""
        number_or_learn("Tiers(concentration)", self.concentration)
        if not isinstance(self.prior, (tuple, list)) or len(self.prior) != 2:
            raise ValueError(f"Tiers(prior) must be (shape, rate) of a Gamma law, got {plain(self.prior)} instead.")
        for value in self.prior:
            positive("Tiers(prior)", value)
        if self.concentration != "learn" and tuple(self.prior) != USUAL:
            raise ValueError(
                f"Tiers(prior={self.prior!r}) would be ignored: it is for concentration='learn', and "
                f"concentration={self.concentration!r} is given. Leave one of the two out."
            )


def as_tiers(value: Any) -> Tiers | None:
    """Return checked settings from what a user may pass; None without tiers."""
    if is_bool(value):
        return Tiers() if value else None
    if not isinstance(value, Tiers):
        raise ValueError(f"tiers must be True, False or plackett.Tiers(...), got {plain(value)} instead.")
    value.check()
    return value
