"""Section on tiers: their number, and the items of each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plackett import plots
from plackett.report.figures import figure
from plackett.report.markup import Head, Section, facts, number, paragraph, table

if TYPE_CHECKING:
    from plackett.tiering import TieringRankings

PROB = 0.9  # of intervals
LISTED = 500  # items in a table
DRAWN = 60  # items in the picture
HEADS = ("Tier", "Same as the next", "Place, 5%", "Place, 95%")


def tiers(model: TieringRankings) -> Section | None:
    """Return the section; None for a model without tiers."""
    if not hasattr(model, "n_tiers_"):
        return None
    found, count = model.tiers(PROB), model.parameters(PROB).loc["tiers"]
    listed = int(found["tier"].max())
    rows = [[item, *values] for item, values in zip(found.index, found.to_numpy().tolist(), strict=True)]
    told = (
        "Items of one tier have the same worth. How many tiers there are, and which items share one, differs between "
        "draws; listed is the partition into runs of the ordered items that is nearest to all draws. Same as the next "
        "is the probability that an item shares a tier with the one below it."
    )
    drawn = min(DRAWN, len(rows))
    best = ", ".join(str(item) for item in found.index[found["tier"] == 1][:8])
    picture = figure(
        "tiers-figure",
        lambda ax: plots.tiers(model, prob=PROB, n=drawn, ax=ax),
        f"Log-worths of the items in {listed} tiers, the best first; in the first tier {best}.",
        f"Log-worths with {100 * PROB:g} % intervals; bands are the {listed} tiers listed.",
        1.1 + 0.25 * drawn,
    )
    more = f", the best {LISTED} of {len(rows)}" if len(rows) > LISTED else ""
    interval = f"{number(count['lower'])} to {number(count['upper'])}"
    body = [
        facts([("Tiers, on average", f"{count['mean']:.1f}"), (f"With {100 * PROB:g} %", interval)]),
        paragraph(told),
        f'<div class="figures">{picture}</div>',
        table(f"Tiers{more}", [Head("Item"), *(Head(head, True) for head in HEADS)], rows[:LISTED], sortable=True),
    ]
    return Section("tiers", "Tiers", "\n".join(body))
