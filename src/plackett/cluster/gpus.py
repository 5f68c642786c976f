"""Passes on the GPUs of workers: a block has a copy there, made when it is first asked, which does not travel with it.

All workers have a GPU, or none is used: answers differ in the rounding of sums, and must not depend on which worker is
lost. The client decides, before it asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from plackett.cluster.client import ClusterError
from plackett.cluster.held import address_here
from plackett.cluster.storage import Block
from plackett.engines.device import gpu, present


def go_to_gpus(client: Any, gains: bool) -> bool:
    """Whether passes go to GPUs: where that `gains`, and every worker sees one that can run the kernels."""
    if not gains:
        return False
    found = client.run(present, on_error="return").values()
    return bool(found) and all(each is True for each in found)


def copy_of(block: Block, which: Any, bring: Callable[[], Any]) -> Any:
    """The copy of a block on this worker's GPU; another copy than `which` is let go."""
    if block.gpu_copy is None or block.gpu_copy[0] != which:
        block.gpu_copy = None
        try:
            gpu()
        except (ImportError, RuntimeError) as error:
            raise ClusterError(
                f"when this fit began all workers had a GPU, and the worker {address_here()} has none: {error} "
                "Fit again, with workers that all have one, or none."
            ) from error
        block.gpu_copy = which, bring()
        block.give_back()
    return block.gpu_copy[1]
