"""`plackett` on the command line, and `python -m plackett`."""

from __future__ import annotations

import contextlib
import os
import sys

INTERRUPTED = 130


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from plackett.cli import app

        app(prog_name="plackett")
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] == "plackett":
            raise
        sys.exit(f"plackett: the command line needs {missing.name}: pip install 'plackett[cli]'")
    except KeyboardInterrupt:
        _leave()
    except SystemExit as end:
        if end.code == INTERRUPTED:
            _leave()
        raise


def _leave() -> None:
    """End at once: threads that are in the middle of something would be waited for."""
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):  # whoever read it may be gone
            stream.flush()
    os._exit(INTERRUPTED)


if __name__ == "__main__":
    main()
