"""Size of the experiment: all of it, or a quick look with fewer replications and draws."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from plackett.paper.values import REPLICATIONS

T = TypeVar("T")
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
    """Requested data sets and size of the experiment, and the data sets that are missing."""

    quick: bool = False
    datasets: tuple[str, ...] = tuple(NAMES)
    missing: Mapping[str, str] = field(default_factory=dict)  # data sets that are not at hand, and why

    def sets(self, *names: str) -> list[str]:
        """Those of the named data sets that were asked for and are at hand, in the order given."""
        return [name for name in names if name in self.datasets and name not in self.missing]

    def pick(self, full: T, quick: T) -> T:
        """One of two settings, by `quick`."""
        return quick if self.quick else full

    @property
    def replications(self) -> int:
        """Random splits of the data."""
        return 2 if self.quick else REPLICATIONS

    @property
    def settings(self) -> dict[str, dict[str, int]]:
        """Settings of the methods by kind; the full run keeps 5,000 draws in all, as the paper does."""
        return {
            "sampler": self.pick({"draws": 1250, "tune": 1250, "chains": 4}, {"draws": 200, "tune": 200, "chains": 2}),
            "forest": {"trees": self.pick(500, 100)},
        }


def chains(size: Mapping[str, int]) -> str:
    """Settings of a sampler as text."""
    number = "one chain" if size["chains"] == 1 else f"{size['chains']} chains"
    return f"{number} of {size['tune']:,} + {size['draws']:,} iterations"
