"""GPU behind ``engine="cupy"``: detection, memory checks and compilation of kernels.

Kernels are the files of ``cuda/``, compiled for the sizes of the data; CuPy caches them on disk. This module knows no
model.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from typing import Any

OLDEST = 80  # ten times the compute capability that supports asynchronous copies to shared memory
MANY_ROWS, MANY_ENTRIES = 20_000, 1 << 23  # sizes of X and W from which a GPU is faster
OTHERWISE = "Or use engine='auto', which runs on the processor."


@cache
def gpu() -> Any:
    """Return CuPy if it sees a suitable GPU; otherwise raise an error that names what is missing."""
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
    """True if CuPy is installed and sees a suitable GPU."""
    if find_spec("cupy") is None:
        return False
    try:
        gpu()
    except (ImportError, RuntimeError):
        return False
    return True


def chosen_engine(asked: str, gains: bool, needed: int) -> str:
    """Resolve "auto": the GPU if it `gains`, is present and half of its memory holds the bytes `needed`."""
    return "cupy" if asked == "auto" and gains and present() and 2 * needed <= free_bytes() else asked


def check_capability(capability: str) -> None:
    """Raise if the GPU is too old; "86" is compute capability 8.6."""
    if int(capability) < OLDEST:
        raise RuntimeError(
            f"engine='cupy' needs a GPU of compute capability {OLDEST / 10} or later (Ampere, 2020), and this one has "
            f"{int(capability) / 10}. {OTHERWISE}"
        )


def check_fits(needed: int, free: int, what: str, single: bool) -> None:
    """Raise if the data do not fit in GPU memory; `single` if they already are float32."""
    if needed > free:
        smaller = "" if single else "Features in float32 take half: give X or a map in float32. "
        raise MemoryError(
            f"{what} take {needed:,} bytes on the GPU, and {free:,} are free there. {smaller}"
            f"Rows can be divided among several GPUs with engine='dask'. {OTHERWISE}"
        )


def free_bytes() -> int:
    """Free GPU memory in bytes, including unused blocks of CuPy's pool."""
    cupy = gpu()
    free: int = cupy.cuda.runtime.memGetInfo()[0] + cupy.get_default_memory_pool().free_bytes()
    return free


@cache
def chip_bytes() -> int:
    """Shared memory in bytes that one block may use."""
    most: int = gpu().cuda.Device().attributes["MaxSharedMemoryPerBlockOptin"]
    return most


@cache
def kernel(name: str, sources: tuple[str, ...], chip: int = 0, **sizes: object) -> Any:
    """Compile a kernel from these files with so many bytes of shared memory; `sizes` are compile-time constants."""
    folder = files("plackett.engines") / "cuda"
    code = "\n".join((folder / f"{source}.cu").read_text(encoding="utf-8") for source in sources)
    defined = tuple(f"-D{size}={value}" for size, value in sizes.items())
    made = gpu().RawModule(code=code, options=("--std=c++17", *defined)).get_function(name)
    if chip > 48 << 10:
        made.max_dynamic_shared_size_bytes = chip
    return made
