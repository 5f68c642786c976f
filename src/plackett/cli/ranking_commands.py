"""Rankings on the command line: `rank`, and what other commands do with a ranker."""

from __future__ import annotations

import sys
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plackett.cli.console import check_output
from plackett.cli.options import (
    Chains,
    Columns,
    Decimal,
    Draws,
    Force,
    Inference,
    MaxDraws,
    MaxIter,
    MaxSeconds,
    Method,
    Seed,
    Sep,
    Shape,
    TargetESS,
    Tol,
    fitted,
    inference_of,
    save_and_tell,
    shape_of,
)

if TYPE_CHECKING:
    from plackett.data.rankings import Rankings


class Unranked(StrEnum):
    """What an item is that a row does not rank."""

    absent = "absent"
    last = "last"


class Layout(StrEnum):
    """How a table holds rankings."""

    ranks = "ranks"
    orders = "orders"


class Ties(StrEnum):
    """What it means that items share a place."""

    unknown_order = "unknown-order"
    race = "race"
    error = "error"


def rank(
    data: Annotated[
        str,
        typer.Argument(help="Rankings: PrefLib's soc, soi, toc or toi; or with --table a table.", show_default=False),
    ],
    unranked: Annotated[
        Unranked | None,
        typer.Option(help="Items that a row does not rank: absent, or last, behind those that are ranked."),
    ] = None,
    table: Annotated[
        Layout | None,
        typer.Option(help="A table of ranks, a column an item; or of orders, a column a place, the best first."),
    ] = None,
    counts: Annotated[str | None, typer.Option(help="Column that tells how often a row was seen (--table).")] = None,
    drop: Annotated[Columns, typer.Option(help="Column to leave out; may be repeated (--table).")] = None,
    ties: Annotated[
        Ties, typer.Option(help="Tied items came in an order that is not known, in one slot of a race, or by mistake.")
    ] = Ties.unknown_order,
    inference: Method = Inference.gibbs,
    shape: Shape = "learn",
    draws: Draws = None,
    tune: Annotated[int | None, typer.Option(min=0, help="Iterations before them (gibbs; 300).")] = None,
    chains: Chains = None,
    target_ess: TargetESS = None,
    max_draws: MaxDraws = None,
    max_seconds: MaxSeconds = None,
    max_iter: MaxIter = None,
    tol: Tol = None,
    seed: Seed = 0,
    out: Annotated[str | None, typer.Option(help="Model file to write; - for standard output.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Fit worths of items to rankings and print them, the best first. Ctrl-C keeps the draws made so far."""
    from plackett.data.ballots import Ballots
    from plackett.ranker import PlackettLuceRanker

    if out is not None:
        check_output(out, force)
    alone = {"--counts": counts, "--drop": drop, "--sep": sep, "--decimal": decimal}
    wrong = [name for name, value in alone.items() if value is not None and table is None]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]} is for tables (--table), and a file of PrefLib is none.")
    limits = {"draws": draws, "tune": tune, "chains": chains, "target_ess": target_ess, "max_draws": max_draws}
    how = inference_of(inference, **limits, max_seconds=max_seconds, max_iter=max_iter, tol=tol)
    model = PlackettLuceRanker(
        how, shape=shape_of(shape), ties=ties.value, random_state=seed, progress=sys.stderr.isatty()
    )
    held = Ballots(
        None if table is None else table.value, None if unranked is None else unranked.value, counts, tuple(drop or ())
    )
    R = held.read(data, sep, decimal)
    words = fitted(lambda: model.fit(None, R))
    model.table_ = replace(held, rankings=float(R.counts.sum()))
    found = model.worth()
    shown = {"item": found.index.to_numpy()} | {name: found[name].to_numpy() for name in found}
    save_and_tell(model, out, origin(model), words, worths=shown)


def origin(model: Any) -> str:
    """What a ranker was fitted to, in a line."""
    held = {"absent": "; others absent", "last": "; others last", None: ""}[model.table_.unranked]
    return f"{model.table_.rankings:,.12g} rankings of {len(model.items_)} items{held}"


def report(model: Any, R: Rankings, out: str, title: str | None) -> None:
    """The report on a ranker."""
    from plackett.report import write_report

    write_report(model, None, R, out, title=title)
