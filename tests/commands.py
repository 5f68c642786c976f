"""What the tests of the command line share: a command run in this process, and the line that a mistake gives."""

from typer.testing import CliRunner

from plackett.cli.commands import app

RUNNER = CliRunner()


def plackett(*arguments, stdin=None):
    """Run a command in this process."""
    return RUNNER.invoke(app, [str(a) for a in arguments], input=stdin, prog_name="plackett")


def mistake(*arguments, stdin=None, notes=True):
    """The one line that a mistake gives, beside notes where there may be any."""
    result = plackett(*arguments, stdin=stdin)
    assert result.exit_code == 1, result.output
    assert result.stdout == "" and "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if not notes or "note:" not in line]
    assert len(lines) == 1 and lines[0].startswith("plackett: ")
    return lines[0]
