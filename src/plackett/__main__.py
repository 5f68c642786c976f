"""Entry point of the command `plackett` and of `python -m plackett`."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Run the command line, or name the packages to install for it."""
    ended = _hear_interruptions()
    try:
        from plackett.cli.commands import app

        app(prog_name="plackett")
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] == "plackett":
            raise
        sys.exit(f"plackett: the command line needs {missing.name}: pip install 'plackett[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)
    except Exception:
        if ended:
            sys.exit(130)
        raise
    finally:
        if ended:  # one interruption is enough
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.unraisablehook = lambda lost: None


def _hear_interruptions() -> list[int]:
    """Handle Ctrl-C during a compilation, where it may be lost in a callback or cause other errors.

    The returned list has an entry after Ctrl-C.
    """
    came: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    def unraisable(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()  # repeat it after the callback
        elif not came:
            sys.__unraisablehook__(lost)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = unraisable
    return came


if __name__ == "__main__":
    main()
