"""`plackett rank` on the command line."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import Annotated

import typer

from plackett import cli
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
    Settings,
    Shape,
    TargetESS,
    Tol,
    segments_of,
    shape_of,
)
from plackett.data.ballots import Ballots


class Unranked(StrEnum):
    """Meaning of an item that a row does not rank."""

    absent = "absent"
    last = "last"


class Layout(StrEnum):
    """How a table holds rankings."""

    ranks = "ranks"
    orders = "orders"
    pairs = "pairs"


class Ties(StrEnum):
    """Meaning of a shared place."""

    unknown_order = "unknown-order"
    race = "race"
    photo_finish = "photo-finish"
    davidson = "davidson"
    auto = "auto"
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
        typer.Option(
            help="Layout of a table: ranks (one column per item), orders (one column per place, the best first) or "
            "pairs (columns winner and loser, optionally tie, first and count)."
        ),
    ] = None,
    counts: Annotated[str | None, typer.Option(help="Column that tells how often a row was seen (--table).")] = None,
    attributes: Annotated[
        Columns,
        typer.Option(
            help="Columns of numbers that may decide a comparison, the winner's minus the loser's, a,b or repeated "
            "(--table pairs)."
        ),
    ] = None,
    drop: Annotated[Columns, typer.Option(help="Column to leave out; may be repeated (--table).")] = None,
    ties: Annotated[
        Ties,
        typer.Option(
            help="Tied items came in an order that is not known, in one slot of a race, within a factor of each "
            "other's times, behind a third entrant, by the one of these two laws that predicts held-out pairs best "
            "(auto), or by mistake."
        ),
    ] = Ties.unknown_order,
    order_effect: Annotated[
        bool, typer.Option("--order-effect", help="Learn what it is worth to be shown first (column first of pairs).")
    ] = False,
    items: Annotated[
        str | None,
        typer.Option(help="Table that describes the items: labels in the first column, then numbers or texts."),
    ] = None,
    tiers: Annotated[
        bool, typer.Option("--tiers", help="Let items share worths, and print which are in one tier (gibbs).")
    ] = False,
    segments: Annotated[
        str | None, typer.Option(help="Segments of persons with worths of their own: a number, or auto.")
    ] = None,
    persons: Annotated[
        str | None, typer.Option(help="Column that tells who ranks (--segments, --table); else each row is a person.")
    ] = None,
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
    if out is not None:
        check_output(out, force)
    alone = {"--counts": counts, "--drop": drop, "--persons": persons, "--sep": sep, "--decimal": decimal}
    wrong = [name for name, value in alone.items() if value is not None and table is None]
    if wrong:
        raise typer.BadParameter(f"{wrong[0]} is for tables (--table), and a file of PrefLib is none.")
    if persons is not None and segments is None:
        raise typer.BadParameter("--persons is about --segments: say how many.")
    if attributes is not None and table is not Layout.pairs:
        raise typer.BadParameter("--attributes is for comparisons of two items (--table pairs).")
    limits: dict[str, float | None] = {
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "target_ess": target_ess,
        "max_draws": max_draws,
    }
    limits |= {"max_seconds": max_seconds, "max_iter": max_iter, "tol": tol}
    settings = Settings(
        inference=cli.models.inference_of(inference, **limits),
        shape=shape_of(shape),
        random_state=seed,
        progress=sys.stderr.isatty(),
    )
    dropped = (*(drop or ()), *(() if persons is None else (persons,)))
    ballots = Ballots(table and table.value, unranked and unranked.value, counts, dropped)
    kinds = {"ties": ties.value, "order_effect": order_effect, "tiers": tiers, "segments": segments_of(segments)}
    ballots, R, groups = cli.ranking_commands.read(ballots, attributes, persons, data, sep, decimal)
    cli.ranking_commands.fit(settings, kinds, ballots, R, groups, items, out)
