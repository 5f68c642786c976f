"""`plackett` on the command line, and `python -m plackett`."""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line, or say what to install for it."""
    try:
        from plackett.cli.commands import app

        app(prog_name="plackett")
    except ModuleNotFoundError as missing:
        if missing.name is not None and missing.name.partition(".")[0] == "plackett":
            raise
        sys.exit(f"plackett: the command line needs {missing.name}: pip install 'plackett[cli]'")
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
