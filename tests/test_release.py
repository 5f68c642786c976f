"""What a release says agrees: versions, changelog, workflows, commands, and the numbers of the paper."""

import json
import os
import re
import subprocess
import tomllib
from pathlib import Path

import pytest
import yaml

import plackett
from docs.paper_numbers import phrases
from tests.distributions import CONSUMER, found_wheel

ROOT = Path(__file__).parents[1]
KINDS = ["Added", "Changed", "Fixed", "Deprecated", "Removed", "Security"]


def text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def workflow(name):
    return yaml.safe_load(text(f".github/workflows/{name}.yml"))


def commands(job):
    return [step["run"] for step in job["steps"] if "run" in step]


def project():
    return tomllib.loads(text("pyproject.toml"))["project"]


def pythons_of_the_wheel():
    """The lowest and the newest Python for which the workflow tests the wheel."""
    return workflow("ci")["jobs"]["wheel"]["strategy"]["matrix"]["python"]


def test_the_numbers_of_the_paper_are_those_of_the_tables():
    assert json.loads(text("docs/paper.json")) == phrases()
    paper = " ".join(text("docs/paper.md").partition("## Summary")[2].partition("## References")[0].split())
    for about, phrase in phrases().items():
        assert phrase in paper, about
        paper = paper.replace(phrase, "")
    years = r"\b(19|20)\d\d\b"
    assert re.findall(r"\S*\d\S*", re.sub(years, "", paper)) == []


def test_every_reference_of_the_paper_is_cited():
    paper, _, references = text("docs/paper.md").partition("## References")
    entries = re.findall(r"^- (\w[\w-]*), .*?\((\d{4})\)", references, re.M | re.S)
    assert len(entries) == references.count("\n- ") > 15
    for author, year in entries:
        assert re.search(rf"{author}[^;)]*\(?{year}", paper, re.S), (author, year)


def test_the_version_is_one():
    assert re.search(r"^version: (.+)$", text("CITATION.cff"), re.M)[1] == plackett.__version__
    assert re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", plackett.__version__)
    assert "version" in project()["dynamic"]


def test_licences_of_shipped_data_are_shipped():
    folder = ROOT / "src" / "plackett" / "datasets"
    wanted = set(re.findall(r", with ([\w-]+) \|$", (folder / "README.md").read_text(encoding="utf-8"), re.M))
    assert len(wanted) == 2
    assert {path.stem for path in (folder / "licenses").glob("*.txt")} == wanted
    assert "src/plackett/datasets/licenses/*.txt" in project()["license-files"]


def test_the_changelog_has_the_usual_form():
    sections = re.split(r"^## ", text("CHANGELOG.md"), flags=re.M)[1:]
    assert re.match(r"Unreleased\n|\[", sections[0])
    for section in sections:
        title, _, body = section.partition("\n")
        assert re.fullmatch(r"Unreleased|\[?\d+\.\d+\.\d+\w*\]?( - (\d{4}-\d\d-\d\d|Unreleased))?", title)
        kinds = re.findall(r"^### (.*)$", body, re.M)
        assert set(kinds) <= set(KINDS) and len(set(kinds)) == len(kinds), title
        entries = re.findall(r"^- (.*(?:\n  .*)*)", body, re.M)
        assert entries and len(set(entries)) == len(entries)


def test_the_workflow_runs_what_is_run_here():
    jobs = workflow("ci")["jobs"]
    assert commands(jobs["all"]) == [".ci/run"]
    assert commands(jobs["wheel"]) == ['make test-dist PYTHONS="python${{ matrix.python }}"']
    setup = next(step["with"] for step in jobs["all"]["steps"] if "setup-python" in step.get("uses", ""))
    assert sorted(setup["python-version"].split()) == pythons_of_the_wheel()
    assert f"python{pythons_of_the_wheel()[-1]}" in text(".ci/run")  # by name, as the workflow puts it on PATH


def test_the_ends_of_the_supported_pythons_are_tested():
    lowest, newest = pythons_of_the_wheel()
    assert project()["requires-python"] == f">={lowest}"
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project()["classifiers"]))
    assert (named[0], named[-1]) == (lowest, newest)


def test_every_command_that_is_named_exists():
    targets = set(re.findall(r"^([a-z-]+):", text("Makefile"), re.M))
    said = {".ci/run": text(".ci/run"), **{name: text(name) for name in ("CONTRIBUTING.md", "docs/release.md")}}
    for workflow_file in (ROOT / ".github" / "workflows").glob("*.yml"):
        said[workflow_file.name] = workflow_file.read_text(encoding="utf-8")
    for place, what in said.items():
        named = re.findall(r"(?:`|bare |run: |^)make ([a-z-]+)", what, re.M)
        assert named, place
        assert set(named) <= targets, place


@pytest.mark.parametrize(("tag", "accepted"), [(f"v{plackett.__version__}", True), ("v0.0.7", False), ("v", False)])
def test_only_the_tag_of_the_version_is_published(tag, accepted):
    build = workflow("publish")["jobs"]["build"]
    check = next(command for command in commands(build) if "GITHUB_REF_NAME" in command)
    done = subprocess.run(["bash", "-e", "-c", check], cwd=ROOT, env={**os.environ, "GITHUB_REF_NAME": tag})
    assert (done.returncode == 0) == accepted


def test_what_is_published_is_what_was_tested():
    publish = workflow("publish")
    jobs = publish["jobs"]
    assert any(command.startswith("make test-dist") for command in commands(jobs["build"]))
    assert jobs["publish"]["needs"] == "build" and commands(jobs["publish"]) == []
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["permissions"] == {"id-token": "write"} and publish["permissions"] == {"contents": "read"}


def test_pages_of_models_describe_inherited_methods():
    template = text("docs/_templates/autosummary/class.rst")
    (ends,) = re.findall(r":inherited-members: (.*)", template)
    ends = {end.strip() for end in ends.split(",")}
    for name in ("PlackettLuceClassifier", "PlackettLuceRanker", "PlackettLuceChooser"):
        classes = [base for base in getattr(plackett, name).__mro__ if base.__name__ not in ends]
        shown = {member for base in classes if base.__module__.startswith("plackett") for member in vars(base)}
        assert {"predict", "predict_proba", "predict_interval", "summary", "save"} <= shown


def test_a_folder_without_one_wheel_and_one_sdist_is_refused(tmp_path):
    with pytest.raises(SystemExit, match="must hold one wheel and one sdist"):
        found_wheel(tmp_path)


def test_the_consumer_uses_what_is_exported():
    used = "\n".join(path.read_text(encoding="utf-8") for path in CONSUMER.glob("*.py"))
    models = {name for name in plackett.__all__ if name.startswith("PlackettLuce") or name == "SparseLogitClassifier"}
    assert all(name in used for name in {*models, "Rankings", "ChoiceSets", "Tastes", "load", "datasets"})
    assert "# wrong" in used


def test_no_path_of_a_machine_is_named():
    unwanted = re.compile(r"\.{2}/shared/|(?<![\w.])/(?:home|root|Users|work)/\w+")
    folders = ("src", "tests", "docs", "benchmarks", "examples", ".github", ".ci")
    paths = [path for folder in folders for path in (ROOT / folder).rglob("*")] + list(ROOT.glob("*"))
    read = [
        path
        for path in paths
        if path.suffix in (".md", ".py", ".toml", ".yml", ".rst", ".cff") or path.name in ("Makefile", "run")
        if not {"_build", "auto_examples", "api"} & set(path.parts)  # made by `make docs`
    ]
    assert len(read) > 400
    assert [path for path in read if unwanted.search(path.read_text(encoding="utf-8"))] == []
