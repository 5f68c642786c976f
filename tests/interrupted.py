"""The command line, interrupted: `python interrupted.py MOMENT ARGUMENTS` sends itself SIGINT at that moment."""

import ctypes
import importlib
import os
import signal
import sys
import threading


def interrupt():
    os.kill(os.getpid(), signal.SIGINT)


def interrupt_all():
    """Whom a terminal sends it to."""
    os.killpg(os.getpgid(0), signal.SIGINT)


def before(owner, name, when=1, delay=0.0, interrupt=interrupt):
    """Interrupt at a call of a function, the first or a later one, at once or in the middle of it."""
    real, calls = getattr(owner, name), []

    def wrapper(*args, **kwargs):
        calls.append(name)
        if len(calls) == when:
            threading.Timer(delay, interrupt).start() if delay else interrupt()
        return real(*args, **kwargs)

    setattr(owner, name, wrapper)


class WhileImporting:
    def __init__(self, name):
        self.name = name

    def find_spec(self, name, *_):
        if name == self.name:
            interrupt()


def arrange(moment):
    if moment.startswith("import "):
        sys.meta_path.insert(0, WhileImporting(moment.removeprefix("import ")))
        return
    if moment == "compiling":
        before(importlib.import_module("numba.core.dispatcher").Dispatcher, "compile", delay=0.5)
    elif moment == "held-out rows":
        before(importlib.import_module("plackett.directions.walk").HamiltonianSampler, "advance", when=30)
    elif moment == "held-out modes":
        before(importlib.import_module("plackett.directions.map"), "ascend", when=5)
    elif moment == "tuning":
        before(importlib.import_module("plackett.inference.moves.exchange").ExchangeSampler, "adapt", when=2)
    elif moment == "drawing":
        before(importlib.import_module("plackett.inference.store").Store, "halve")
    elif moment == "diagnosing":
        before(importlib.import_module("plackett.inference.gibbs"), "diagnose_weights")
    elif moment == "a callback":  # which loses what is raised in it, as the compiler's do
        tablefile, lost = importlib.import_module("plackett.data.tablefile"), ctypes.CFUNCTYPE(None)(interrupt)
        real = tablefile.read_table
        tablefile.read_table = lambda *args, **kwargs: (lost(), real(*args, **kwargs))[1]
    elif moment == "all are drawing":
        before(importlib.import_module("plackett.inference.store").Store, "halve", interrupt=interrupt_all)
    elif moment == "writing":
        before(os, "fsync")


if __name__ == "__main__":
    moment, *sys.argv[1:] = sys.argv[1:]
    arrange(moment)
    from plackett.__main__ import main

    main()
