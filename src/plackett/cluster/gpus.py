"""Copies of blocks on the GPUs of workers, made on first use and never sent with the block.

Either all workers have a GPU, or none is used: rounding differs, and results must not depend on lost workers. The
client decides before it asks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from plackett.cluster.client import ClusterError
from plackett.cluster.held import address_here
from plackett.cluster.storage import Block
from plackett.engines.device import gpu, present

if TYPE_CHECKING:
    from distributed import Client


def go_to_gpus(client: Client, gains: bool) -> bool:
    """True if passes run on GPUs: if that `gains`, and every worker has a suitable one."""
    if not gains:
        return False
    found = client.run(present, on_error="return").values()
    return bool(found) and all(each is True for each in found)


def copy_of(block: Block, which: object, bring: Callable[[], Any]) -> Any:
    """Return the copy of a block on this worker's GPU, made by `bring`; a copy of another kind is released."""
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
