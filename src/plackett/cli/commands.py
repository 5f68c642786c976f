"""The command line: declares fit, predict, report and show, and adds rank and reproduce."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from types import ModuleType
from typing import TYPE_CHECKING, Annotated

import typer
from typer.models import OptionInfo

from plackett import cli
from plackett.cli.console import Commands, check_output, echo
from plackett.cli.options import (
    Chains,
    ChoiceColumns,
    Columns,
    Data,
    Decimal,
    Draws,
    Encoding,
    Force,
    Inference,
    MaxDraws,
    MaxIter,
    MaxSeconds,
    Method,
    ModelFile,
    Seed,
    Sep,
    Settings,
    Shape,
    Spreadsheet,
    Tables,
    TargetESS,
    Tol,
    nests_of,
    segments_of,
    shape_of,
)
from plackett.cli.rank_command import rank
from plackett.cli.reproduce_command import register as register_reproduce
from plackett.data.ballots import ballots_of

if TYPE_CHECKING:
    from plackett.estimator import Model

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Bayesian Plackett–Luce regression: classes, choices and rankings, with probabilities.",
)


class FeatureKind(StrEnum):
    """Kinds of features."""

    learned = "learned"
    exp = "exp"


class Engine(StrEnum):
    """Engines."""

    auto = "auto"
    numba = "numba"
    numpy = "numpy"
    cupy = "cupy"
    dask = "dask"


class ClassWeight(StrEnum):
    """Weights of classes."""

    balanced = "balanced"


class Missing(StrEnum):
    """Treatment of missing values."""

    impute = "impute"
    error = "error"


class Weights(StrEnum):
    """Owners of weights in a model of choices."""

    shared = "shared"
    alternative = "alternative"
    person = "person"


@app.callback()
def plackett() -> None:
    """Bayesian Plackett–Luce regression: classes, choices and rankings, with probabilities."""


def _about_choices(help: str) -> OptionInfo:
    option: OptionInfo = typer.Option(help=help, rich_help_panel="Choices: a long table, one row per alternative")
    return option


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
    linear: Annotated[
        bool, _about_choices("Conditional logit: a linear utility; em is maximum likelihood with standard errors.")
    ] = False,
    random: Annotated[
        Columns, _about_choices("Columns whose coefficients differ between persons by a law, a,b or repeated.")
    ] = None,
    law: Annotated[
        Columns, _about_choices("Law of a random coefficient: price=-lognormal, time=normal; a,b or repeated.")
    ] = None,
    correlated: Annotated[bool, _about_choices("Random coefficients are correlated.")] = False,
    nest: Annotated[
        Columns, _about_choices("Alternatives that substitute for each other, name=a,b; may be repeated.")
    ] = None,
    segments: Annotated[
        str | None, _about_choices("Segments of persons with coefficients of their own (--linear): a number, or auto.")
    ] = None,
    segments_by: Annotated[
        Columns, _about_choices("Columns whose coefficients differ between segments (all), a,b or repeated.")
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
    check_output(out, force)
    columns = ChoiceColumns(situation, alternative, choice, available, attributes, person, persons)
    for_choices = {**columns._asdict(), "weights": weights, "linear": linear, "nest": nest}
    for_choices |= {"random": random, "law": law, "correlated": correlated}
    for_choices |= {"segments": segments, "segments_by": segments_by}
    for_classes = {"categorical": categorical, "missing": missing, "class_weight": class_weight}
    wrong = _mistake(target, columns, weights, features, for_choices, for_classes)
    if wrong is not None:
        raise typer.BadParameter(wrong)
    limits: dict[str, float | None] = {"draws": draws, "tune": tune, "chains": chains, "target_ess": target_ess}
    limits |= {"max_draws": max_draws, "max_seconds": max_seconds, "max_iter": max_iter, "tol": tol}
    settings = Settings(
        inference=cli.models.inference_of(inference, **limits),
        shape=shape_of(shape),
        features=cli.models.features_of(features.value, linear, random, law, correlated),
        random_state=seed,
        progress=sys.stderr.isatty(),
        engine=engine.value,
    )
    if engine is Engine.dask:
        given = for_classes | for_choices | {"test": test, "sep": sep, "decimal": decimal}
        if target is None:
            _check_cluster(given)
            raise typer.BadParameter("--engine dask is for classes: give --target.")
        _check_cluster({name: value for name, value in given.items() if name != "class_weight"})
        cli.cluster_commands.fit(settings, data, target, drop or [], class_weight, scheduler, out)
        return
    if scheduler is not None or len(data) > 1:
        what = "--scheduler" if scheduler is not None else "more than one table"
        raise typer.BadParameter(f"{what} is for --engine dask.")
    frame = cli.tablefile.read_table(data[0], sep, decimal)
    if target is None:
        owner = (weights or Weights.shared).value
        kinds = cli.models.segments_from(segments_of(segments), segments_by)
        cli.choice_commands.fit(settings, owner, nests_of(nest), kinds, frame, columns, drop or [], test, out)
    else:
        encoding = Encoding(drop=drop or [], categorical=categorical or [], missing=missing or Missing.impute)
        cli.class_commands.fit(settings, frame, target, encoding, class_weight, test, out)


def _check_cluster(given: Mapping[str, object]) -> None:
    """Raise if an option is given that does not apply where workers read the table."""
    for name, value in given.items():
        if value:
            raise typer.BadParameter(
                f"{_options([name])} cannot be had with --engine dask, which takes Parquet files of numbers and a "
                "--target."
            )


def _mistake(
    target: str | None,
    columns: ChoiceColumns,
    weights: Weights | None,
    features: FeatureKind,
    for_choices: Mapping[str, object],
    for_classes: Mapping[str, object],
) -> str | None:
    """Error in the options for classes or for choices, or None."""
    given = [name for name, value in for_choices.items() if value]
    if target is not None:
        return (
            f"{_options(given[:1])} is for choices and --target for classes: give one or the other." if given else None
        )
    if not given:
        return "say what to predict: --target for classes, or --situation, --alternative, --choice."
    missing = [name for name in ("situation", "alternative", "choice") if for_choices[name] is None]
    if missing:
        return f"choices need --situation, --alternative and --choice: {_options(missing)} missing."
    wrong = [name for name, value in for_classes.items() if value]
    if wrong:
        return f"{_options(wrong)} is for classes (--target), and these are choices."
    if for_choices["random"] and (for_choices["linear"] or features is not FeatureKind.learned or weights is not None):
        return "--random has features and tastes of its own: leave --linear, --features and --weights out."
    if (for_choices["law"] or for_choices["correlated"]) and not for_choices["random"]:
        return "--law and --correlated are about --random: name the columns whose coefficients differ between persons."
    if for_choices["segments"] and not for_choices["linear"]:
        return "--segments is for linear utilities: give --linear, too, without --random."
    if for_choices["segments_by"] and not for_choices["segments"]:
        return "--segments-by is about --segments: say how many."
    if for_choices["linear"] and features is not FeatureKind.learned:
        return f"--linear has features of its own: leave --features {features.value} out, or --linear."
    if weights is Weights.person and columns.persons is None:
        return "--weights person needs --persons: the column that tells who chooses."
    if columns.persons is not None and weights is not Weights.person and features is not FeatureKind.learned:
        return (
            "--persons would be ignored: it is for --weights person, or keeps the situations of a person together "
            "where --features learned holds some out."
        )
    single = {name: for_choices[name] for name in ("situation", "alternative", "choice", "persons", "available")}
    named = list(single.values())
    twice = [name for name, column in single.items() if column is not None and named.count(column) > 1]
    return f"{_options(twice)} name the same column." if twice else None


def _options(names: list[str]) -> str:
    return ", ".join("--" + name.replace("_", "-") for name in names)


@app.command()
def predict(
    model: ModelFile,
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

    check_output(out, force)
    cli.tablefile.check_suffix(out)
    found = cli.models.read_model_of(model, data, lambda model: hasattr(model, "columns_"))
    kind = _kind(found)
    if kind is cli.ranking_commands:
        raise ValueError("worths are the same for everyone, so that there is nothing to predict: see plackett show.")
    frame = cli.tablefile.read_table(data, sep, decimal)
    for name in keep or ():
        cli.columns.check_column(frame, name)
    cli.tablefile.write_table(pd.DataFrame(kind.predicted(found, frame, interval, keep or [])), out, spreadsheet)
    kind.tell_scores(found, frame)


@app.command()
def report(
    model: ModelFile,
    data: Data,
    out: Annotated[str, typer.Option(help="HTML file to write.", show_default=False)],
    title: Annotated[str | None, typer.Option(help="Heading of the report.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Write a report in one HTML file: data, diagnostics, weights, and how well the model predicts this table."""
    check_output(out, force)
    found = cli.models.read_model_of(model, data, _knows_items)
    kind = _kind(found)
    if kind is cli.ranking_commands:
        known = getattr(found, "attributes_", ())
        ballots = found.table_ if hasattr(found, "table_") else ballots_of(data, sep, decimal, known)
        kind.report(found, ballots.read(data, sep, decimal), out, title)
    else:
        kind.report(found, cli.tablefile.read_table(data, sep, decimal), out, title)


@app.command()
def show(
    model: ModelFile,
    weights: Annotated[int, typer.Option(min=0, help="How many of the largest weights to print.")] = 10,
    out: Annotated[
        str | None, typer.Option(help="Write all weights to this table instead; - for standard output.")
    ] = None,
    spreadsheet: Spreadsheet = False,
    force: Force = False,
) -> None:
    """Show what a model file holds: settings, diagnostics and the largest weights."""
    if out is not None:
        check_output(out, force)
        cli.tablefile.check_suffix(out)
    found = cli.models.read_model(model)
    if out is not None:
        cli.tablefile.write_table(found.summary(), out, spreadsheet)
        return
    echo(*repr(found).split("\n"))
    if hasattr(found, "table_"):
        echo(f"  {_kind(found).origin(found)}")
    title, table = found._largest(weights)
    cli.models.print_table(f"The {len(next(iter(table.values())))} {title}", table)


def _knows_items(model: Model) -> bool:
    """True for a ranker without covariates, which reads any rankings of its items."""
    return hasattr(model, "items_") and model.n_features_in_ == 0


def _kind(model: Model) -> ModuleType:
    """Module with the commands for this kind of model."""
    if hasattr(model, "items_"):
        return cli.ranking_commands
    return cli.choice_commands if hasattr(model, "alternatives_") else cli.class_commands


app.command()(rank)
register_reproduce(app)
