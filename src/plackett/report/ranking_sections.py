"""Sections of a report on rankings: data, worths of items, predictions and explanations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from plackett import plots
from plackett.data.columns import as_frame
from plackett.data.rows import take_rows
from plackett.data.types import LabelsLike, MatrixLike
from plackett.output.constants import quality_of_rankings, quality_of_worths, worths
from plackett.output.html import text
from plackett.plots.items import MOST, named
from plackett.ranking import rankings_of
from plackett.report import sections, segment_sections, words
from plackett.report.figures import figure
from plackett.report.markup import Head, Section, facts, number, paragraph, table
from plackett.report.tier_section import tiers
from plackett.responses.base import places_of

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.rankings import Rankings
    from plackett.ranking import RankingModel


PROB = 0.9  # of intervals
LISTED = 500  # items in a table
SHOWN = 8  # items of one ranking
HEADS = {
    "worth": "Worth",
    "log_worth": "Log-worth",
    "lower": "5%",
    "upper": "95%",
    "first": "First",
    "rank": "Mean place",
    "rank_lower": "Place, 5%",
    "rank_upper": "Place, 95%",
}


def pages(
    model: RankingModel,
    X: MatrixLike | None,
    seen: LabelsLike | Rankings,
    test: tuple[MatrixLike | None, Rankings] | None,
    all_new: bool,
) -> tuple[str, str, list[Section]]:
    """Title, lead and sections of the report."""
    R = rankings_of(seen).with_items(model.items_)
    if not len(R):
        raise ValueError("a report needs rankings, got none.")
    tested = None if test is None else (test[0], rankings_of(test[1]).with_items(model.items_))
    judged = (X, R) if tested is None else tested
    own = quality_of_rankings(model, *judged)
    which = "held-out rankings" if tested is not None else "rankings of the fit itself"
    total = f"{judged[1].counts.sum():,.12g}"
    lead = f"Log-likelihood {own.log_likelihood:.3f} a ranking on {total} {which}, {len(model.items_)} items."
    parts = [data(X, R, tested, all_new), sections.model(model)]
    of_segments = segment_sections.segments(model)
    if of_segments is None:
        parts += [worth(model, X), *filter(None, [tiers(model)])]
    else:
        parts += [of_segments, segment_sections.worths(model)]
    if X is not None and model.posterior_.no_estimates is None:
        parts.append(sections.weights(model))
    parts.append(predictions(model, (X, R), tested, all_new))
    if judged[0] is not None:
        parts.append(why(model, *judged))
    parts.append(sections.colophon(model))
    title = f"{len(model.items_)} items in {R.counts.sum():,.12g} rankings"
    return title, lead, parts


def data(X: MatrixLike | None, R: Rankings, test: tuple[MatrixLike | None, Rankings] | None, all_new: bool) -> Section:
    """Number of rankings and items, and how often each item was ranked and came first."""
    sizes, buckets, counts = np.diff(R.outcomes.start), np.diff(R.outcomes.bucket_start), R.counts
    numbers = [("Rankings", f"{counts.sum():,.12g}"), ("Items", f"{len(R.items):,}")]
    if all_new:
        numbers[0] = ("Rankings, all held out", numbers[0][1])
    elif test is not None:
        numbers.insert(1, ("Rankings held out", f"{test[1].counts.sum():,.12g}"))
    if len(R) != counts.sum():
        numbers.append(("Different rows", f"{len(R):,}"))
    numbers.append(("Places a ranking, on average", f"{np.average(buckets + (buckets < sizes), weights=counts):.3g}"))
    place = places_of(R.outcomes) - places_of(R.outcomes)[R.outcomes.start[:-1]][R.situation]
    times, K = counts[R.situation], len(R.items)
    there, first, summed = (np.bincount(R.item, w, K) for w in (times, times * (place == 0), times * (place + 1)))
    with np.errstate(invalid="ignore"):
        share, mean = 100 * first / there, summed / there
    rows = [[R.items[k], there[k], first[k], share[k], mean[k]] for k in np.argsort(-first, kind="stable")[:LISTED]]
    heads = ("There", "In the first place", "% of those", "Mean place")
    ties = " Items that share a place, and those that are left behind all places, count with that place."
    body = [
        facts(numbers),
        paragraph(f"{words.unranked(R.unranked)}{' There are ties.' if R.tied else ''}{ties}"),
        table("Items as they were ranked", [Head("Item"), *(Head(head, True) for head in heads)], rows, sortable=True),
    ]
    if X is not None:
        frame = as_frame(X) if hasattr(X, "columns") else _frame(X)
        body.append(sections.columns(frame))
    return Section("data", "Data", "\n".join(body))


def _frame(X: MatrixLike) -> pd.DataFrame:
    import pandas as pd

    return pd.DataFrame(np.asarray(X))


def worth(model: RankingModel, X: MatrixLike | None) -> Section:
    """Worths as a plot and a table; without covariates also places and pairwise probabilities."""
    found = model.worth(PROB, X)
    certain = model.posterior_.no_interval is not None
    names = [name for name in found if name in HEADS and not (certain and name not in ("worth", "log_worth"))]
    rows = [[item, *values] for item, values in zip(named(found), found[names].to_numpy().tolist(), strict=True)]
    best = "; ".join(f"{row[0]} {number(row[1])}" for row in rows[:5])
    drawn = min(40, len(rows))
    pictures = [
        figure(
            "worth-figure",
            lambda ax: plots.worth(model, X, prob=PROB, ax=ax),
            f"Log-worths of the items, the best first: worths {best}.",
            f"Log-worths{'' if certain else f' with {100 * PROB:g} % intervals'}, the best first; their average is 0.",
            1.1 + 0.25 * drawn,
        )
    ]
    if X is None and not certain and len(rows) <= MOST:
        size = 1.6 + 0.25 * len(rows)
        pictures.append(
            figure(
                "places",
                lambda ax: plots.rank_distribution(model, ax=ax),
                f"How probable each place by worth is for each item; the best is {rows[0][0]}.",
                "The probability of every place of each item by its worth, given all that was seen.",
                size,
            )
        )
        pictures.append(
            figure(
                "better",
                lambda ax: plots.prob_better(model, ax=ax),
                f"How probably one item has a larger worth than another; the best is {rows[0][0]}.",
                "The probability that an item (row) has a larger worth than another (column).",
                size + 0.8,
            )
        )
    more = f", the best {LISTED} of {len(rows)}" if len(rows) > LISTED else ""
    columns = [Head("Item"), *(Head(HEADS[name], True) for name in names)]
    body = [
        paragraph(words.worths(certain, X is not None)),
        f'<div class="figures">{"".join(pictures)}</div>',
        table(f"Worths{more}", columns, rows[:LISTED], sortable=True),
    ]
    if X is None and len(effects := model.parameters(PROB)):
        shown = [name for name in effects if not effects[name].isna().all()]
        values = zip(effects.index, effects[shown].to_numpy().tolist(), strict=True)
        heads = {"mean": "Estimate", "lower": "5%", "upper": "95%"}
        columns = [Head("Parameter"), *(Head(heads[name], True) for name in shown)]
        body.append(table("Parameters", columns, [[name, *row] for name, row in values]))
    return Section("worth", "Worths", "\n".join(body))


def predictions(
    model: RankingModel,
    fit: tuple[MatrixLike | None, Rankings],
    test: tuple[MatrixLike | None, Rankings] | None,
    all_new: bool,
) -> Section:
    """Log-likelihood per ranking and accuracy of first places, compared with constant worths and equal chances."""
    X, R = fit if test is None else test
    response, K = model._response(R), len(model.items_)
    own = quality_of_rankings(model, X, R)
    rows = [["This model", own.log_likelihood, 100 * own.right]]
    if X is not None and not all_new:
        plain = worths(fit[1].outcomes, fit[1].item, K, model._response(fit[1]))
        alone = quality_of_worths(plain, R, response)
        rows.append(["Worths alone, the same for everyone", alone.log_likelihood, 100 * alone.right])
    if not response.absolute:
        equal = quality_of_worths(np.zeros(K), R, response)
        rows.append(["Equal chances", equal.log_likelihood, np.nan])
    heads = [Head("Prediction"), Head("Log-likelihood a ranking", True), Head("% of first places right", True)]
    body = [
        sections.seen(test is not None, "rankings"),
        table("How well rankings are predicted", heads, rows),
        paragraph("A first place is right if the item there is the most probable of those that were ranked together."),
    ]
    return Section("predictions", "Predictions", "\n".join(body))


def why(model: RankingModel, X: MatrixLike, R: Rankings) -> Section:
    """Explanations of three rankings: the least certain, the most surprising and the most certain."""
    p, came = model.predict_proba(X), model.log_likelihood(X, R)
    entropy = -(p * np.log(np.maximum(p, 1e-300))).sum(axis=1)
    picked = {
        int(np.argmax(entropy)): "the least certain",
        int(np.argmin(came)): "the most surprising",
        int(np.argmin(entropy)): "the most certain",
    }
    body = [paragraph(words.why_rankings())]
    body += [_ranking(model, X, R, t, kind, str(k)) for k, (t, kind) in enumerate(picked.items())]
    return Section("why", "Why? A few rankings", "\n".join(body))


def _ranking(model: RankingModel, X: MatrixLike, R: Rankings, t: int, kind: str, mark: str) -> str:
    """One ranking: predicted probabilities, observed places and an explanation of the most probable first item."""
    row, (order,) = take_rows(X, [t]), R[[t]].to_orders()
    name = f"Row {row.index[0] if hasattr(row, 'iloc') else t}"
    p = model.predict_proba(row)[0]
    best = np.argsort(-p, kind="stable")[:SHOWN]
    known = [p]
    if model.posterior_.no_interval is None:
        known += [part[0] for part in model.predict_interval(row, PROB)]
    places, labels = dict[Any, int](), model.items_.tolist()
    for place, held in enumerate(order):
        places |= dict.fromkeys(held if isinstance(held, set) else [held], place + 1)
    rows = [[labels[k], *(part[k] for part in known), places.get(labels[k], "")] for k in best]
    heads = ["Item", "Probability of the first place", *["5%", "95%"][: len(known) - 1], "Place"]
    more = f", the first {SHOWN} of {len(p)}" if len(p) > SHOWN else ""
    told, picture = sections.reasons(model, row, name, mark)
    return "\n".join(
        [
            f"<h3>{text(name)}, {text(kind)}: most probably first is {text(labels[best[0]])}</h3>",
            table(f"{name}{more}", [Head(head, head != "Item") for head in heads], rows),
            paragraph(told),
            f'<div class="figures">{picture}</div>',
        ]
    )
