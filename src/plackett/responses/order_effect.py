"""An order effect of pairs: the rate of the item shown first, or at home, times η.

It wraps the response that says what a tie means. η > 0 is a parameter with prior Exp(1) = Gam(1, 1), and η = 1 is no
effect. An entry uses row 1 of W if its item was shown first, and else row 0. With Davidson's ties the third entrant has
the rate ν√(η r_i r_j): where all pairs have an order, 1/η and ν/√η are the parameters of Davidson & Beaver (1977).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plackett.responses.base import Outcomes, Parameter, Response, parameters_of

SHOWN_FIRST = 1  # the row of W of the item shown first
ETA = Parameter("eta", lower=0.0, start=1.0)


@dataclass(frozen=True)
class OrderEffect:
    """The response of pairs of which one item may have been shown first."""

    response: Response

    @property
    def absolute(self) -> bool:
        """As of the response itself."""
        return self.response.absolute

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Those of the response, and η last."""
        return *parameters_of(self.response), ETA

    def check(self, outcomes: Outcomes) -> None:
        """Every outcome is that of a pair."""
        if (np.diff(outcomes.start) > 2).any():
            raise ValueError(
                f"order_effect=True is for pairs, and one of these rankings has {np.diff(outcomes.start).max()} items."
            )
        self.response.check(outcomes)
