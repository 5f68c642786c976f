"""`plackett reproduce` on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand

import plackett


class SeveralDatasets(TyperCommand):
    """A command whose option --datasets takes all words up to the next option."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the option before each of its words."""
        spread: list[str] = []
        following = False
        for word in args:
            if word.startswith("-"):
                following = word == "--datasets"
                if not following:
                    spread.append(word)
            else:
                spread += ["--datasets", word] if following else [word]
        parsed: list[str] = super().parse_args(ctx, spread)
        return parsed


def reproduce(
    parts: Annotated[
        list[str] | None,
        typer.Argument(help="Which parts to run, before any option; all by default."),
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Few replications and draws: minutes, not an hour.")] = False,
    datasets: Annotated[
        list[str] | None, typer.Option("--datasets", help="Only these data sets: --datasets iris wine.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", help="Folder for page, tables, figures and finished runs.")] = Path(
        "reproduction"
    ),
    jobs: Annotated[int | None, typer.Option("--jobs", min=1, help="Processes; by default all cores.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Run again what is already in OUT/runs.")] = False,
) -> None:
    """Run the paper's experiments and write a page with our numbers beside the paper's.

    Finished replications are kept in OUT/runs: an interrupted run goes on where it was.
    """
    try:
        page = plackett.paper.reproduce(parts, datasets=datasets, quick=quick, out=out, jobs=jobs, force=force)
    except KeyboardInterrupt:
        typer.echo(
            f"interrupted: finished runs are kept in {out / 'runs'}; the same command goes on from there.", err=True
        )
        raise typer.Exit(130) from None
    typer.echo(str(page))


def register(app: typer.Typer) -> None:
    """Add the command to an application."""
    app.command(cls=SeveralDatasets)(reproduce)
