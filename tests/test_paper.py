"""The machinery of the reproduction: paper values, verdicts, runs and their files, the page, the command."""

import json
import math
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from plackett.output.files import write_whole
from plackett.paper import PARTS, page, reproduce
from plackett.paper.document import PaperColumn, PaperSection, PaperTable, written
from plackett.paper.runs import Job, Results, run
from plackett.paper.values import COLON, SETS, SUSHI, TABLE1, TABLE2, TABLE3, Spread
from plackett.paper.verdicts import AGREES, BETTER, IMPOSSIBLE, WORSE, compare, difference, paired


def test_the_papers_tables_are_complete_and_consistent():
    assert set(TABLE1) == set(TABLE2) == set(TABLE3) == set(SETS) and len(SETS) == 6
    assert all(set(row) == {"logit", "gibbs", "variational"} for row in TABLE2.values())
    assert all(set(row) == {"logit", "gibbs"} for row in TABLE3.values())
    assert set(COLON) == set(SUSHI) == {"gibbs", "logit"}
    for name, row in TABLE3.items():  # printed time/ESS and relative speed follow from printed time and ESS
        for cell in row.values():  # ESS and time are themselves rounded
            low, high = (cell.seconds - 0.05) / (cell.ess + 0.5), (cell.seconds + 0.05) / (cell.ess - 0.5)
            assert low - 5e-4 <= cell.seconds_per_draw <= high + 5e-4, name
        costs = [cell.seconds_per_draw for cell in row.values()]
        fastest = max(cell.speed for cell in row.values())
        assert fastest == pytest.approx(max(costs) / min(costs), rel=0.25), name
        assert min(cell.speed for cell in row.values()) == 1


def test_verdict_counts_standard_errors_of_the_difference():
    paper = Spread(0.2, 0.04)
    ours = [0.19, 0.21]  # mean 0.2, deviation 0.01·√2
    assert difference(Spread(0.25, 0.03), 9, paper, 16) == pytest.approx(0.05 / math.hypot(0.01, 0.01))
    assert compare(ours, paper, 16).verdict == AGREES
    error = math.hypot(0.01, 0.04 / 4)  # of the difference of the means
    for shift, verdict in ((1.9, AGREES), (2.1, WORSE), (-1.9, AGREES), (-2.1, BETTER)):
        found = compare(np.array(ours) + shift * error, paper, 16)
        assert found.verdict == verdict and found.z == pytest.approx(shift)


def test_a_value_above_the_largest_class_is_no_error_rate():
    lenses = TABLE2["lenses"]["gibbs"]
    assert compare([0.3, 0.4], lenses, 20, ceiling=0.375).verdict == IMPOSSIBLE
    assert compare([0.3, 0.4], lenses, 20).verdict == BETTER
    assert compare([0.35, 0.35, 0.4], COLON["gibbs"], 20, ceiling=0.355).verdict == AGREES  # above it by chance


def test_paired_differences_ignore_what_splits_share():
    splits = np.array([0.1, 0.2, 0.3, 0.4])
    mean, z = paired(splits + np.array([0.01, 0.02, 0.01, 0.02]), splits)
    assert mean == pytest.approx(0.015) and z == pytest.approx(0.015 / (0.00577350269 / 2))
    assert paired([0.1, 0.1], [0.1, 0.1]) == (0.0, 0.0)


def squared(number, folder):
    """A task that leaves a trace of having run."""
    path = write_trace(folder, number)
    return {"square": number**2, "trace": str(path)}


def write_trace(folder, number):
    from pathlib import Path

    path = Path(folder) / f"{number}.trace"
    path.write_text(f"{path.read_text() if path.exists() else ''}x")
    return path


def broken():
    raise ZeroDivisionError("on purpose")


def test_finished_runs_are_not_run_again(tmp_path):
    traces, runs = tmp_path / "traces", tmp_path / "runs"
    traces.mkdir()
    tasks = [Job(f"square-{n}", squared, {"number": n, "folder": str(traces)}, turn=-n) for n in (2, 3)]
    results = run([*tasks, tasks[0]], runs, jobs=1)
    assert [results(task)["square"] for task in tasks] == [4, 9]
    (runs / tasks[1].file).unlink()
    run(tasks, runs, jobs=1)
    assert (traces / "2.trace").read_text() == "x" and (traces / "3.trace").read_text() == "xx"
    run(tasks, runs, jobs=1, force=True)
    assert (traces / "2.trace").read_text() == "xx"
    other = Job("square-2", squared, {"number": 4, "folder": str(traces)})
    assert other.file != tasks[0].file  # other arguments are another task
    record = Results(runs).record(tasks[0])
    assert record["arguments"]["number"] == 2 and {"when", "versions", "machine"} <= set(record["made"])


def test_a_failing_run_is_named_and_leaves_no_file(tmp_path):
    task = Job("the-broken-one", broken, {})
    with pytest.raises(RuntimeError, match="the-broken-one failed: ZeroDivisionError: on purpose"):
        run([task], tmp_path, jobs=1)
    assert not list(tmp_path.iterdir())


def test_files_are_replaced_whole(tmp_path):
    path = tmp_path / "below" / "a.txt"
    write_whole(path, "first")
    write_whole(path, b"second")
    assert path.read_text() == "second" and len(list(path.parent.iterdir())) == 1


def test_page_escapes_and_loads_nothing(tmp_path):
    nasty = '<script>alert("1")</script>'
    columns = [PaperColumn("a", nasty), PaperColumn("b", "B|C")]
    table = PaperTable("numbers", nasty, columns, [{"a": nasty, "b": Spread(0.25, math.inf)}, {"a": "x", "b": None}])
    section = PaperSection("part", nasty, nasty, [nasty, table])
    path = page.write(tmp_path, nasty, [nasty], [section], {nasty: nasty})
    html, markdown = path.read_text(), (tmp_path / "index.md").read_text()
    assert "<script" not in html and html.count("&lt;script&gt;") == 13
    assert not re.search(r"<(link|script|iframe|object)|@import|url\(", html)
    assert not re.search(r'(src|href)="(?!data:|#)', html)
    assert "<script" not in re.sub(r"\\<", "", markdown) and "B\\|C" in markdown
    stored = json.loads((tmp_path / "tables" / "numbers.json").read_text())
    assert stored["rows"][0]["b"] == {"mean": 0.25, "sd": None} and stored["rows"][1]["b"] is None


@pytest.mark.parametrize(
    ("value", "spec", "text"),
    [
        (-0.04, "+.1f", "0.0"),
        (-1.26, "+.1f", "−1.3"),
        (1.26, "+.1f", "+1.3"),
        (math.inf, ".2f", "–"),
        (12345, "", "12,345"),
    ],
)
def test_numbers_as_readers_see_them(value, spec, text):
    assert written(value, spec) == text


def test_unknown_parts_and_sets_are_refused_with_the_known_ones():
    with pytest.raises(ValueError, match="part must be one of table1, .*got table9 instead"):
        reproduce(["table9"])
    with pytest.raises(ValueError, match="data set must be one of iris, got wine instead"):
        reproduce(["figure2"], datasets=["wine"])


def test_command_takes_several_datasets_after_one_option(monkeypatch, tmp_path):
    import typer

    from plackett.cli import reproduce_command as command

    asked = {}

    def record(parts, **options):
        asked.update(options, parts=parts)
        return tmp_path / "index.html"

    monkeypatch.setattr("plackett.paper.reproduce", record)
    app = typer.Typer()
    app.callback()(lambda: None)
    command.register(app)
    words = ["reproduce", "table3", "table2", "--datasets", "iris", "wine", "--quick", "--out", str(tmp_path)]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 0 and str(tmp_path / "index.html") in done.output
    assert asked["parts"] == ["table3", "table2"] and asked["datasets"] == ["iris", "wine"] and asked["quick"]
    assert CliRunner().invoke(app, ["reproduce"]).exit_code == 0
    assert not asked["parts"] and not asked["datasets"] and not asked["quick"]


def test_command_says_that_an_interrupted_run_can_go_on(monkeypatch, tmp_path):
    import typer

    from plackett.cli import reproduce_command as command

    def interrupt(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("plackett.paper.reproduce", interrupt)
    app = typer.Typer()
    app.callback()(lambda: None)
    command.register(app)
    done = CliRunner().invoke(app, ["reproduce", "--out", str(tmp_path)])
    assert done.exit_code == 130 and "kept in" in done.output


def test_every_part_has_a_module():
    from importlib import import_module

    for name in PARTS:
        module = import_module(f"plackett.paper.{name}")
        assert module.TITLE and module.DATASETS and callable(module.tasks) and callable(module.section), name


def test_a_missing_library_is_named_before_the_work_begins(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r"needs Matplotlib: pip install 'plackett\[plots\]'"):
        reproduce(["table1"])
