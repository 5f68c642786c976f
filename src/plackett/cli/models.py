"""Models on the command line: inferences from options, model files, fitting, and what is printed about a fit."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import numpy as np
import typer
from rich.console import Console
from rich.table import Table as Grid
from rich.text import Text

from plackett.cli.console import INTERRUPTED, echo, in_options, note
from plackett.cli.options import Columns, Inference
from plackett.data.columns import listed
from plackett.inference import EM, Bootstrap, Gibbs, Variational
from plackett.loading import load
from plackett.output.modelfile import save
from plackett.output.summary import TEXT, Table, cells, describe
from plackett.output.terminal import printable
from plackett.race_model import INFERENCES
from plackett.segments import Segments
from plackett.tastes import Tastes
from plackett.tastes.settings import LAWS

if TYPE_CHECKING:
    from plackett.estimator import Model
    from plackett.segmenting import SegmentedModel


def inference_of(kind: Inference, **settings: float | None) -> str | EM | Variational | Gibbs | Bootstrap:
    """Inference with the given settings; raises for a setting that belongs to another inference."""
    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return kind.value
    for name in given:
        owners = [owner for owner, inference in INFERENCES.items() if name in inference().get_params()]
        if kind not in owners:
            option = "--" + name.replace("_", "-")
            *first, last = owners
            known = f"{', '.join(first)} or {last}" if first else last
            raise typer.BadParameter(f"{option} belongs to --inference {known}, not {kind}.")
    made: EM | Variational | Gibbs | Bootstrap = INFERENCES[kind](**given)
    return made


def features_of(kind: str, linear: bool, random: Columns, law: Columns, correlated: bool) -> str | Tastes:
    """Features by their name, or random tastes."""
    if not random:
        return "linear" if linear else kind
    names = [name for part in random for name in part.split(",")]
    laws = dict[str, str]()
    for each in [each for part in law or [] for each in part.split(",")]:
        name, equals, value = each.partition("=")
        if not equals or value not in LAWS:
            raise typer.BadParameter(f"--law must be COLUMN=LAW with a law of {', '.join(LAWS)}, got {each!r} instead.")
        laws[name] = value
    return Tastes(random=names, law=laws or None, correlated=correlated)


def segments_from(count: int | str, by: Columns) -> int | str | Segments:
    """Number of segments, or settings of segments that differ in some columns."""
    return Segments(count, by=[name for part in by for name in part.split(",")]) if by else count


def columns_of(given: Columns, known: Iterable[str]) -> list[str] | None:
    """Names of columns from an option that may be repeated and may hold several names separated by commas."""
    if given is None:
        return None
    columns = set(known)
    return [name for part in given for name in ([part] if part in columns else part.split(","))]


def shares_in_words(model: SegmentedModel) -> list[str]:
    """Return one line per segment, with its share of the persons and the interval where there is one."""
    lines = []
    for segment, row in model.segments_.iterrows():
        between = "" if np.isnan(row["lower"]) else f", from {row['lower']:.3f} to {row['upper']:.3f} with 90 %"
        lines.append(f"segment {segment}: share {row['share']:.3f}{between}")
    return lines


def read_model(path: str) -> Model:
    """Load a model from a file or from standard input."""
    found: Model = load(io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path)
    return found


def read_model_of(model: str, data: str, needs_no_table: Callable[[Model], bool] = lambda model: False) -> Model:
    """Load a model that knows the columns of the table it was fitted to, unless it needs none."""
    if model == data == "-":
        raise typer.BadParameter("the model and the table cannot both come from standard input.")
    found = read_model(model)
    if not hasattr(found, "table_") and not needs_no_table(found):
        raise ValueError(f"{model} was saved in Python and does not know the table of its fit; use plackett.load.")
    return found


def fitted(fit: Callable[[], object]) -> list[str]:
    """Run a fit and return the text of its warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit()
    return [str(warning.message) for warning in caught]


def save_and_tell(
    model: Model, out: str | None, origin: str, words: list[str], more: Iterable[str] = (), worths: Table | None = None
) -> None:
    """Save a fitted model and print the data it was fitted to, its size, its verdict and the warnings of the fit.

    Worths of items are printed unless the model goes to standard output. An interrupted fit is saved, too; the command
    then exits with the code of an interruption.
    """
    if out is not None:
        save(model, sys.stdout.buffer if out == "-" else out)
    size, verdict = describe(model)
    lines = [origin, size] if words else [origin, size, in_options(verdict)]
    echo(*lines, *more, err=out == "-")
    if worths is not None and out != "-":
        print_table(f"Worths{', with 90 % intervals of log_worth and rank' if 'lower' in worths else ''}", worths)
    for word in words:
        note(word)
    if any(word.startswith("interrupted") for word in words):
        raise typer.Exit(INTERRUPTED)


def refuse_twice(made: list[str]) -> None:
    """Raise if two columns of the output have the same name."""
    twice = [name for k, name in enumerate(made) if name in made[:k]]
    if twice:
        raise ValueError(
            f"two columns of the output would be called {listed(map(repr, twice))}: rename the column of the table, "
            "or leave out --keep or --interval."
        )


def print_table(title: str, table: Table) -> None:
    """Print columns of a summary as a grid, as wide as the terminal, or as wide as needed in a pipe."""
    grid = Grid(title=title, title_justify="left")
    for name in table:
        grid.add_column(Text(printable(name)), justify="left" if name in TEXT else "right")
    for row in cells(table):
        grid.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # no terminal to fit into
    console.print(grid)
