"""How much is computed: the whole experiment, or a quick look with fewer replications and draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

NAMES = {
    "lenses": "Lenses",
    "wine": "Wine",
    "iris": "Iris",
    "heart": "Heart",
    "german": "German",
    "pima": "Pima",
    "colon": "Colon",
    "sushi": "Sushi",
}


@dataclass(frozen=True)
class Plan:
    """What was asked for, and the data sets that are at hand for it."""

    quick: bool = False
    datasets: tuple[str, ...] = tuple(NAMES)
    missing: Mapping[str, str] = field(default_factory=dict)  # data sets that are not at hand, and why

    def sets(self, *names: str) -> list[str]:
        """Those of the named data sets that were asked for and are at hand, in the order given."""
        return [name for name in names if name in self.datasets and name not in self.missing]

    def pick(self, full: Any, quick: Any) -> Any:
        """One of two settings."""
        return quick if self.quick else full

    @property
    def settings(self) -> dict[str, dict[str, int]]:
        """Settings of the methods by kind; the full run keeps 5,000 draws in all, as the paper does."""
        return {
            "sampler": self.pick({"draws": 1250, "tune": 1250, "chains": 4}, {"draws": 200, "tune": 200, "chains": 2}),
            "forest": {"trees": self.pick(500, 100)},
        }
