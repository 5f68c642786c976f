"""Responses: what is observed of a race (a class, choice or ranking, with or without ties). They never see a feature.

A response takes the rates of the entries of a situation and its outcome, and gives V = ln Pr(outcome | rates), the
arrivals n and the time at risk s. All inferences follow from these, since the complete likelihood of every response
here is Π r^n exp(−r s) in the rates (as (6) is), and so r s = n − ∂V/∂ln r for expectations.
"""

from collections.abc import Callable

from plackett.responses.base import Outcomes, Response
from plackett.responses.choice import Choice
from plackett.responses.davidson import DavidsonTies
from plackett.responses.photo_finish import PhotoFinish
from plackett.responses.race_ties import RaceTies
from plackett.responses.ranking import Ranking
from plackett.responses.unknown_order import UnknownOrder

__all__ = [
    "RESPONSES",
    "Choice",
    "DavidsonTies",
    "Outcomes",
    "PhotoFinish",
    "RaceTies",
    "Ranking",
    "Response",
    "UnknownOrder",
    "make_response",
]

RESPONSES: dict[str, Callable[[], Response]] = {
    "choice": Choice,
    "ranking": Ranking,
    "unknown-order": UnknownOrder,
    "race": RaceTies,
    "photo-finish": PhotoFinish,
    "davidson": DavidsonTies,
}


def make_response(name: str) -> Response:
    """Return the response with this name.

    Examples
    --------
    >>> value, arrivals, at_risk = make_response("ranking").expect([3.0, 1.0, 2.0], [1, 1])  # first, second, the rest
    >>> round(value, 6), arrivals, at_risk.round(3)
    (-1.791759, array([1., 1., 0.]), array([0.167, 0.5  , 0.5  ]))
    """
    if name not in RESPONSES:
        raise ValueError(f"response must be one of {sorted(RESPONSES)}, got {name!r} instead.")
    return RESPONSES[name]()
