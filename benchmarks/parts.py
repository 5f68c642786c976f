"""The benchmarks by name. Each is a module with `main()` and `SMALLEST`, the constants with which it is soon over."""

from importlib import import_module

PARTS = (
    *("sweep", "sparse", "large", "acceleration", "start", "mixing", "directions", "rankings", "comparisons"),
    *("linear", "dask", "table3", "tiers"),
)
LONG = (
    *("coverage", "agreement", "verdict", "mixing_situations", "mixing_figures", "dask_files", "choices", "prediction"),
    *("fast_posterior", "published", "fit_time", "network"),
)
OTHERS = ("gpu", "gpu_fits", "gpu_dask")  # on a machine with an NVIDIA GPU
PACKAGES = ("choices", "prediction", "published")


def load_part(name, smallest=False, put=setattr):
    """The module of a benchmark, with its smallest sizes if asked for; `put` sets an attribute of it."""
    module = import_module(f"benchmarks.{name}.__main__" if name in PACKAGES else f"benchmarks.{name}")
    for constant, value in module.SMALLEST.items() if smallest else ():
        if not hasattr(module, constant):
            raise AttributeError(f"SMALLEST of {module.__name__} has {constant}, which the module does not have.")
        put(module, constant, value)
    return module
