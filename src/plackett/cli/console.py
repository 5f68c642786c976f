"""Output of the command line: notes and one-line errors on standard error, exit codes, and protection of files."""

from __future__ import annotations

import ast
import os
import re
import shlex
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from plackett.output.files import check_folder
from plackett.output.terminal import printable

MISTAKE, INTERRUPTED = 1, 130
OPTIONS = (  # settings of the library with an option of the same name
    *("draws", "tune", "chains", "target_ess", "max_draws", "max_seconds", "max_iter", "tol"),
    *("inference", "shape", "features", "drop", "categorical", "missing", "sep", "decimal"),
    *("weights", "choice", "unranked", "ties", "table"),
)
NAME = rf"(?:{'|'.join(OPTIONS)})\b"
TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
VALUE = rf"(?:\[{TEXT}(?:, {TEXT})*\]|{TEXT}|\.\.\.|[\w.+-]*\w)"
SETTING = rf"{NAME}={VALUE}"
GIVEN = rf"{NAME}(?:={VALUE})?"


class Commands(TyperGroup):
    """Commands whose warnings become notes, and whose errors become one line and an exit code, never a traceback."""

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
    """Print one line on standard error."""
    line = " ".join(part.strip() for part in text.split("\n"))
    echo(f"plackett: {line}", err=True)


def echo(*lines: str, err: bool = False) -> None:
    """Print lines on standard output or error, without control characters."""
    typer.echo("\n".join(map(printable, lines)), err=err)


def note(text: str) -> None:
    """Print one line about something that deserves attention."""
    say(f"note: {in_options(text)}")


def in_options(text: str) -> str:
    """Translate advice on Python settings to options of the command line.

    Examples
    --------
    >>> from plackett.cli.console import in_options
    >>> in_options("Try Gibbs(draws=4000, target_ess=400), or features='exp'")
    'Try --draws 4000 --target-ess 400, or --features exp'
    >>> in_options("Raise Gibbs(max_draws=...).")
    'Raise --max-draws.'
    >>> print(in_options("leave them out with drop=['id', 'pay €']"))
    leave them out with --drop id --drop 'pay €'
    """
    text = re.sub(rf"\b(?:Gibbs|EM|Variational)\(({GIVEN}(?:, {GIVEN})*)\)", _options, text)
    return re.sub(rf"\b{SETTING}", _options, text)


def _options(found: re.Match[str]) -> str:
    """Translate the settings in some Python code to options."""
    return " ".join(_option(name, value) for name, value in re.findall(rf"({NAME})(?:=({VALUE}))?", found[0]))


def _option(name: str, value: str) -> str:
    option = f"--{name.replace('_', '-')}"
    if value in ("", "..."):
        return option
    given = ast.literal_eval(value) if value[0] in "['\"" else value
    return " ".join(f"{option} {shlex.quote(part)}" for part in ([given] if isinstance(given, str) else given))


def check_output(path: str, force: bool) -> None:
    """Refuse, before the work begins, an existing file or a missing folder."""
    if path == "-":
        return
    check_folder(path)
    if os.path.isfile(path) and not force:
        raise ValueError(f"{path} exists; replace it with --force, or choose another name.")
