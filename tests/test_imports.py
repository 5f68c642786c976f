"""Which part of the package may import which: the "must not know" column of docs/architecture.md.

Imports inside functions count; those for type checkers alone do not. A failure lists each forbidden import as
``importer:line imports imported``.
"""

import ast
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1] / "src"
FACES = (
    "asking",
    "chooser",
    "choosing",
    "classifier",
    "describing",
    "estimator",
    "fit",
    "race_model",
    "ranker",
    "ranking",
    "regularization",
    "segmenting",
    "tasting",
    "tiering",
)
OUTSIDE = (*FACES, "cli", "paper", "plots", "report", "explaining")  # what nothing below may know
OPTIONAL = {
    *("arviz", "arviz_base", "cupy", "dask", "distributed", "IPython", "matplotlib", "pandas", "polars", "polyagamma"),
    *("joblib", "pyarrow", "rich", "threadpoolctl", "typer"),
}
SLOW = {"importlib", "scipy", "sklearn"}  # of which parts are imported where a first call needs them
# Packages or modules, and what they must not import.
RULES = {
    "capabilities": ("*",),
    "optional": ("*",),
    "compute": (*OUTSIDE, "data", "features", "engines", "inference", "directions", "posterior", "cluster", "model"),
    "data": (*OUTSIDE, "features", "engines", "inference", "directions", "posterior", "cluster", "logit"),
    "features": (*OUTSIDE, "inference", "directions", "posterior", "cluster", "logit", "data.labels"),
    "responses": (*OUTSIDE, "features", "engines", "inference", "directions", "posterior", "cluster", "data"),
    "model": (*OUTSIDE, "engines", "inference", "directions", "posterior", "cluster", "data.rankings"),
    "engines": (*OUTSIDE, "inference", "directions", "posterior", "logit", "priors"),
    "inference": (*OUTSIDE, "directions", "cluster", "logit"),
    "directions": (*OUTSIDE, "posterior", "logit"),
    "posterior": (*OUTSIDE, "inference", "directions", "engines", "cluster"),
    "cluster": OUTSIDE,
    "linear": (*OUTSIDE, "directions", "engines", "cluster", "logit"),
    "segments": (*OUTSIDE, "directions", "cluster", "logit"),
    "tastes": (*OUTSIDE, "directions", "posterior", "cluster", "logit"),
    "tiers": (*OUTSIDE, "directions", "cluster", "logit"),
    "logit": ("engines", "features", "cluster", "directions", "race_model"),
    "output": ("cli", "paper", "plots", "report", "directions", "engines", "cluster"),
    "plots": ("inference", "engines", "directions", "cluster", "cli", "paper", "report"),
    "report": ("inference", "engines", "directions", "cluster", "cli", "paper"),
}

# Modules that do not keep the rule of their package yet, and how many imports are inside functions: lower these as they
# go, never raise them.
NOT_YET = {
    "compute": {"plackett.compute.pieces"},
    "logit": {"plackett.logit.run", "plackett.logit.classifier", "plackett.logit.stored"},
    "output": {"plackett.output.constants", "plackett.output.arviz", "plackett.output.stored"},
}
INSIDE_FUNCTIONS = 11


class Import(tuple):
    """(importer, line, imported, whether it is at the top of the module)."""

    def __str__(self):
        importer, line, imported, _ = self
        return f"{importer}:{line} imports {imported}"


@cache
def modules():
    """Paths by dotted name."""
    paths = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in ROOT.rglob("*.py")}
    return {name.removesuffix(".__init__"): path for name, path in paths.items()}


@cache
def imports():
    """All imports of the package, of its own modules by their full names, and of others."""
    found = []
    for name, path in modules().items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        unseen = {
            id(node)
            for guard in ast.walk(tree)
            if isinstance(guard, ast.If) and "TYPE_CHECKING" in ast.dump(guard.test)
            for node in ast.walk(guard)
        }
        inside = {
            id(node)
            for outer in ast.walk(tree)
            if isinstance(outer, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda))
            for node in ast.walk(outer)
        }
        for node in ast.walk(tree):
            if id(node) in unseen:
                continue
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{name}:{node.lineno} is a relative import"
                names = {f"{node.module}.{each.name}" for each in node.names}
                imported = {each if each in modules() else node.module for each in names}
            elif isinstance(node, ast.Import):
                imported = {each.name for each in node.names}
            else:
                continue
            found += [Import((name, node.lineno, each, id(node) not in inside)) for each in sorted(imported)]
    return found


def within(name, part):
    """Whether a module is that part of the package, or belongs to it."""
    return name == f"plackett.{part}" or name.startswith(f"plackett.{part}.")


def breaches(part):
    """Imports that the rule of this part forbids."""
    forbidden = RULES[part]
    return [
        str(each)
        for each in imports()
        if within(each[0], part)
        and each[2].startswith("plackett.")
        and not within(each[2], part)
        and (forbidden == ("*",) or any(within(each[2], other) for other in forbidden))
    ]


def cycles():
    """Sets of modules that import one another, largest first (Tarjan's algorithm)."""
    graph = {name: set() for name in modules()}
    for importer, _, imported, _ in imports():
        if imported in graph and imported not in (importer, importer.rpartition(".")[0]):
            graph[importer].add(imported)
    index, low, stack, found = {}, {}, [], []

    def visit(name):
        index[name] = low[name] = len(index)
        stack.append(name)
        for other in sorted(graph[name]):
            if other not in index:
                visit(other)
                low[name] = min(low[name], low[other])
            elif other in stack:
                low[name] = min(low[name], index[other])
        if low[name] == index[name]:
            place = stack.index(name)
            component = stack[place:]
            del stack[place:]
            if len(component) > 1:
                found.append(sorted(component))

    for name in graph:
        if name not in index:
            visit(name)
    return sorted(found, key=len, reverse=True)


@pytest.mark.parametrize("part", RULES)
def test_nobody_imports_what_it_must_not_know(part):
    found = [each for each in breaches(part) if each.partition(":")[0] not in NOT_YET.get(part, ())]
    assert not found, "\n".join(["", *found])


def test_no_modules_import_one_another():
    found = [" ".join(each) for each in cycles()]
    assert not found, "\n".join(["", *found])


def test_no_further_module_of_the_package_is_imported_inside_a_function():
    found = [str(each) for each in imports() if not each[3] and each[2].split(".")[0] == "plackett"]
    assert len(found) <= INSIDE_FUNCTIONS, "\n".join(["", *found])


def test_only_optional_and_slow_libraries_are_imported_inside_functions():
    allowed = OPTIONAL | SLOW | {"plackett"}
    found = [str(each) for each in imports() if not each[3] and each[2].split(".")[0] not in allowed]
    assert not found, "\n".join(["", *found])


def test_no_file_name_stands_in_more_than_two_packages():
    places = Counter(path.name for path in ROOT.rglob("*.py"))
    assert {name for name, times in places.items() if times > 2} == {"__init__.py", "base.py"}


def test_cycles_are_found(monkeypatch):
    """The search itself, on imports that are made up."""
    made = [("a", 1, "b", True), ("b", 1, "c", False), ("c", 1, "a", True), ("d", 1, "a", True)]
    monkeypatch.setattr("test_imports.imports", lambda: [Import(each) for each in made])
    monkeypatch.setattr("test_imports.modules", lambda: dict.fromkeys("abcd"))
    assert cycles() == [["a", "b", "c"]]
