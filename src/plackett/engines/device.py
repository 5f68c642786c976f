"""The GPU behind ``engine="cupy"``: whether there is one, whether data fit on it, and kernels compiled for it.

Kernels are the files of ``cuda/``, compiled for the sizes of the data at hand; CuPy keeps them on disk. This module
knows no model.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

OLDEST = 80  # compute capability, times ten, from which tiles can be copied to the chip while others are at work
MANY_ROWS, MANY_ENTRIES = 20_000, 1 << 23  # of X and W, from which a GPU gains
OTHERWISE = "Or use engine='auto', which runs on the processor."


@cache
def gpu() -> Any:
    """CuPy, where it sees a GPU that can run the kernels; otherwise an error that says what is missing."""
    try:
        import cupy
    except ImportError as error:
        raise ImportError(
            "engine='cupy' needs CuPy, which is not installed: pip install 'plackett[cuda]', or the package of CuPy "
            f"for your version of CUDA (https://docs.cupy.dev/en/stable/install.html). {OTHERWISE}"
        ) from error
    try:
        count = cupy.cuda.runtime.getDeviceCount()
    except cupy.cuda.runtime.CUDARuntimeError as error:
        raise RuntimeError(f"engine='cupy' needs an NVIDIA GPU, and CUDA says: {error}. {OTHERWISE}") from error
    if count == 0:
        raise RuntimeError(f"engine='cupy' needs an NVIDIA GPU, and CuPy sees none. {OTHERWISE}")
    check_capability(cupy.cuda.Device().compute_capability)
    return cupy


@cache
def present() -> bool:
    """Whether CuPy is installed and sees a GPU that can run the kernels."""
    if find_spec("cupy") is None:
        return False
    try:
        gpu()
    except (ImportError, RuntimeError):
        return False
    return True


def chosen_engine(asked: str, gains: bool, needed: int) -> str:
    """The engine of a fit: "auto" is the GPU if it `gains`, one is present and half of it holds the bytes `needed`."""
    return "cupy" if asked == "auto" and gains and present() and 2 * needed <= free_bytes() else asked


def check_capability(capability: str) -> None:
    """Refuse a GPU that is too old; "86" is compute capability 8.6."""
    if int(capability) < OLDEST:
        raise RuntimeError(
            f"engine='cupy' needs a GPU of compute capability {OLDEST / 10} or later (Ampere, 2020), and this one has "
            f"{int(capability) / 10}. {OTHERWISE}"
        )


def check_fits(needed: int, free: int, what: str, single: bool) -> None:
    """Refuse data that the GPU has no room for; `single` if they are float32 already."""
    if needed > free:
        smaller = "" if single else "Features in float32 take half: give X or a map in float32. "
        raise MemoryError(
            f"{what} take {needed:,} bytes on the GPU, and {free:,} are free there. {smaller}"
            f"Rows can be shared out to several GPUs with engine='dask'. {OTHERWISE}"
        )


def free_bytes() -> int:
    """What can still be had on the GPU: free, or held by CuPy for nobody."""
    cupy = gpu()
    free: int = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    return free


@cache
def chip_bytes() -> int:
    """Shared memory that one block may have."""
    most: int = gpu().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return most


@cache
def kernel(name: str, sources: tuple[str, ...], chip: int = 0, **sizes: object) -> Any:
    """A kernel of these files with so many bytes of shared memory, where `sizes` are what it knows when compiled."""
    folder = files("plackett.engines") / "cuda"
    code = "\n".join((folder / f"{source}.cu").read_text(encoding="utf-8") for source in sources)
    defined = tuple(f"-D{size}={value}" for size, value in sizes.items())
    made = gpu().RawModule(code=code, options=("--std=c++17", *defined)).get_function(name)
    if chip > 48 << 10:
        made.max_dynamic_shared_size_bytes = chip
    return made
