"""`plackett` on the command line, and `python -m plackett`."""

from __future__ import annotations

import _thread
import signal
import sys
import threading
from typing import Any


def main() -> None:
    """Run the command line, or say what to install for it."""
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
        if ended:  # once is enough
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            sys.unraisablehook = lambda lost: None


def _hear_interruptions() -> list[int]:
    """Ctrl-C in the middle of a compilation may be lost in a callback, or make it fail: such errors are its echo.

    The list that is returned has an entry once Ctrl-C has come.
    """
    came: list[int] = []

    def interrupt(number: int, frame: Any) -> None:
        came.append(number)
        signal.default_int_handler(number, frame)

    def unraisable(lost: Any) -> None:
        if issubclass(lost.exc_type, KeyboardInterrupt):
            threading.Timer(0.05, _thread.interrupt_main).start()  # again, when the callback is over
        elif not came:
            sys.__unraisablehook__(lost)

    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
        sys.unraisablehook = unraisable
    return came


if __name__ == "__main__":
    main()
