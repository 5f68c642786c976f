"""The command line: fit, predict, report, show, reproduce."""

from __future__ import annotations

import typer

from plackett.paper.command import register as register_reproduce

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Bayesian Plackett–Luce regression.")


@app.callback()
def plackett() -> None:
    """Bayesian Plackett–Luce regression."""


register_reproduce(app)
