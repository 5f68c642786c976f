"""Change model files in every way and see what `plackett.load` makes of them.

A changed file must be refused with a `ModelFileError` in words, or load and predict: the same probabilities, or others
that are finite and sum to 1. ``python tests/fuzz_models.py [CHANGES PER MODEL]`` prints the counts; without a number
all changes are made.
"""

import io
import json
import re
import struct
import sys
import time
import tracemalloc
import warnings
import zipfile
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from model_kinds import KINDS, STORED, probabilities
from plackett import load
from plackett.output.modelfile import ModelFileError

NOT_WORDS = re.compile(
    r"^\W*\w*\W*$|unhashable|object is not|NoneType|has no attribute|unexpected keyword|positional argument|"
    r"not supported between|could not convert|to unpack \(|out of bounds|out of range|must be real|invalid literal|"
    r"[a-z]Error\b|ufunc|broadcast|numpy\.|np\.|<class|required argument|dtype\("
)
VALUES = [None, True, False, -1, 0, 3, 1.5, 2.0, 1e308, -1e308, 1e-308, 10**30, np.nan, np.inf, -np.inf, "", "x", "exp"]
VALUES += [[], {}, [1], {"list": []}, {"tuple": [1, 2, 3]}, {"dict": []}, {"labels": ["x", "y"]}, {"labels": [[]]}]
VALUES += [{"array": "array0"}, {"array": "nothing"}, {"array": 3}, {"dict": [[{"list": []}, 1]]}, {"dict": [[1]]}]
VALUES += [{"record": "Popen", "fields": {"dict": []}}, {"record": "Point", "fields": {"dict": []}}]
VALUES += [{"settings": "EM", "params": {"dict": []}, "fitted": {"dict": []}}, "\ud800", "a\0b", 2**63, -(2**63)]


def parts_of(content):
    """The manifest and the arrays of a model file, as bytes."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    return json.loads(members.pop("manifest.json")), members


def packed(manifest, members, how=zipfile.ZIP_STORED):
    """A model file of these parts."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", how) as archive, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that come twice
        archive.writestr("manifest.json", manifest if isinstance(manifest, str) else json.dumps(manifest))
        for name, held in members.items() if isinstance(members, dict) else members:
            archive.writestr(name, held)
    return stream.getvalue()


def npy(array, version=None):
    stream = io.BytesIO()
    np.lib.format.write_array(stream, array, version, allow_pickle=True)
    return stream.getvalue()


def lying(shape, kind="<f8", held=b""):
    """An array that is as large as it likes by its own account."""
    stream = io.BytesIO()
    np.lib.format.write_array_header_1_0(stream, {"descr": kind, "fortran_order": False, "shape": shape})
    return stream.getvalue() + held


def paths(node, at=()):
    """Every node of a manifest."""
    yield at
    held = node.items() if isinstance(node, dict) else enumerate(node) if isinstance(node, list) else ()
    for key, value in held:
        yield from paths(value, (*at, key))


def copied(manifest, at, change):
    """The manifest with what `change` does to the parent of a node, given its key."""
    manifest = json.loads(json.dumps(manifest))
    node = manifest
    for key in at[:-1]:
        node = node[key]
    change(node, at[-1])
    return manifest


def assign(value):
    def change(node, key):
        node[key] = value

    return change


def twice(node, key):
    node.insert(key, node[key]) if isinstance(node, list) else node.update({f"{key}2": node[key]})


def without(node, key):
    del node[key]


def array_changes(array):
    """Other arrays in the place of one."""
    yield from (array.astype(kind) for kind in ("f2", "f4", "f8", ">f8", "i8", "u1", "c16", "U5", "S5", "m8[s]", "?"))
    yield from (array.astype(object), np.zeros(array.shape, dtype=[("a", "f8")]), np.zeros(0), np.zeros((1,) * 33))
    yield from (array[None], array.reshape(-1), array.T, np.repeat(array[None], 2, axis=0))
    if array.ndim:
        yield from (array[:0], array[1:], array[::-1], np.concatenate([array, array]), array[..., :1], array[..., 1:])
    for value in (np.nan, np.inf, -np.inf, 0.0, -1.0, 1.0, 1e308, -1e308, 1e200, 1e-320, 5.0):
        every = np.full(array.shape, value)
        yield every
        if array.dtype.kind == "f" and array.size:
            one = array.copy()
            one.flat[0] = value
            yield one
    if array.dtype.kind in "iub":
        yield from (np.full(array.shape, value, dtype=np.int64) for value in (-1, 0, 1, 99, 2**62))
    if array.dtype.kind == "U" and array.size:
        yield from (np.full(array.shape, "x"), np.full(array.shape, ""))
        yield np.full(array.view(np.uint32).shape, 0x7FFFFFFF, dtype=np.uint32).view(array.dtype)


def changes(content):
    """Names of kinds of changes, and makers of changed files."""
    manifest, members = parts_of(content)
    size = len(content)
    for at in range(size):
        yield "byte", lambda at=at: content[:at] + bytes([content[at] ^ 0xFF]) + content[at + 1 :]
        yield "bit", lambda at=at: content[:at] + bytes([content[at] ^ (1 << at % 8)]) + content[at + 1 :]
    for at in range(0, size, 7):
        yield "cut", lambda at=at: content[:at]
        yield "inserted", lambda at=at: content[:at] + b"PK\x03" + content[at:]
    for at in paths(manifest):
        if at:
            for value in VALUES:
                yield "node", lambda at=at, value=value: packed(copied(manifest, at, assign(value)), members)
            yield "missing", lambda at=at: packed(copied(manifest, at, without), members)
            yield "twice", lambda at=at: packed(copied(manifest, at, twice), members)
    for where in ("params", "fitted"):
        for name in ("more_", "predict", "__class__", "_x_", "coef_", "mean_relevance_"):
            added = copied(manifest, (where, "dict"), lambda node, key, n=name: node[key].append([n, 1.0]))
            yield "added", lambda added=added: packed(added, members)
    for name, held in members.items():
        array = np.load(io.BytesIO(held))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            others = []
            each = array_changes(array)
            while True:
                try:
                    others.append(npy(next(each)))
                except StopIteration:
                    break
                except (ValueError, TypeError):  # texts are no numbers
                    each = (np.full(array.shape, value) for value in (np.nan, 0.0, -1, "x", True))
        others += [lying((10**9,)), lying((10**20,)), lying((-1, -1), held=bytes(8)), lying((2**31, 2**33)), held[:-1]]
        others += [
            lying((2,), "|O", bytes(16)),
            lying(array.shape, held=bytes(array.size * 8)),
            b"",
            held[:20],
            held * 2,
        ]
        others += [lying((0, 10**18)), lying((1,), "<U1", b"\xff" * 4), npy(array, (2, 0)), npy(array, (3, 0))]
        others += [held[:6] + b"\2\0\xff\xff\xff\x7f" + held[10:]]
        for other in others:
            yield "array", lambda name=name, other=other: packed(manifest, members | {name: other})
        yield "member", lambda name=name: packed(manifest, {n: h for n, h in members.items() if n != name})
        yield "member", lambda name=name, held=held: packed(manifest, [*members.items(), (name, held)])
        yield "member", lambda name=name: declared(packed(manifest, members, zipfile.ZIP_DEFLATED), f"{name}", 10)
        yield "member", lambda name=name: declared(packed(manifest, members, zipfile.ZIP_DEFLATED), f"{name}", 1 << 25)
        yield "member", lambda name=name: declared(packed(manifest, members, zipfile.ZIP_DEFLATED), f"{name}", 1 << 31)
        for how in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
            yield "member", lambda how=how: packed(manifest, members, how)
    yield "member", lambda: packed(manifest, members | {"more.npy": npy(np.zeros(3))})
    yield "member", lambda: declared(packed(manifest, members, zipfile.ZIP_DEFLATED), "manifest.json", 10)
    yield "member", lambda: declared(packed(manifest, members, zipfile.ZIP_DEFLATED), "manifest.json", 1 << 25)
    yield from (("bomb", lambda make=make: make(manifest, members)) for make in BOMBS)


def declared(content, name, size):
    """The file with another size of a member in both of its headers."""
    content = bytearray(content)
    for mark, place in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        length = {22: (26, 30), 24: (28, 46)}[place]
        at = content.find(mark)
        while at >= 0:
            (n,) = struct.unpack_from("<H", content, at + length[0])
            if content[at + length[1] : at + length[1] + n] == name.encode():
                struct.pack_into("<I", content, at + place, size)
            at = content.find(mark, at + 4)
    return bytes(content)


def zeros(manifest, members):
    """64 MB of zeros in a member that declares 1,000 bytes."""
    first = next(iter(members))
    held = members | {first: lying((1 << 23,), held=bytes(1 << 26))}
    return declared(packed(manifest, held, zipfile.ZIP_DEFLATED), first, 1000)


def large(manifest, members):
    """A true array of 63 MB in a file of kilobytes."""
    return packed(manifest, members | {next(iter(members)): npy(np.zeros(63 << 17))}, zipfile.ZIP_DEFLATED)


def references(manifest, members):
    """Five thousand references to one array of a megabyte."""
    many = [[f"x{i}_", {"array": "large"}] for i in range(5_000)]
    changed = copied(manifest, ("fitted", "dict"), lambda node, key: node[key].extend(many))
    return packed(changed, members | {"large.npy": npy(np.zeros(1 << 17))}, zipfile.ZIP_DEFLATED)


def nested(manifest, members):
    """Lists in lists."""
    deep = '{"list": [' * 200 + "]}" * 200
    changed = copied(manifest, ("params", "dict", 0, 1), assign("DEEP"))
    return packed(json.dumps(changed).replace('"DEEP"', deep), members, zipfile.ZIP_DEFLATED)


def deeper(manifest, members):
    """More of them than Python can follow."""
    return packed('{"format": ' * 100_000, members, zipfile.ZIP_DEFLATED)


def wide(manifest, members):
    """A million of nodes."""
    return packed(manifest | {"params": [[]] * 900_000}, members, zipfile.ZIP_DEFLATED)


def spaces(manifest, members):
    """A manifest of 30 MB of spaces."""
    return packed(" " * 30_000_000 + json.dumps(manifest), members, zipfile.ZIP_DEFLATED)


BOMBS = (zeros, large, references, nested, deeper, wide, spaces)


@dataclass
class Report:
    """Counts of what became of changed files."""

    counts: Counter = field(default_factory=Counter)
    by_change: Counter = field(default_factory=Counter)
    wrong: list = field(default_factory=list)
    memory: tuple = (0, "")
    seconds: tuple = (0.0, "")

    def add(self, name, kind, content, expected):
        """Load one file and judge the result."""
        tracemalloc.start()
        begin = time.process_time()
        try:
            result, told = judged(content, expected)
        finally:
            taken, peak = time.process_time() - begin, tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        self.counts[result] += 1
        self.by_change[kind, result] += 1
        self.memory = max(self.memory, (peak, f"{name}, {kind}, {len(content)} bytes"))
        self.seconds = max(self.seconds, (taken, f"{name}, {kind}"))
        if result not in ("refused", "same", "valid"):
            self.wrong.append((name, kind, result, told))

    def __str__(self):
        lines = [f"{sum(self.counts.values())} changed files: " + ", ".join(f"{n} {r}" for r, n in self.counts.items())]
        lines += [f"  {kind}: {result} {n}" for (kind, result), n in sorted(self.by_change.items())]
        lines += [f"largest memory {self.memory[0] / 1e6:.1f} MB ({self.memory[1]})"]
        lines += [f"largest time {self.seconds[0]:.2f} CPU s ({self.seconds[1]})"]
        return "\n".join(lines)


def judged(content, expected):
    """What becomes of a changed file, in a word, and more about it."""
    try:
        model = load(io.BytesIO(content))
    except ModelFileError as error:
        words = str(error).partition("model file: ")[2]
        return ("no words", words) if NOT_WORDS.search(words) else ("refused", words)
    except Exception as error:
        return "other error", f"{type(error).__name__}: {error}"
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = probabilities(model)
            repr(model)
    except Exception as error:
        return "fails in use", f"{type(error).__name__}: {error}"
    if found.shape == expected.shape and np.array_equal(found, expected):
        return "same", ""
    valid = np.isfinite(found).all() and (found >= 0).all() and np.allclose(found.sum(axis=-1), 1, atol=1e-6)
    return ("valid", "") if valid else ("wrong probabilities", str(found))


def fuzz(names=tuple(KINDS), number=None, seed=0, without=("bomb",)):
    """Change files of these models, all changes or so many of each model: half of them arrays, the others alike."""
    report = Report()
    for name in names:
        content = resaved(STORED / f"v2-{name}.plk")
        expected = probabilities(load(io.BytesIO(content)))
        every = [(kind, make) for kind, make in changes(content) if kind not in without]
        if number is not None:
            found = sorted({kind for kind, _ in every})
            rng = np.random.default_rng([seed, *name.encode()])
            chosen = []
            for kind in found:
                of_kind = [each for each in every if each[0] == kind]
                most = number // 2 if kind == "array" else number // (2 * len(found) - 2)
                some = rng.permutation(len(of_kind))[:most]
                chosen += [of_kind[i] for i in some]
            every = chosen
        for kind, make in every:
            report.add(name, kind, make(), expected)
    return report


def resaved(path):
    """A stored model as this version writes it."""
    stream = io.BytesIO()
    load(path).save(stream)
    return stream.getvalue()


if __name__ == "__main__":
    found = fuzz(number=int(sys.argv[1]) if len(sys.argv) > 1 else None, without=())
    print(found)
    for line in found.wrong[:200]:
        print(*line, sep=" | ")
