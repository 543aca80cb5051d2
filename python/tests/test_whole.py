"""An error never looks like an end: every way to read gives all bytes, or an exception."""

import gzip
import io
import shutil

import fsspec
import pytest
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import forerun
import forerun.fsspec
import forerun.torch
from forerun._forerun import Handle

SIZE = (1 << 20) + 777
CONTENT = bytes(range(1, 252)) * (SIZE // 251 + 1)
CONTENT = CONTENT[:SIZE]


class Failing(AbstractFileSystem):
    """One object; a range that has a byte of the fault fails, or is answered in another wrong way."""

    protocol = "failing"
    cachable = False
    versions = 0

    def __init__(self, fault, kind, buffered):
        super().__init__()
        Failing.versions += 1
        self.fault, self.kind, self.buffered = fault, kind, buffered
        self.version = str(Failing.versions)

    def info(self, path, **_):
        return {"name": path, "size": SIZE, "type": "file", "ETag": self.version}

    def ls(self, path, detail=True, **_):
        return [self.info("o")] if detail else ["o"]

    def _open(self, path, mode="rb", block_size=None, **kwargs):
        if self.buffered:
            return Buffered(self, path, mode, block_size or 1 << 18, **kwargs)
        return io.BytesIO(CONTENT)

    def cat_file(self, path, start=None, end=None, **_):
        return self.answer(start, end)

    def answer(self, start, end):
        first, last = self.fault
        if first < end and start < last:
            if self.kind == "raises":
                raise OSError(5, "the store says no")
            return CONTENT[start : max(first, start)] if self.kind == "short" else b""
        return CONTENT[start:end]


class Buffered(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.answer(start, end)


def pieces(file, read):
    """A loop as the documentation has it: until there is nothing more."""
    parts = []
    while part := read(file, sum(map(len, parts))):
        parts.append(part)
    return b"".join(parts)


def filled(file, at):
    buffer = bytearray(300_000)
    return bytes(buffer[: file.readinto(buffer)])


def filled_at(file, at):
    buffer = bytearray(300_000)
    return bytes(buffer[: file.readinto_at(buffer, at)])


def copied(file):
    out = io.BytesIO()
    shutil.copyfileobj(file, out, 1 << 18)
    return out.getvalue()


def shard(fs, engine):
    handle = Handle.fetched(engine, fs.answer, "o", fs.version, SIZE)
    opened = forerun.torch._open
    forerun.torch._open = lambda path, engine: forerun.File(handle, path)
    try:
        return b"".join(file.read() for file in forerun.torch.open_shards(["o"], engine=engine))
    finally:
        forerun.torch._open = opened


def one(fs, engine):
    return forerun.File(Handle.fetched(engine, fs.answer, "o", fs.version, SIZE), "o")


def cached(fs, engine):
    return fs.open("o", cache_type="forerun", cache_options={"engine": engine})


def through(fs, engine):
    return fsspec.filesystem("forerun", fs=fs, engine=engine)


def got(fs, engine, tmp_path):
    target = tmp_path / "got"
    through(fs, engine).get("o", str(target))
    return target.read_bytes()


SURFACES = {
    "read()": lambda fs, e, _: one(fs, e).read(),
    "read(n)": lambda fs, e, _: one(fs, e).read(SIZE),
    "read(n) in a loop": lambda fs, e, _: pieces(one(fs, e), lambda f, at: f.read(70_001)),
    "readall()": lambda fs, e, _: one(fs, e).readall(),
    "pread": lambda fs, e, _: one(fs, e).pread(SIZE + 5, 0),
    "pread in a loop": lambda fs, e, _: pieces(one(fs, e), lambda f, at: f.pread(70_001, at)),
    "readinto": lambda fs, e, _: pieces(one(fs, e), filled),
    "readinto_at": lambda fs, e, _: pieces(one(fs, e), filled_at),
    "readlines": lambda fs, e, _: b"".join(one(fs, e).readlines()),
    "buffered": lambda fs, e, _: io.BufferedReader(one(fs, e)).read(SIZE),
    "copyfileobj": lambda fs, e, _: copied(one(fs, e)),
    "shards": lambda fs, e, _: shard(fs, e),
    "cache read()": lambda fs, e, _: cached(fs, e).read(),
    "cache read(n)": lambda fs, e, _: cached(fs, e).read(SIZE),
    "cache in pieces": lambda fs, e, _: pieces(cached(fs, e), lambda f, at: f.read(70_001)),
    "cache readlines": lambda fs, e, _: b"".join(cached(fs, e).readlines()),
    "cache copyfileobj": lambda fs, e, _: copied(cached(fs, e)),
    "forerun:: read()": lambda fs, e, _: through(fs, e).open("o").read(),
    "forerun:: read(n)": lambda fs, e, _: through(fs, e).open("o").read(SIZE),
    "cat_file": lambda fs, e, _: through(fs, e).cat_file("o"),
    "cat_file of a range": lambda fs, e, _: through(fs, e).cat_file("o", -SIZE, SIZE + 9),
    "cat": lambda fs, e, _: through(fs, e).cat("o"),
    "cat of a list": lambda fs, e, _: through(fs, e).cat(["o"])["o"],
    "cat_ranges": lambda fs, e, _: through(fs, e).cat_ranges(
        ["o"], [0], [SIZE], on_error="raise"
    )[0],
    "read_block": lambda fs, e, _: through(fs, e).read_block("o", 0, SIZE),
    "read_bytes": lambda fs, e, _: through(fs, e).read_bytes("o"),
    "head": lambda fs, e, _: through(fs, e).head("o", SIZE),
    "tail": lambda fs, e, _: through(fs, e).tail("o", SIZE),
    "get": got,
}

FAULT = st.integers(0, SIZE - 1)


@pytest.mark.parametrize("surface", SURFACES)
@settings(
    max_examples=12,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    first=FAULT,
    length=st.sampled_from([1, 5000, SIZE]),
    kind=st.sampled_from(["raises", "short", "empty"]),
    buffered=st.booleans(),
)
@example(first=SIZE - 1, length=1, kind="raises", buffered=True)
@example(first=SIZE // 4, length=SIZE, kind="raises", buffered=True)
@example(first=SIZE // 4, length=SIZE, kind="short", buffered=True)
@example(first=4096, length=1, kind="empty", buffered=False)
@example(first=0, length=SIZE, kind="raises", buffered=True)
def test_a_fault_at_any_offset_is_an_error_or_nothing(
    surface, first, length, kind, buffered, tmp_path
):
    fs = Failing((first, first + length), kind, buffered or surface.startswith("cache"))
    engine = forerun.Engine(memory=2 << 20)
    with pytest.raises(OSError):
        answer = SURFACES[surface](fs, engine, tmp_path)
        pytest.fail(f"{len(answer)} of {SIZE} bytes, and no error")


@pytest.mark.parametrize("surface", SURFACES)
def test_without_a_fault_all_bytes_come(surface, tmp_path):
    for buffered in (True, False):
        fs = Failing((0, 0), "raises", buffered or surface.startswith("cache"))
        engine = forerun.Engine(memory=2 << 20)
        assert SURFACES[surface](fs, engine, tmp_path) == CONTENT


def test_a_fault_that_passes_leaves_the_position_for_another_try():
    fs = Failing((SIZE // 2, SIZE), "raises", True)
    file = one(fs, forerun.Engine(memory=2 << 20))
    assert file.read(10) == CONTENT[:10]
    with pytest.raises(OSError):
        file.read(SIZE - 10)
    assert file.tell() == 10
    fs.fault = (0, 0)
    assert file.read() == CONTENT[10:]


def test_ranges_that_fail_are_errors_in_their_place():
    fs = Failing((SIZE // 2, SIZE), "raises", True)
    own = through(fs, forerun.Engine(memory=2 << 20))
    first, second = own.cat_ranges(["o", "o"], [0, 0], [1000, SIZE])
    assert first == CONTENT[:1000] and isinstance(second, OSError)


def test_a_member_of_an_archive_is_whole_or_an_error(tmp_path):
    packed = gzip.compress(CONTENT, 0)
    half = len(packed) // 2

    def fetch(start, end):
        if end > half:
            raise OSError(5, "the store says no")
        return packed[start:end]

    engine = forerun.Engine(memory=2 << 20)
    file = forerun.File(Handle.fetched(engine, fetch, "gz", "1", len(packed)), "gz")
    with pytest.raises(OSError):
        gzip.GzipFile(fileobj=file).read()
