"""What posteriors of learned directions share: the words of a mode alone, and why components are not compared."""

from __future__ import annotations

from typing import Any, ClassVar

from plackett.posterior.base import NO_CHAINS

NAMELESS = "the components of learned directions have no identity from draw to draw"


class ModeAlone:
    """One estimate: one chain of one draw."""

    no_chains: ClassVar[str | None] = NO_CHAINS
    no_interval: ClassVar[str | None] = (
        "EM gives one estimate and no uncertainty, so there is no interval. Use inference='gibbs'."
    )

    def verdict(self, model: Any) -> tuple[bool | None, str]:
        """There is nothing to judge it by."""
        return None, "one estimate without uncertainty"
