"""Sections on segments: their shares, and the worths of items in each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plackett import plots
from plackett.report.figures import figure
from plackett.report.markup import Head, Section, number, paragraph, table

if TYPE_CHECKING:
    from plackett.segmenting import SegmentedModel, SegmentingRankings

PROB = 0.9  # of intervals
LISTED = 500  # rows of a table
HEADS = {"share": "Share", "lower": "5%", "upper": "95%"}
WORTHS = {"worth": "Worth", "log_worth": "Log-worth", "lower": "5%", "upper": "95%"}


def segments(model: SegmentedModel) -> Section | None:
    """Shares of the segments, and how their number was chosen; None without segments."""
    if not hasattr(model, "segments_"):
        return None
    frame = model.segments_
    names = [name for name in HEADS if not frame[name].isna().any()]
    rows = [[segment, *map(float, frame.loc[segment, names])] for segment in frame.index]
    heads = [Head("Segment"), *(Head(HEADS[name], True) for name in names)]
    told = "Each person belongs to one of the segments, whose shares of the population are listed, the largest first."
    losses = getattr(model, "segment_log_loss_", None)
    body = [paragraph(told), table("Segments", heads, rows)]
    if losses is not None:
        told = "The number of segments is the one that predicts held-out persons best: log-loss of a person."
        tried = [[str(segments), loss] for segments, loss in losses.items()]
        body += [paragraph(told), table("Number of segments", [Head("Segments"), Head("Log-loss", True)], tried)]
    return Section("segments", "Segments", "\n".join(body))


def worths(model: SegmentingRankings) -> Section:
    """Worths of the items in each segment, as a plot and a table."""
    found, certain = model.worth(PROB), model.posterior_.no_interval is not None
    names = [name for name in WORTHS if not (certain and name in ("lower", "upper"))]
    rows = [[segment, item, *map(float, found.loc[(segment, item), names])] for segment, item in found.index]
    best = "; ".join(f"{item} in segment {segment} {number(worth)}" for segment, item, worth, *_ in rows[:5])
    picture = figure(
        "worth-figure",
        lambda ax: plots.worth(model, prob=PROB, ax=ax),
        f"Log-worths of the items by segment, the best first: worths {best}.",
        "Log-worths by segment, the best first; in each segment their average is 0.",
        1.1 + 0.25 * min(40, len(rows)),
    )
    told = (
        "The worth of an item is its probability of being the first of all, for a person of the segment. Differences "
        "of two log-worths are log-odds of who comes before whom."
    )
    more = f", {LISTED} of {len(rows)}" if len(rows) > LISTED else ""
    heads = [Head("Segment"), Head("Item"), *(Head(WORTHS[name], True) for name in names)]
    body = [
        paragraph(told),
        f'<div class="figures">{picture}</div>',
        table(f"Worths{more}", heads, rows[:LISTED], sortable=True),
    ]
    return Section("worth", "Worths", "\n".join(body))
