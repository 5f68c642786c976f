"""Options that several commands share. Imports nothing of the library, so that ``--help`` is fast."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, NamedTuple, TypedDict

import typer

if TYPE_CHECKING:
    from plackett.inference import EM, Bootstrap, Gibbs, Variational
    from plackett.tastes import Tastes


class Inference(StrEnum):
    """Methods of inference."""

    gibbs = "gibbs"
    bootstrap = "bootstrap"
    variational = "variational"
    em = "em"


Data = Annotated[str, typer.Argument(help="Table: CSV, TSV or Parquet; - for standard input.", show_default=False)]
Tables = Annotated[
    list[str],
    typer.Argument(help="Table: CSV, TSV or Parquet; - for standard input. Many: --engine dask.", show_default=False),
]
ModelFile = Annotated[str, typer.Argument(help="Model file; - for standard input.", show_default=False)]
Force = Annotated[bool, typer.Option("--force", help="Replace an existing output file.")]
Columns = list[str] | None
Spreadsheet = Annotated[
    bool, typer.Option("--spreadsheet", help="Write an apostrophe before texts that a spreadsheet takes for formulas.")
]
Sep = Annotated[str | None, typer.Option(help="Character between fields, or tab, if it is not recognised.")]
Decimal = Annotated[str | None, typer.Option(help="Decimal mark, . or , if it is not recognised.")]
Method = Annotated[Inference, typer.Option(help="Draws, a fast approximation (bootstrap, variational), or the mode.")]
Shape = Annotated[str, typer.Option(help="Shape a of the prior: a number, the smaller the sparser.")]
Draws = Annotated[
    int | None, typer.Option(min=1, help="Draws of each chain (gibbs; as many as needed), or in all (bootstrap; 64).")
]
Chains = Annotated[int | None, typer.Option(min=1, help="Chains (gibbs; 4).")]
TargetESS = Annotated[float | None, typer.Option(min=1, help="Continue to this effective sample size (gibbs).")]
MaxDraws = Annotated[int | None, typer.Option(min=1, help="Most iterations per chain, if draws is not given (gibbs).")]
MaxSeconds = Annotated[float | None, typer.Option(min=0, help="Stop after about this time (gibbs, bootstrap).")]
MaxIter = Annotated[int | None, typer.Option(min=1, help="Largest number of iterations (variational, em, bootstrap).")]
Tol = Annotated[float | None, typer.Option(min=0, help="Stop when parameters change by less (variational, em).")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of the random numbers.")]


class Settings(TypedDict, total=False):
    """Parameters of an estimator that come from options."""

    inference: str | EM | Variational | Gibbs | Bootstrap
    shape: float | str
    features: str | Tastes
    random_state: int
    progress: bool
    engine: str


class Encoding(TypedDict):
    """How the columns of a table of classes are read."""

    drop: list[str]
    categorical: list[str]
    missing: str


class ChoiceColumns(NamedTuple):
    """Columns of a long table of choices, by their options."""

    situation: str | None
    alternative: str | None
    choice: str | None
    available: str | None
    attributes: Columns
    person: Columns
    persons: str | None


def nests_of(texts: Columns) -> dict[str, list[str]] | None:
    """Return alternatives by nest, from texts such as ``name=a,b``."""
    found = dict[str, list[str]]()
    for text in texts or ():
        name, mark, labels = text.partition("=")
        if not (name and mark and labels):
            raise typer.BadParameter(f"--nest must be a name and alternatives, such as road=bus,car; got {text!r}.")
        if name in found:
            raise typer.BadParameter(f"--nest {name} is given twice; name all of its alternatives at once.")
        found[name] = [label.strip() for label in labels.split(",")]
    return found or None


def segments_of(text: str | None) -> int | str:
    """Return a number of segments, or "auto"; 1 if none is given."""
    if text is None or text == "auto":
        return text or 1
    if text.isdecimal() and int(text) >= 1:
        return int(text)
    raise typer.BadParameter(f"--segments must be a whole number of at least 1, or auto, got {text!r} instead.")


def shape_of(text: str) -> float | str:
    """Return a number, or "learn"."""
    try:
        return text if text == "learn" else float(text)
    except ValueError:
        raise typer.BadParameter(f"--shape must be a positive number or 'learn', got {text!r} instead.") from None
