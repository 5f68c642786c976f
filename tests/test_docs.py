"""The pages: every public name is in the API, code runs, formulas are typeset, and the table of contents is whole."""

import contextlib
import importlib
import io
import pkgutil
import re
from pathlib import Path

import matplotlib
import pytest
from docutils.utils.math.latex2mathml import tex2mathml

import plackett
from plackett.model.verdict import STANDARD

matplotlib.use("Agg")
DOCS = Path(__file__).parent.parent / "docs"
PAGES = sorted(DOCS.glob("*.md"))
WITH_CODE = [page.relative_to(DOCS).as_posix() for page in [*PAGES, *sorted(DOCS.glob("coming/*.md"))]]


def documented():
    """The objects listed on the API page, by the name it gives them."""
    module, found = None, {}
    for line in (DOCS / "api.rst").read_text(encoding="utf-8").splitlines():
        if line.startswith(".. currentmodule:: "):
            module = importlib.import_module(line.split()[-1])
        elif re.fullmatch(r"   \w+", line):
            found[f"{module.__name__}.{line.strip()}"] = getattr(module, line.strip())
    return found


def public():
    """Every name in the ``__all__`` of the package and of its modules."""
    modules = [plackett]
    for info in pkgutil.walk_packages(plackett.__path__, "plackett."):
        if not info.name.endswith("__main__"):
            modules.append(importlib.import_module(info.name))
    for module in modules:
        for name in getattr(module, "__all__", ()):
            yield f"{module.__name__}.{name}", getattr(module, name)


def test_every_public_name_is_documented():
    listed = list(documented().values())
    missing = [name for name, thing in public() if not any(thing is other for other in listed)]
    assert missing == []
    assert len(listed) > 30


def test_everything_documented_has_a_docstring():
    for name, thing in documented().items():
        if callable(thing):
            assert thing.__doc__ and len(thing.__doc__) > 20, name


def test_every_page_is_in_the_contents():
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    trees = "\n".join(re.findall(r"```{toctree}(.*?)```", text, re.S)).split()
    for page in [*PAGES, *DOCS.glob("*/*.md")]:
        name = page.relative_to(DOCS).with_suffix("").as_posix()
        if name != "index" and not name.startswith(("_build", "auto_examples", "api/")):
            assert name in trees, name


CODE = re.compile(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", re.S | re.M)


@pytest.mark.filterwarnings("ignore:.*filled in with the median")
@pytest.mark.brief("README", "start", "extending")
@pytest.mark.parametrize("page", [*WITH_CODE, "../README.md"])
def test_code_of_the_page_runs(page, tmp_path, monkeypatch):
    """Blocks marked ``python``, in order; a fragment that cannot run alone is marked ``py``.

    A block marked ``text`` right below is what the code prints; output of chains that are too short is marked ``none``.
    """
    import matplotlib.pyplot as plt

    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for code, shown in CODE.findall((DOCS / page).read_text(encoding="utf-8")):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, page, "exec"), names)
        if shown:
            same_output(printed.getvalue(), shown)
    plt.close("all")


def same_output(printed, shown):
    """The same words; numbers to a quarter or .05, since another processor makes other draws."""
    found, expected = (
        [number(word) for word in text.replace("[", " ").replace("]", " ").split()] for text in (printed, shown)
    )
    assert [word for word in found if isinstance(word, str)] == [word for word in expected if isinstance(word, str)]
    assert [word for word in found if not isinstance(word, str)] == pytest.approx(
        [word for word in expected if not isinstance(word, str)], rel=0.25, abs=0.05, nan_ok=True
    )


def number(word):
    """A word as a number, if it is one."""
    try:
        return float(word.replace(",", ""))
    except ValueError:
        return word


FORMULA = re.compile(r"\$\$(.+?)\$\$|\$([^$\n]+)\$", re.S)


def prose(page):
    """A page without its code."""
    text = re.sub(r"^```(?!{).*?^```", "", (DOCS / page).read_text(encoding="utf-8"), flags=re.S | re.M)
    return re.sub(r"`[^`]*`", "", text)


@pytest.mark.parametrize("page", WITH_CODE)
def test_formulas_of_the_page_are_typeset(page):
    """Every formula is one that the build can set, and none is left as plain text such as λ_k or exp(x)."""
    text = prose(page)
    for display, inline in FORMULA.findall(text):
        assert tex2mathml(display or inline, as_block=bool(display)).startswith("<math")
    assert not re.findall(r"[α-ωΑ-Ω]\w*_\w|\b[A-Z]_[a-z]+\b|[Σ∏√∝∘⟨]|\bexp\(|\bPr\(", FORMULA.sub("", text))


def test_the_front_page_shows_a_picture_and_code_for_each_kind_of_data():
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    figures = re.findall(r"```{figure} auto_examples/(.*?)images/sphx_glr_(\w+)_\d+\.png", text)
    assert [kind for kind, _ in figures] == ["", "rankings/", "choices/"]
    assert all((DOCS.parent / "examples" / kind / f"{name}.py").is_file() for kind, name in figures)
    assert len(re.findall(r"^```python$", text, re.M)) == 3


def test_the_first_page_about_the_model_states_it():
    assert r"\frac{W(x)\cdot\lambda_k}" in (DOCS / "model.md").read_text(encoding="utf-8")


def test_the_standard_of_a_run_is_stated():
    said = " ".join((DOCS / "inference.md").read_text(encoding="utf-8").replace("> ", "").split())
    assert STANDARD in said
