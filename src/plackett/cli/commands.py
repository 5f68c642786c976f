"""The command line: fit, predict, report, show, reproduce."""

from __future__ import annotations

import io
import sys
import warnings
from dataclasses import replace
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plackett.cli.console import INTERRUPTED, Commands, check_output, in_options, note
from plackett.paper.command import register as register_reproduce

if TYPE_CHECKING:
    import pandas as pd

    from plackett.data.table import Table

app = typer.Typer(
    cls=Commands,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Bayesian Plackett–Luce regression: sparse, probabilistic classification of tables.",
)


class Inference(StrEnum):
    """How the weights are found."""

    gibbs = "gibbs"
    variational = "variational"
    em = "em"


class FeatureKind(StrEnum):
    """What the weights belong to."""

    learned = "learned"
    exp = "exp"


class ClassWeight(StrEnum):
    """What classes count."""

    balanced = "balanced"


class Missing(StrEnum):
    """What to do about missing values."""

    impute = "impute"
    error = "error"


Data = Annotated[str, typer.Argument(help="Table: CSV, TSV or Parquet; - for standard input.", show_default=False)]
Model = Annotated[str, typer.Argument(help="Model file; - for standard input.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
Columns = list[str] | None
Sep = Annotated[str | None, typer.Option(help="Character between fields, or tab, if it is not recognised.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark, . or , if it is not recognised.")]


@app.callback()
def plackett() -> None:
    """Bayesian Plackett–Luce regression: sparse, probabilistic classification of tables."""


@app.command()
def fit(
    data: Data,
    target: Annotated[str, typer.Option(help="Column of the classes.", show_default=False)],
    out: Annotated[str, typer.Option(help="Model file to write; - for standard output.", show_default=False)],
    drop: Annotated[Columns, typer.Option(help="Column to leave out; may be repeated.")] = None,
    categorical: Annotated[Columns, typer.Option(help="Column of codes, not quantities; may be repeated.")] = None,
    missing: Annotated[Missing, typer.Option(help="Fill missing values in, or refuse them.")] = Missing.impute,
    inference: Annotated[Inference, typer.Option(help="Draws, a fast approximation, or the mode.")] = Inference.gibbs,
    shape: Annotated[str, typer.Option(help="Shape a of the prior: a number, the smaller the sparser.")] = "learn",
    features: Annotated[
        FeatureKind, typer.Option(help="Learned directions, or the paper's exp(x), exp(-x) with a weight each.")
    ] = FeatureKind.learned,
    class_weight: Annotated[
        ClassWeight | None, typer.Option(help="Let all classes count the same, however many rows they have.")
    ] = None,
    test: Annotated[float, typer.Option(min=0, max=0.9, help="Share of the rows to hold out and test on.")] = 0.0,
    draws: Annotated[int | None, typer.Option(min=1, help="Draws of each chain (gibbs; as many as needed).")] = None,
    tune: Annotated[int | None, typer.Option(min=0, help="Iterations before them (gibbs; 150, exp 2000).")] = None,
    chains: Annotated[int | None, typer.Option(min=1, help="Chains (gibbs; 4).")] = None,
    target_ess: Annotated[
        float | None, typer.Option(min=1, help="Go on to this effective sample size (gibbs).")
    ] = None,
    max_draws: Annotated[
        int | None, typer.Option(min=1, help="Iterations at which chains that go on give up (gibbs).")
    ] = None,
    max_seconds: Annotated[float | None, typer.Option(min=0, help="Stop drawing after this time (gibbs).")] = None,
    max_iter: Annotated[int | None, typer.Option(min=1, help="Iterations at most (variational, em).")] = None,
    tol: Annotated[float | None, typer.Option(min=0, help="Movement that counts as none (variational, em).")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Fit a model to a table and write it to a file. Ctrl-C keeps the draws made so far."""
    import numpy as np

    from plackett.classifier import PlackettLuceClassifier
    from plackett.data.table import Table, labelled, labels, row_marks, stratified
    from plackett.data.tablefile import read_table
    from plackett.output.modelfile import save
    from plackett.output.summary import describe

    check_output(out, force)
    settings = {
        "draws": draws,
        "tune": tune,
        "chains": chains,
        "target_ess": target_ess,
        "max_draws": max_draws,
        "max_seconds": max_seconds,
        "max_iter": max_iter,
        "tol": tol,
    }
    clf = PlackettLuceClassifier(
        _inference(inference, {name: value for name, value in settings.items() if value is not None}),
        shape=_shape(shape),
        features=features.value,
        class_weight=None if class_weight is None else class_weight.value,
        random_state=seed,
        progress=sys.stderr.isatty(),
    )
    frame = labelled(read_table(data, sep, decimal), target, missing)
    y = labels(frame, target)
    held = stratified(y, test, seed)
    table = Table.learn(frame[~held], target, drop or (), categorical or (), missing)
    X = table.covariates(frame)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        clf.fit(X[~held], y[~held])
    clf.table_ = replace(table, test=test, seen=np.sort(row_marks(X[~held], y[~held])))
    words = [str(warning.message) for warning in caught]

    save(clf, sys.stdout.buffer if out == "-" else out)
    size, verdict = describe(clf)
    lines = [_origin(clf.table_), size] if words else [_origin(clf.table_), size, in_options(verdict)]
    if held.any():
        lines.append(f"held out, {_scores(clf, X[held], y[held])}")
    typer.echo("\n".join(lines), err=out == "-")
    for word in words:
        note(word)
    if any(word.startswith("interrupted") for word in words):
        raise typer.Exit(INTERRUPTED)


@app.command()
def predict(
    model: Model,
    data: Data,
    out: Annotated[str, typer.Option(help="Table to write: .csv, .tsv or .parquet; - for standard output.")] = "-",
    interval: Annotated[
        float | None, typer.Option(min=0, max=1, help="Add credible intervals of this probability, such as 0.9.")
    ] = None,
    keep: Annotated[Columns, typer.Option(help="Column to copy to the output; may be repeated.")] = None,
    sep: Sep = None,
    decimal: Decimal = None,
    force: Force = False,
) -> None:
    """Predict the class of each row of a table, with probabilities."""
    import numpy as np
    import pandas as pd

    from plackett.data.columns import check_column, listed
    from plackett.data.table import labels
    from plackett.data.tablefile import check_suffix, read_table, write_table

    check_output(out, force)
    check_suffix(out)
    clf, frame = _load(model, data), read_table(data, sep, decimal)
    for name in keep or ():
        check_column(frame, name)
    ends = ("",) if interval is None else ("", "_lower", "_upper")
    made = ["predicted", *(f"p_{label}{end}" for label in clf.classes_ for end in ends)]
    twice = [name for k, name in enumerate(made) if name in (*(keep or ()), *made[:k])]
    if twice:
        raise ValueError(
            f"two columns of the output would be called {listed(map(repr, twice))}: rename the column of the table, "
            "or leave out --keep or --interval."
        )
    X = clf.table_.covariates(frame)
    probability = clf.predict_proba(X)
    parts = [probability] if interval is None else [probability, *clf.predict_interval(X, prob=interval)]
    columns: dict[str, Any] = {name: frame[name] for name in keep or ()}
    columns["predicted"] = clf.classes_[np.argmax(probability, axis=1)]
    numbers = np.char.mod("%.6g", np.stack(parts, axis=2).reshape(len(frame), -1)).astype(float)
    columns |= dict(zip(made[1:], numbers.T, strict=True))
    write_table(pd.DataFrame(columns), out)
    target = clf.table_.target
    if target in frame and frame[target].notna().all():
        y = labels(frame, target)
        held = clf.table_.held_out(X, y)
        if held.any():
            note(f"the table has the column {target!r}; {_scores(clf, X[held], y[held])}")


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
    import pandas as pd

    from plackett.data.columns import TableWarning
    from plackett.data.table import labelled, labels
    from plackett.data.tablefile import read_table
    from plackett.report import write_report

    check_output(out, force)
    clf = _load(model, data)
    table = clf.table_
    frame = labelled(read_table(data, sep, decimal), table.target, table.missing)
    X, y = table.covariates(frame), labels(frame, table.target)
    answers, rows = pd.Series(y, index=X.index, name=table.target), frame.drop(columns=table.target)
    held = table.held_out(X, y)
    if not held.any():
        note("the model was fitted to all these rows, so it errs less on them than on others; see fit --test.")
    test = (rows[held], answers[held]) if held.any() else None
    seen = (rows[~held], answers[~held]) if test is None or not held.all() else test
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TableWarning)  # said above, of all rows
        write_report(clf, *seen, out, title=title, test=test)


@app.command()
def show(
    model: Model,
    weights: Annotated[int, typer.Option(min=0, help="How many of the largest weights to print.")] = 10,
    out: Annotated[
        str | None, typer.Option(help="Write all weights to this table instead; - for standard output.")
    ] = None,
    force: Force = False,
) -> None:
    """Show what a model file holds: settings, diagnostics and the largest weights."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from plackett.data.tablefile import check_suffix, write_table
    from plackett.output.summary import TEXT, cells

    if out is not None:
        check_output(out, force)
        check_suffix(out)
    clf = _read_model(model)
    if out is not None:
        write_table(clf.summary(), out)
        return
    typer.echo(repr(clf))
    if hasattr(clf, "table_"):
        typer.echo(f"  {_origin(clf.table_)}")
    title, found = clf.posterior_.largest(clf, weights)
    shown = cells(found)
    grid = Grid(title=f"The {len(shown)} {title}", title_justify="left")
    for name in found:
        grid.add_column(Text(name), justify="left" if name in TEXT else "right")
    for row in shown:
        grid.add_row(*map(Text, row))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # nothing to fit into
    console.print(grid)


def _inference(kind: Inference, given: dict[str, Any]) -> Any:
    """The inference with the settings that were given, if it has them."""
    from plackett.race_model import INFERENCES

    if not given:
        return kind.value
    for name in given:
        owners = [owner for owner, inference in INFERENCES.items() if name in inference().get_params()]
        if kind not in owners:
            option = "--" + name.replace("_", "-")
            raise typer.BadParameter(f"{option} belongs to --inference {' or '.join(owners)}, not {kind}.")
    return INFERENCES[kind](**given)


def _shape(text: str) -> float | str:
    try:
        return text if text == "learn" else float(text)
    except ValueError:
        raise typer.BadParameter(f"--shape must be a positive number or 'learn', got {text!r} instead.") from None


def _read_model(path: str) -> Any:
    from plackett.output.modelfile import load

    return load(io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path)


def _load(model: str, data: str) -> Any:
    """A model that knows how to read a table."""
    if model == data == "-":
        raise typer.BadParameter("the model and the table cannot both come from standard input.")
    clf = _read_model(model)
    if not hasattr(clf, "table_"):
        raise ValueError(f"{model} was saved in Python and does not know the columns of a table; use plackett.load.")
    return clf


def _origin(table: Table) -> str:
    """What a model was fitted to, in a line."""
    from plackett.data.columns import listed

    counts = listed(f"{label} {n}" for label, n in table.counts.items())
    held = f"; {table.test:.0%} of each class held out" if table.test else ""
    names = listed(column.name for column in table.columns)
    return f"{table.target} in {sum(table.counts.values())} rows ({counts}{held}) from {names}"


def _scores(clf: Any, X: pd.DataFrame, y: Any) -> str:
    """Error, log-loss and Brier score, beside those of always giving the shares of the training rows."""
    from plackett.output.scores import Scores, scores, scores_of_shares

    def words(found: Scores) -> str:
        return f"error {found.error:.3f}, log-loss {found.log_loss:.3f}, Brier {found.brier:.3f}"

    own = scores(clf.predict_proba(X), y, clf.classes_)
    shares = scores_of_shares(list(clf.table_.counts.values()), y, clf.classes_)
    return f"{len(y)} rows: {words(own)} (by class shares alone: {words(shares)})"


register_reproduce(app)
