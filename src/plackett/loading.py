"""Loading of model files; importing this imports every model, so that each has registered its declaration."""

from __future__ import annotations

import os
from typing import Any, BinaryIO

from plackett.chooser import PlackettLuceChooser
from plackett.classifier import PlackettLuceClassifier
from plackett.logit import SparseLogitClassifier
from plackett.output.modelfile import read
from plackett.ranker import PlackettLuceRanker

LOADED = (PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceRanker, PlackettLuceChooser)


def load(path: str | os.PathLike[str] | BinaryIO) -> Any:
    """Read a model written by the `save` of a model or by ``plackett fit``; nothing in the file is executed.

    Parameters
    ----------
    path : path or binary stream
        The model file.

    Returns
    -------
    PlackettLuceClassifier, SparseLogitClassifier, PlackettLuceRanker or PlackettLuceChooser
        A model from ``plackett fit`` knows its table: it predicts and explains rows of such a data frame.

    Examples
    --------
    >>> import tempfile, os
    >>> from sklearn.datasets import load_iris
    >>> from plackett import PlackettLuceClassifier, load
    >>> X, y = load_iris(return_X_y=True)
    >>> clf = PlackettLuceClassifier("em").fit(X, y)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     clf.save(os.path.join(folder, "iris.plk"))
    ...     same = load(os.path.join(folder, "iris.plk"))
    >>> bool((same.predict_proba(X) == clf.predict_proba(X)).all())
    True
    """
    if isinstance(path, (str, os.PathLike)):
        with open(path, "rb") as stream:
            return read(stream, os.fspath(path))
    return read(path, "this")
