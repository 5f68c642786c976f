"""A fit killed again and again: `python killed.py job.json` runs it whole, then in pieces, and saves both results.

Every piece is a forked child that dies by SIGKILL when the checkpoint has grown by a random amount, so that the kills
fall before the end on a fast machine and on a slow one.
"""

import json
import os
import signal
import sys
import time
import warnings

import numpy as np
from sklearn.datasets import load_iris

from plackett import Gibbs, PlackettLuceClassifier, SparseLogitClassifier
from plackett.inference import driver

X, Y = load_iris(return_X_y=True)


def fit(settings, path=None):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if "sampler" in settings:
            return SparseLogitClassifier(**settings, checkpoint=path, random_state=3).fit(X, Y)
        return PlackettLuceClassifier(Gibbs(**settings, checkpoint=path), random_state=3, features="exp").fit(X, Y)


def save(clf, path):
    kept = {name: value for name, value in vars(clf.posterior_).items() if value is not None}
    np.savez(path, **kept, trace=clf.trace_, n_iter=clf.n_iter_)


def begin(settings, checkpoint, result):
    """Fit in a child process."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            save(fit(settings, checkpoint), result)
            status = 0
        finally:
            os._exit(status)
    return child


def size(path):
    return os.path.getsize(path) if os.path.exists(path) else 0


def main(job):
    with open(job) as stream:
        job = json.load(stream)
    settings = job["settings"]
    driver.ROUND_SECONDS = 0.005  # small portions, so that a kill is not late; they do not change the draws
    fit(settings | {"draws": 4, "tune": 1, "target_ess": None})  # loads the compiled kernels
    whole = fit(settings)
    save(whole, job["whole"])
    share = next(iter(vars(whole.posterior_).values())).nbytes / job["kills"]  # the file holds these bytes and more
    rng = np.random.default_rng(job["seed"])
    sizes = []
    for growth in rng.uniform(0, 1.6 * share, size=job["kills"]):
        before = size(job["checkpoint"])
        child = begin(settings, job["checkpoint"], job["pieces"])
        while size(job["checkpoint"]) < before + growth and os.waitpid(child, os.WNOHANG) == (0, 0):
            time.sleep(0.001)
        time.sleep(0.003 * rng.random())
        os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
        if not os.WIFSIGNALED(status):
            break
        sizes.append(size(job["checkpoint"]))
    _, status = os.waitpid(begin(settings, job["checkpoint"], job["pieces"]), 0)
    print(json.dumps({"sizes": sizes, "status": status}))


if __name__ == "__main__":
    main(sys.argv[1])
