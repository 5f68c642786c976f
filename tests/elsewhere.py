"""Run the numerical tests as another processor would: `python tests/elsewhere.py [--as NAME] [arguments of pytest]`.

Compiled kernels, BLAS and NumPy use other instructions there, round differently and add in another order. By default
the processor is an older one than this: with AVX2 where this one has AVX-512, without either where it has AVX2 only.
"""

import os
import platform
import sys
from pathlib import Path

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

HERE = Path(__file__).parent
AVX512 = ("AVX512", "X86_V4")  # beginnings of NumPy's names
# a processor for LLVM, the same for OpenBLAS, and what NumPy leaves out of that which it would choose by processor
PROCESSORS = {
    "haswell": ("haswell", "Haswell", AVX512),
    "znver2": ("znver2", "Zen", AVX512),
    "nehalem": ("nehalem", "Nehalem", ("",)),
    "arm": ("generic", "ARMV8", ("",)),
}
# tests of words, files, faults and pictures, which compute little that rounding could change
LEFT_OUT = {
    "blas",
    "cli",
    "cli_choices",
    "cli_rankings",
    "datasets",
    "dask_command",
    "dask_faults",
    "dask_gpus",
    "dask_keeper",
    "docs",
    "errors",
    "interruption",
    "modelfile",
    "paper",
    "paper_parts",
    "plots",
    "prediction_benchmark",
    "preflib",
    "ranking_plots",
    "report",
    "report_browser",
    "report_situations",
    "settings",
    "start",
    "table",
}


def usual():
    """A processor that differs from this one."""
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return "arm"
    return "haswell" if any(__cpu_features__.get(name) for name in ("AVX512F", "X86_V4")) else "nehalem"


def environment(name):
    """Variables that make this processor that one, with a cache of kernels of its own."""
    llvm, openblas, beyond = PROCESSORS[name]
    off = [each for each in __cpu_dispatch__ if __cpu_features__.get(each) and each.startswith(beyond)]
    cache = Path(sys.prefix) / "kernels" / name
    found = {"NUMBA_CPU_NAME": llvm, "NUMBA_CPU_FEATURES": "", "OPENBLAS_CORETYPE": openblas}
    return found | {"NPY_DISABLE_CPU_FEATURES": " ".join(off), "NUMBA_CACHE_DIR": str(cache)}


def main(arguments):
    name = arguments.pop(1) if arguments[:1] == ["--as"] and len(arguments) > 1 else usual()
    arguments = arguments[1:] if arguments[:1] == ["--as"] else arguments
    if name not in PROCESSORS:
        sys.exit(f"--as must be one of {', '.join(PROCESSORS)}, got {name!r} instead.")
    if not any(each.endswith(".py") or ".py::" in each for each in arguments):
        names = (path.stem.removeprefix("test_") for path in sorted(HERE.glob("test_*.py")))
        arguments += [str(HERE / f"test_{each}.py") for each in names if each not in LEFT_OUT]
    print(f"as {name}:", *(f"{key}={value!r}" for key, value in environment(name).items()), flush=True)
    os.execve(
        sys.executable, [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        os.environ | environment(name),
    )  # fmt: skip


if __name__ == "__main__":
    main(sys.argv[1:])
