"""How the command line speaks: notes and one-line errors on standard error, exit codes, and no file lost."""

from __future__ import annotations

import os
import re
import warnings
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup

MISTAKE, INTERRUPTED = 1, 130


class Commands(TyperGroup):
    """Commands whose warnings become notes, and mistakes one line and an exit code, never a traceback."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", UserWarning)
            warnings.showwarning = lambda message, *_, **__: note(str(message))
            try:
                return super().invoke(ctx)
            except BrokenPipeError:
                raise
            except OSError as error:
                say(f"{error.filename}: {error.strerror}" if error.filename else str(error))
            except (ValueError, ImportError) as error:
                say(in_options(str(error)))
            except MemoryError:
                say("not enough memory for this table and these settings.")
            except KeyboardInterrupt:
                say("interrupted; nothing was written.")
                raise typer.Exit(INTERRUPTED) from None
            raise typer.Exit(MISTAKE)


def say(text: str) -> None:
    """One line on standard error."""
    typer.echo(f"plackett: {' '.join(text.split())}", err=True)


def note(text: str) -> None:
    """One line about something that deserves a look."""
    say(f"note: {in_options(text)}")


def in_options(text: str) -> str:
    """Advice that the library gives in Python, in terms of the command line.

    Examples
    --------
    >>> from plackett.console import in_options
    >>> in_options("Try Gibbs(draws=4000), or features='exp'")
    'Try --draws 4000, or --features exp'
    >>> in_options("Gibbs(target_ess=400)")
    '--target-ess 400'
    """
    text = re.sub(r"\bGibbs\((draws|chains|target_ess|max_seconds)=([^)]*)\)", r"\1=\2", text)
    options = r"\b(draws|chains|target_ess|max_seconds|inference|shape|features)=['\"]?([\w.]+\w)['\"]?"
    return re.sub(options, lambda found: f"--{found[1].replace('_', '-')} {found[2]}", text)


def check_output(path: str, force: bool) -> None:
    """Refuse, before the work begins, a file that is there or a folder that is not."""
    target = Path(path)
    if path == "-":
        return
    if target.is_dir():
        raise ValueError(f"{path} is a folder; name a file in it.")
    if target.is_file() and not force:
        raise ValueError(f"{path} exists; replace it with --force, or choose another name.")
    folder = Path(os.path.realpath(path)).parent
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder} for {target.name}.")
    if not os.access(folder, os.W_OK):
        raise ValueError(f"the folder {folder} cannot be written to.")
