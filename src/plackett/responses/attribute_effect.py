"""Effects of attributes of a comparison: the log-odds of the first item gain x·β.

The effect wraps the response that defines ties, with its order effect if there is one. x is the difference of the
attributes of both items; the rate of the first is multiplied by exp(x·β/2), that of the second by exp(−x·β/2), so that
their exchange has no effect, also where the scale of the rates is known. Each coefficient β is a parameter with prior
N(0, 10²) per root mean square of its attribute.
"""

from __future__ import annotations

from dataclasses import dataclass

from plackett.responses.base import Outcomes, Parameter, Response, parameters_of


def coefficient(name: str, unit: float = 1.0) -> Parameter:
    """Return the coefficient of an attribute with this root mean square."""
    return Parameter(name, lower=-float("inf"), start=0.0, unit=unit)


@dataclass(frozen=True)
class AttributeEffect:
    """Response of pairs whose comparisons have attributes."""

    response: Response
    coefficients: tuple[Parameter, ...]

    @property
    def absolute(self) -> bool:
        """`absolute` of the wrapped response."""
        return self.response.absolute

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """Parameters of the wrapped response, followed by the coefficients."""
        return *parameters_of(self.response), *self.coefficients

    def check(self, outcomes: Outcomes) -> None:
        """Require pairs that the wrapped response allows."""
        self.response.check(outcomes)
