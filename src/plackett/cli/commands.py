"""The command line: fit, predict, report, show; rank and reproduce come from files of their own."""

from __future__ import annotations

import sys
from enum import StrEnum
from types import ModuleType
from typing import Annotated, Any

import typer

from plackett.cli import choice_commands, class_commands, cluster_commands, ranking_commands
from plackett.cli.console import Commands, check_output, echo
from plackett.cli.options import (
    Chains,
    Columns,
    Data,
    Decimal,
    Draws,
    Force,
    Inference,
    MaxDraws,
    MaxIter,
    MaxSeconds,
    Method,
    Model,
    Seed,
    Sep,
    Shape,
    Spreadsheet,
    Tables,
    TargetESS,
    Tol,
    inference_of,
    print_table,
    read_model,
    read_model_of,
    shape_of,
)
from plackett.paper.command import register as register_reproduce

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Bayesian Plackett–Luce regression: classes, choices and rankings, with probabilities.",
)


class FeatureKind(StrEnum):
    """What the weights belong to."""

    learned = "learned"
    exp = "exp"


class Engine(StrEnum):
    """Where passes run."""

    auto = "auto"
    numba = "numba"
    numpy = "numpy"
    dask = "dask"


class ClassWeight(StrEnum):
    """What classes count."""

    balanced = "balanced"


class Missing(StrEnum):
    """What to do about missing values."""

    impute = "impute"
    error = "error"


class Weights(StrEnum):
    """Whose weights an alternative uses."""

    shared = "shared"
    alternative = "alternative"
    person = "person"


@app.callback()
def plackett() -> None:
    """Bayesian Plackett–Luce regression: classes, choices and rankings, with probabilities."""


def _about_choices(help: str) -> Any:
    return typer.Option(help=help, rich_help_panel="Choices: a long table, one row an alternative")


@app.command()
def fit(
    data: Tables,
    out: Annotated[str, typer.Option(help="Model file to write; - for standard output.", show_default=False)],
    target: Annotated[str | None, typer.Option(help="Column of the classes.", show_default=False)] = None,
    situation: Annotated[str | None, _about_choices("Column that tells which situation a row is of.")] = None,
    alternative: Annotated[str | None, _about_choices("Column that tells which alternative a row is of.")] = None,
    choice: Annotated[
        str | None, _about_choices("Column that marks the chosen row by 1, or has its label in all of a situation.")
    ] = None,
    attributes: Annotated[
        Columns,
        _about_choices("Columns of the alternatives, a,b or repeated; else numbers that differ in a situation."),
    ] = None,
    person: Annotated[
        Columns, _about_choices("Columns that are the same in all rows of a situation, a,b or repeated.")
    ] = None,
    persons: Annotated[str | None, _about_choices("Column that tells who chooses.")] = None,
    available: Annotated[str | None, _about_choices("Column of 0 and 1: what was available.")] = None,
    weights: Annotated[
        Weights | None, _about_choices("Whose weights: the same for all (default), of alternatives, of persons.")
    ] = None,
    drop: Annotated[Columns, typer.Option(help="Column to leave out; may be repeated.")] = None,
    categorical: Annotated[Columns, typer.Option(help="Column of codes, not quantities; may be repeated.")] = None,
    missing: Annotated[Missing | None, typer.Option(help="Fill missing values in (default), or refuse them.")] = None,
    inference: Method = Inference.gibbs,
    shape: Shape = "learn",
    features: Annotated[
        FeatureKind, typer.Option(help="Learned directions, or the paper's exp(x), exp(-x) with a weight each.")
    ] = FeatureKind.learned,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Let all classes count the same, however many rows they have.")
    ] = None,
    test: Annotated[float, typer.Option(min=0, max=0.9, help="Share of the rows to hold out and test on.")] = 0.0,
    engine: Annotated[
        Engine, typer.Option(help="Where passes run: all cores, plain NumPy, or the workers of a Dask cluster.")
    ] = Engine.auto,
    scheduler: Annotated[
        str | None, typer.Option(help="Address of the Dask scheduler (dask; else a cluster on this machine).")
    ] = None,
    draws: Draws = None,
    tune: Annotated[int | None, typer.Option(min=0, help="Iterations before them (gibbs; 150, exp 2000).")] = None,
    chains: Chains = None,
    target_ess: TargetESS = None,
    max_draws: MaxDraws = None,
    max_seconds: MaxSeconds = None,
    max_iter: MaxIter = None,
    tol: Tol = None,
    seed: Seed = 0,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Fit a model of classes or of choices to a table and write it to a file. Ctrl-C keeps the draws made so far."""
    from plackett.data.tablefile import read_table

    check_output(out, force)
    choosing: dict[str, Any] = {
        "situation": situation,
        "alternative": alternative,
        "choice": choice,
        "available": available,
    }
    choosing |= {"attributes": attributes, "person": person, "persons": persons}
    options = choosing | {"weights": weights}
    others = {"categorical": categorical, "missing": missing, "class_weight": class_weight}
    _check_one_kind(target, options, others, features)
    limits = {"draws": draws, "tune": tune, "chains": chains, "target_ess": target_ess, "max_draws": max_draws}
    limits |= {"max_seconds": max_seconds, "max_iter": max_iter, "tol": tol}
    settings: dict[str, Any] = {
        "inference": inference_of(inference, **limits),
        "shape": shape_of(shape),
        "features": features.value,
        "random_state": seed,
        "progress": sys.stderr.isatty(),
    }
    if engine is Engine.dask:
        given = others | options | {"test": test, "sep": sep, "decimal": decimal}
        _check_cluster(target, {name: value for name, value in given.items() if name != "class_weight"})
        settings["class_weight"] = class_weight
        cluster_commands.fit(settings, data, target or "", drop or [], scheduler, out)
        return
    if scheduler is not None or len(data) > 1:
        what = "--scheduler" if scheduler is not None else "more than one table"
        raise typer.BadParameter(f"{what} is for --engine dask.")
    settings["engine"] = engine.value
    frame = read_table(data[0], sep, decimal)
    if target is None:
        choice_commands.fit(settings | {"weights": (weights or Weights.shared).value}, frame, choosing, drop, test, out)
    else:
        settings["class_weight"] = class_weight
        columns = {"drop": drop or (), "categorical": categorical or (), "missing": missing or Missing.impute}
        class_commands.fit(settings, frame, target, columns, test, out)


def _check_cluster(target: str | None, given: dict[str, Any]) -> None:
    """Refuse what is not to be had where workers read the table."""
    for name, value in given.items():
        if value:
            raise typer.BadParameter(
                f"--{name} cannot be had with --engine dask, which takes Parquet files of numbers and a --target."
            )
    if target is None:
        raise typer.BadParameter("--engine dask is for classes: give --target.")


def _check_one_kind(
    target: str | None, choosing: dict[str, Any], others: dict[str, Any], features: FeatureKind
) -> None:
    """Options for classes or for choices, and not both."""
    given = [f"--{name}" for name, value in choosing.items() if value]
    if target is not None and given:
        raise typer.BadParameter(f"{given[0]} is for choices and --target for classes: give one or the other.")
    if target is None and not given:
        raise typer.BadParameter("say what to predict: --target for classes, or --situation, --alternative, --choice.")
    wrong = None if target is not None else choice_commands.mistake(choosing | {"features": features}, others)
    if wrong is not None:
        raise typer.BadParameter(wrong)


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[str, typer.Option(help="Table to write: .csv, .tsv or .parquet; - for standard output.")] = "-",
    interval: Annotated[
        float | None, typer.Option(min=0, max=1, help="Add credible intervals of this probability, such as 0.9.")
    ] = None,
    keep: Annotated[Columns, typer.Option(help="Column to copy to the output; may be repeated.")] = None,
    spreadsheet: Spreadsheet = False,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Predict the class of each row of a table, or the choices of a long table, with probabilities."""
    import pandas as pd

    from plackett.data.columns import check_column
    from plackett.data.tablefile import check_suffix, read_table, write_table

    check_output(out, force)
    check_suffix(out)
    found = read_model_of(model, data)
    kind = _kind(found)
    if kind is ranking_commands:
        raise ValueError("worths are the same for everyone, so that there is nothing to predict: see plackett show.")
    frame = read_table(data, sep, decimal)
    for name in keep or ():
        check_column(frame, name)
    write_table(pd.DataFrame(kind.predicted(found, frame, interval, keep or [])), out, spreadsheet)
    kind.tell_scores(found, frame)


@app.command()
def report(
    model: Model,
    data: Data,
    out: Annotated[str, typer.Option(help="HTML file to write.", show_default=False)],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Write a report in one HTML file: data, diagnostics, weights, and how well the model predicts this table."""
    from plackett.data.tablefile import read_table

    check_output(out, force)
    found = read_model_of(model, data)
    kind = _kind(found)
    read = found.table_.read if kind is ranking_commands else read_table
    kind.report(found, read(data, sep, decimal), out, title)


@app.command()
def show(
    model: Model,
    weights: Annotated[int, typer.Option(min=0, help="How many of the largest weights to print.")] = 10,
    out: Annotated[
        str | None, typer.Option(help="Write all weights to this table instead; - for standard output.")
    ] = None,
    spreadsheet: Spreadsheet = False,
    force: Force = False,
) -> None:
    """Show what a model file holds: settings, diagnostics and the largest weights."""
    from plackett.data.tablefile import check_suffix, write_table

    if out is not None:
        check_output(out, force)
        check_suffix(out)
    found = read_model(model)
    if out is not None:
        write_table(found.summary(), out, spreadsheet)
        return
    echo(*repr(found).split("\n"))
    if hasattr(found, "table_"):
        echo(f"  {_kind(found).origin(found)}")
    title, table = found._largest(weights)
    print_table(f"The {len(next(iter(table.values())))} {title}", table)


def _kind(model: Any) -> ModuleType:
    """The file that knows what to do with such a model."""
    if hasattr(model, "items_"):
        return ranking_commands
    return choice_commands if hasattr(model, "alternatives_") else class_commands


app.command()(ranking_commands.rank)
register_reproduce(app)
