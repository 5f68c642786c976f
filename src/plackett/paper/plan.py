"""Size of the experiment: complete, or a preview with fewer replications and draws."""

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
    missing: Mapping[str, str] = field(default_factory=dict)  # missing data sets, with the reason

    def sets(self, *names: str) -> list[str]:
        """Return the named data sets that are requested and available, in the given order."""
        return [name for name in names if name in self.datasets and name not in self.missing]

    def pick(self, full: T, quick: T) -> T:
        """Return one of two settings, depending on `quick`."""
        return quick if self.quick else full

    @property
    def replications(self) -> int:
        """Number of random splits of the data."""
        return 2 if self.quick else REPLICATIONS

    @property
    def settings(self) -> dict[str, dict[str, int]]:
        """Settings of the methods by kind; the full run makes 5,000 draws in all, as in the paper."""
        return {
            "sampler": self.pick({"draws": 1250, "tune": 1250, "chains": 4}, {"draws": 200, "tune": 200, "chains": 2}),
            "forest": {"trees": self.pick(500, 100)},
        }


def chains(size: Mapping[str, int]) -> str:
    """Format settings of a sampler."""
    number = "one chain" if size["chains"] == 1 else f"{size['chains']} chains"
    return f"{number} of {size['tune']:,} + {size['draws']:,} iterations"
