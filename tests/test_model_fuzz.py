"""Model files that nothing can break: changed in any way, one is refused in words or predicts."""

import io

import numpy as np
import pytest

from fuzz_models import BOMBS, Report, changes, fuzz, packed, parts_of, resaved
from model_kinds import KINDS, STORED, probabilities
from plackett import load
from plackett.output import archive
from plackett.output.modelfile import ModelFileError

MEGABYTE, SECONDS = 1 << 20, 5.0  # CPU seconds


@pytest.mark.brief(6)
@pytest.mark.parametrize("name", KINDS)
def test_changed_files_are_refused_or_predict(name):
    report = fuzz([name], number=120)
    assert not report.wrong, f"{report}\n{report.wrong}"
    assert report.counts["refused"] > 60 and report.counts["same"] > 0
    assert report.memory[0] < 10 * MEGABYTE and report.seconds[0] < SECONDS, report


@pytest.mark.slow
@pytest.mark.parametrize("name", KINDS)
def test_many_changed_files_are_refused_or_predict(name):
    report = fuzz([name], number=3000, seed=1)
    assert not report.wrong, f"{report}\n{report.wrong}"
    assert report.memory[0] < 10 * MEGABYTE and report.seconds[0] < SECONDS, report


@pytest.mark.parametrize("bomb", BOMBS, ids=lambda bomb: bomb.__name__)
def test_small_files_do_not_unpack_to_large_models(bomb):
    """A file of kilobytes takes no more than the limit, and twice that where an array of that size is sorted."""
    report, content = Report(), bomb(*parts_of((STORED / "v2-chooser-exp-gibbs.plk").read_bytes()))
    report.add("chooser", bomb.__name__, content, np.empty(0))
    assert report.counts == {"refused": 1} and report.seconds[0] < SECONDS, report.wrong or report
    most = 2.5 * archive.SMALL if bomb.__name__ == "large" else 12 * MEGABYTE
    assert report.memory[0] < most, report


def test_an_array_is_unpacked_once(monkeypatch):
    """However many fields refer to it."""
    content = resaved(STORED / "v2-ranker-em.plk")
    manifest, members = parts_of(content)
    held = dict(manifest["fitted"]["dict"])
    held["weights_"] = held["posterior_"]["fields"]["dict"][0][1]
    manifest["fitted"]["dict"] = [list(pair) for pair in held.items()]
    unused = members.keys() - {f"{name}.npy" for name in _names(manifest)}
    unpacked = []
    plain = archive.Archive._unpacked
    monkeypatch.setattr(archive.Archive, "_unpacked", lambda self, name: unpacked.append(name) or plain(self, name))
    model = load(io.BytesIO(packed(manifest, {name: members[name] for name in members.keys() - unused})))
    assert model.weights_ is model.posterior_.weights and len(unpacked) == len(set(unpacked)) == len(members) - 1
    np.testing.assert_array_equal(probabilities(model), probabilities(load(io.BytesIO(content))))


def test_an_empty_list_is_no_empty_array():
    manifest, members = parts_of(resaved(STORED / "v2-chooser-persons.plk"))
    fields = dict(manifest["fitted"]["dict"])["schema_"]["fields"]["dict"]
    place = [name for name, _ in fields].index("situations")
    fields[place][1] = {"list": []}
    with pytest.raises(ModelFileError, match=r"schema_\.situations must be an empty array, got a list of 0 instead"):
        load(io.BytesIO(packed(manifest, members)))


def _names(node):
    """Arrays that a manifest refers to."""
    if isinstance(node, dict) and isinstance(node.get("array"), str):
        return {node["array"]}
    held = node.values() if isinstance(node, dict) else node if isinstance(node, list) else ()
    return set().union(*(_names(each) for each in held))


def test_every_kind_of_change_is_made():
    """The fuzzer reaches every node and every array."""
    found = [kind for kind, _ in changes(resaved(STORED / "v2-ranker-em.plk"))]
    assert set(found) == {*KINDS_OF_CHANGES} and len(found) > 5_000


KINDS_OF_CHANGES = ("added", "array", "bit", "bomb", "byte", "cut", "inserted", "member", "missing", "node", "twice")
