"""Kernels called by address, and what is compiled when: the ground that the other kernels stand on."""

import json
import os
import subprocess
import sys

import numpy as np
import pytest

from plackett.compute.compiled import REAL, REALS, WHOLE, Pointer, apart, jit

KERNELS = """
from plackett.compute.compiled import REAL, REALS, apart, jit
from plackett.compute import compiled, side_by_side

@apart(REAL(REAL))
def half(x):
    return 0.5 * x

@apart(REAL(REAL))
def unused(x):
    return half(x)

@apart(REAL(REAL), REAL(REALS))
def first(x):
    return half(1.0)

@apart(REAL(REAL))
def quarter(x):
    return half(half(x))

@jit
def entry(x):
    return quarter(x) + first(x)
"""
MADE = "print(sorted(s.split('.')[-2] for s, k in compiled.APART.items() if k.made and 'kernels.' in s))\n"


@apart(REAL(REALS, WHOLE))
def element(x, i):
    if i < 0:
        raise ValueError("there is no such element")
    return x[i]


@jit
def from_the_end(x, i):
    return element(x, len(x) - 1 - i)


CALL = Pointer(REAL, REALS, WHOLE)
call = CALL.call


@jit
def called(address, x, i):
    return call(address, x, i)


def run(code, cache, **environment):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(cache), **environment}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    return done.stdout


def package(folder):
    """Code that imports a module with kernels."""
    (folder / "kernels.py").write_text(KERNELS)
    return f"import sys; sys.path.insert(0, {str(folder)!r})\nfrom kernels import *\n"


def test_a_kernel_by_address_from_python_and_from_kernels():
    x = np.arange(5.0)
    assert element(x, 1) == from_the_end(x, 3) == called(CALL.address(from_the_end), x, 3) == 1.0
    with pytest.raises(ValueError, match="no such element"):
        from_the_end(x, 7)
    with pytest.raises(ValueError, match="no such element"):
        called(CALL.address(from_the_end), x, 7)


def test_a_kernel_of_several_signatures_is_chosen_by_its_arguments():
    @apart(WHOLE(WHOLE), REAL(REAL))
    def double(x):
        return x + x

    @jit
    def both(i, x):
        return double(i), double(x)

    assert both(1, 0.5) == (2, 1.0)
    assert isinstance(double(1), int)
    assert isinstance(double(0.5), float)
    with pytest.raises(KeyError):
        double(1j)


def test_only_what_is_called_is_compiled_and_loaded(tmp_path):
    """Also from the cache, where the object code of a caller names what it calls."""
    code = package(tmp_path) + MADE
    for _ in range(2):
        said = run(code + "print(entry(1.0))\n" + MADE, tmp_path / "cache").split("\n")
        assert said[:3] == ["[]", "0.75", "['first', 'half', 'quarter']"]


def test_two_processes_compile_what_one_would(tmp_path):
    """The second process leaves kernels in the cache, and the first compiles none of those."""
    code = package(tmp_path) + (
        "import json, plackett.compute.compiled as c\n"
        "side_by_side.ENOUGH, compiled_here = 1, []\n"
        "class Count(c.event.Listener):\n"
        "    def on_start(self, event): compiled_here.append(event.data['dispatcher'].py_func.__name__)\n"
        "    def on_end(self, event): pass\n"
        "c.event.register('numba:compile', Count())\n"
    )
    wait = (  # the first process begins when the second has finished
        "begin = side_by_side._second_process\n"
        "import contextlib\n"
        "@contextlib.contextmanager\n"
        "def finished(*given):\n"
        "    with begin(*given) as process:\n"
        "        process.wait()\n"
        "        yield process\n"
        "side_by_side._second_process, side_by_side._can_start = finished, lambda: True\n"
    )
    end = "print(json.dumps([entry(1.0), compiled_here]))\n"
    value, here = json.loads(run(code + "side_by_side._can_start = lambda: False\n" + end, tmp_path / "one"))
    assert value == 0.75
    assert {"half", "quarter", "first", "entry"} <= set(here)
    value, here = json.loads(run(code + wait + end, tmp_path / "two"))
    assert value == 0.75
    assert {"first", "entry"} <= set(here)
    assert not {"half", "quarter"} & set(here)


def test_callees_are_found_in_cells_and_modules(tmp_path):
    code = package(tmp_path) + (
        "import kernels\n"
        "def enclosing(callee):\n"
        "    @jit\n"
        "    def outer(x):\n"
        "        return callee(x) + kernels.quarter(x)\n"
        "    return outer\n"
        "found = compiled._callees(enclosing(kernels.unused).py_func)\n"
        "print(*(kernel.function.__name__ for kernel in found))\n"
        "compiled.make_together(enclosing(kernels.unused))\n" + MADE
    )
    assert run(code, tmp_path / "cache") == "half unused quarter\n['half', 'quarter', 'unused']\n"


def test_a_second_process_that_fails_is_done_without(tmp_path):
    code = package(tmp_path) + (
        "side_by_side.ENOUGH, side_by_side.CODE = 1, 'raise SystemExit(1)'\n"
        "side_by_side._can_start = lambda: True\n"
        "print(entry(1.0))\n"
    )
    assert run(code, tmp_path / "cache") == "0.75\n"
