"""Options that several commands share, and what they become: an inference, a shape, a model that was read."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Annotated, Any

import typer

from plackett.cli.console import INTERRUPTED, echo, in_options, note
from plackett.output.terminal import printable


class Inference(StrEnum):
    """How the weights are found."""

    gibbs = "gibbs"
    variational = "variational"
    em = "em"


Data = Annotated[str, typer.Argument(help="Table: CSV, TSV or Parquet; - for standard input.", show_default=False)]
Tables = Annotated[
    list[str],
    typer.Argument(help="Table: CSV, TSV or Parquet; - for standard input. Many: --engine dask.", show_default=False),
]
Model = Annotated[str, typer.Argument(help="Model file; - for standard input.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
Columns = list[str] | None
Spreadsheet = Annotated[
    bool, typer.Option("--spreadsheet", help="Write an apostrophe before texts that a spreadsheet takes for formulas.")
]
Sep = Annotated[str | None, typer.Option(help="Character between fields, or tab, if it is not recognised.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark, . or , if it is not recognised.")]
Method = Annotated[Inference, typer.Option(help="Draws, a fast approximation, or the mode.")]
Shape = Annotated[str, typer.Option(help="Shape a of the prior: a number, the smaller the sparser.")]
Draws = Annotated[int | None, typer.Option(min=1, help="Draws of each chain (gibbs; as many as needed).")]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains (gibbs; 4).")]
TargetESS = Annotated[float | None, typer.Option(min=1, help="Go on to this effective sample size (gibbs).")]
MaxDraws = Annotated[int | None, typer.Option(min=1, help="Iterations at which chains that go on give up (gibbs).")]
MaxSeconds = Annotated[float | None, typer.Option(min=0, help="Stop drawing after this time (gibbs).")]
MaxIter = Annotated[int | None, typer.Option(min=1, help="Iterations at most (variational, em).")]
Tol = Annotated[float | None, typer.Option(min=0, help="Movement that counts as none (variational, em).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]


def inference_of(kind: Inference, **settings: Any) -> Any:
    """The inference with the settings that were given, if it has them."""
    from plackett.race_model import INFERENCES

    given = {name: value for name, value in settings.items() if value is not None}
    if not given:
        return kind.value
    for name in given:
        owners = [owner for owner, inference in INFERENCES.items() if name in inference().get_params()]
        if kind not in owners:
            option = "--" + name.replace("_", "-")
            raise typer.BadParameter(f"{option} belongs to --inference {' or '.join(owners)}, not {kind}.")
    return INFERENCES[kind](**given)


def shape_of(text: str) -> float | str:
    """A number, or "learn"."""
    try:
        return text if text == "learn" else float(text)
    except ValueError:
        raise typer.BadParameter(f"--shape must be a positive number or 'learn', got {text!r} instead.") from None


def columns_of(given: Columns, known: Iterable[str]) -> list[str] | None:
    """Names of columns from an option that may be repeated, and may hold several with commas between them."""
    if given is None:
        return None
    columns = set(known)
    return [name for part in given for name in ([part] if part in columns else part.split(","))]


def read_model(path: str) -> Any:
    """A model from a file, or from standard input."""
    from plackett.output.modelfile import load

    return load(io.BytesIO(sys.stdin.buffer.read()) if path == "-" else path)


def read_model_of(model: str, data: str) -> Any:
    """A model that knows how to read a table."""
    if model == data == "-":
        raise typer.BadParameter("the model and the table cannot both come from standard input.")
    found = read_model(model)
    if not hasattr(found, "table_"):
        raise ValueError(f"{model} was saved in Python and does not know the columns of a table; use plackett.load.")
    return found


def fitted(fit: Callable[[], Any]) -> list[str]:
    """Fit a model; what it warned of, in words."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        fit()
    return [str(warning.message) for warning in caught]


def save_and_tell(
    model: Any, out: str | None, origin: str, words: list[str], more: Iterable[str] = (), worths: Any = None
) -> None:
    """Write a fitted model; say what it was fitted to, how large it is and how far to trust it, and what it warned of.

    Of items the worths are shown, unless the model goes to standard output. What was interrupted is written, and ends
    with the exit code of an interruption.
    """
    from plackett.output.modelfile import save
    from plackett.output.summary import describe

    if out is not None:
        save(model, sys.stdout.buffer if out == "-" else out)
    size, verdict = describe(model)
    lines = [origin, size] if words else [origin, size, in_options(verdict)]
    echo(*lines, *more, err=out == "-")
    if worths is not None and out != "-":
        print_table("Worths, with 90 % intervals of log_worth", worths)
    for word in words:
        note(word)
    if any(word.startswith("interrupted") for word in words):
        raise typer.Exit(INTERRUPTED)


def refuse_twice(made: list[str]) -> None:
    """Two columns of the output must not have one name."""
    from plackett.data.columns import listed

    twice = [name for k, name in enumerate(made) if name in made[:k]]
    if twice:
        raise ValueError(
            f"two columns of the output would be called {listed(map(repr, twice))}: rename the column of the table, "
            "or leave out --keep or --interval."
        )


def print_table(title: str, table: dict[str, Any]) -> None:
    """Columns of a summary as a grid that is as wide as the terminal, or as it needs to be in a pipe."""
    from rich.console import Console
    from rich.table import Table as Grid
    from rich.text import Text

    from plackett.output.summary import TEXT, cells

    grid = Grid(title=title, title_justify="left")
    for name in table:
        grid.add_column(Text(printable(name)), justify="left" if name in TEXT else "right")
    for row in cells(table):
        grid.add_row(*(Text(printable(cell)) for cell in row))
    console = Console()
    if not console.is_terminal:
        console.width = 1000  # nothing to fit into
    console.print(grid)
