"""Order effect of pairs: the rate of the item shown first, or at home, is multiplied by η.

The effect wraps the response that defines ties. η > 0 is a parameter with prior Exp(1) = Gam(1, 1), and η = 1 is no
effect. An entry uses row 1 of W if its item was shown first, and row 0 otherwise. With Davidson's ties the third
entrant has the rate ν√(η r_i r_j): where all pairs have an order, 1/η and ν/√η are the parameters of Davidson & Beaver
(1977).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from plackett.responses.base import Outcomes, Parameter, Response, parameters_of

SHOWN_FIRST = 1  # the row of W of the item shown first
ETA = Parameter("eta", lower=0.0, start=1.0)


@dataclass(frozen=True)
class OrderEffect:
    """Response of pairs in which one item may have been shown first."""

    response: Response

    @property
    def absolute(self) -> bool:
        """`absolute` of the wrapped response."""
        return self.response.absolute

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the wrapped response, followed by η."""
        return *parameters_of(self.response), ETA

    def check(self, outcomes: Outcomes) -> None:
        """Require pairs that the wrapped response allows."""
        if (np.diff(outcomes.start) > 2).any():
            raise ValueError(
                f"order_effect=True is for pairs, and one of these rankings has {np.diff(outcomes.start).max()} items."
            )
        self.response.check(outcomes)
