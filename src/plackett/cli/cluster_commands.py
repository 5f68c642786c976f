"""Commands on a Dask cluster: fit a classifier to Parquet files that the workers read."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from plackett.classifier import PlackettLuceClassifier
from plackett.cli.class_commands import origin
from plackett.cli.models import fitted, save_and_tell
from plackett.cli.options import Settings
from plackett.cluster.client import cluster, distributed
from plackett.cluster.dask_private import empty_frame
from plackett.data.columns import Number, check_column
from plackett.data.table import Table
from plackett.features.gates import Gates

if TYPE_CHECKING:
    import dask.dataframe as dd


def fit(
    settings: Settings,
    paths: list[str],
    target: str,
    drop: list[str],
    class_weight: str | None,
    scheduler: str | None,
    out: str,
) -> None:
    """Fit a classifier to Parquet files and save it."""
    with contextlib.ExitStack() as stack:
        if scheduler is not None:
            stack.enter_context(distributed().Client(scheduler))
        stack.enter_context(cluster())
        frame = _read(paths)
        for name in (target, *drop):
            check_column(empty_frame(frame), name)
        X, y = frame.drop(columns=[target, *drop]), frame[target]
        clf = PlackettLuceClassifier(**settings, class_weight=class_weight)
        words = fitted(lambda: clf.fit(X, y))
        counts = y.value_counts().compute()
    features = clf.features_
    middle = features.reference()[0] if isinstance(features, Gates) else features.mean_
    columns = tuple(Number(str(name), float(value), False) for name, value in zip(X.columns, middle, strict=True))
    clf.table_ = Table(columns, target, "error", {label: int(counts[label]) for label in clf.classes_.tolist()})
    save_and_tell(clf, out, origin(clf), words)


def _read(paths: list[str]) -> dd.DataFrame:
    """Dask data frame of Parquet files; a folder stands for all Parquet files in it."""
    import dask.dataframe as dd

    for path in paths:
        if path == "-" or path.rsplit(".", 1)[-1].lower() in ("csv", "tsv", "txt", "gz"):
            raise ValueError(f"--engine dask reads Parquet files, got {path}.")
    return dd.read_parquet(paths if len(paths) > 1 else paths[0])
