"""fsspec: the cache type and the protocol, over a file system that counts and fails on demand."""

import asyncio
import gc
import io
import os
import pickle
import random
import sys
import threading
import weakref
import zipfile

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

import forerun
import forerun.fsspec

SIZE = 2 << 20


class Remote(AbstractFileSystem):
    """Objects in memory, read by ranges as those of a store."""

    protocol = "remote"
    objects: dict = {}
    cachable = False

    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fetched = []
        self.fault = None

    def info(self, path, **_):
        content, version = self.objects[self._strip_protocol(path)]
        return {"name": path, "size": len(content), "type": "file", "ETag": version}

    def ls(self, path, detail=True, **_):
        return [self.info(name) if detail else name for name in self.objects]

    def _open(self, path, mode="rb", **kwargs):
        return RemoteFile(self, path, mode, **kwargs)


class RemoteFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        self.fs.fetched.append((start, end))
        if self.fs.fault is not None:
            return self.fs.fault(start, end)
        return self.fs.objects[self.path][0][start:end]


fsspec.register_implementation("remote", Remote, clobber=True)


@pytest.fixture
def remote(content):
    Remote.objects = {"data": (content[:SIZE], "1"), "other": (content[1:SIZE], "1")}
    return Remote()


def opened(remote, engine, path="data"):
    return remote.open(path, cache_type="forerun", cache_options={"engine": engine})


def test_the_cache_type_reads_what_is_there(remote, engine, content):
    with opened(remote, engine) as file:
        assert file.read(1000) == content[:1000]
        file.seek(SIZE - 5)
        assert file.read() == content[SIZE - 5 : SIZE]
        file.seek(0)
        assert file.read() == content[:SIZE]
    assert engine.ledger()["reads"] > 0


def test_files_of_one_version_share_blocks_and_those_of_others_do_not(remote, engine, content):
    with opened(remote, engine) as one, opened(remote, engine) as two:
        one.read()
        count = len(remote.fetched)
        assert two.read() == content[:SIZE]
        assert len(remote.fetched) == count
    Remote.objects["data"] = (content[5:SIZE], "2")
    with opened(remote, engine) as three:
        assert three.read() == content[5:SIZE]


def test_sequential_reads_take_fewer_and_larger_requests_than_reads(remote, engine):
    with opened(remote, engine) as file:
        for _ in range(SIZE // 4096):
            file.read(4096)
    assert len(remote.fetched) < SIZE // 4096 // 4
    assert engine.ledger()["hits"] > 0


def test_all_files_have_one_limit(content):
    engine = forerun.Engine(memory=1 << 20)
    Remote.objects = {f"data{i}": (content[:SIZE], "1") for i in range(16)}
    remote = Remote()
    files = [opened(remote, engine, f"data{i}") for i in range(16)]
    for _ in range(8):
        for file in files:
            file.read(SIZE // 8)
    assert engine.ledger()["memory_peak_bytes"] <= 1 << 20


def test_an_exception_of_the_file_system_is_the_cause_of_the_readers(remote, engine):
    def fault(_start, _end):
        raise PermissionError(13, "no such key for you")

    remote.fault = fault
    with opened(remote, engine) as file, pytest.raises(PermissionError) as raised:
        file.read(10)
    assert raised.value.filename == "data"
    assert "no such key for you" in str(raised.value.__cause__)


def test_an_answer_cut_short_is_an_error_and_no_data(remote, engine):
    remote.fault = lambda start, end: bytes(max(end - start - 1, 0))
    with opened(remote, engine) as file, pytest.raises(OSError) as raised:
        file.read(10)
    assert "must be" in str(raised.value.__cause__)


def test_a_failed_read_can_be_tried_again(remote, engine, content):
    def fault(_start, _end):
        raise RuntimeError("once")

    remote.fault = fault
    with opened(remote, engine) as file:
        with pytest.raises(OSError):
            file.read(10)
        remote.fault = None
        assert file.read(10) == content[:10]


def test_a_file_that_nothing_refers_to_is_closed(remote, engine):
    file = opened(remote, engine)
    file.read(10)
    gone = weakref.ref(file)
    del file
    gc.collect()
    assert gone() is None


def test_a_pickled_file_goes_on_where_it_was(remote, engine, content):
    with opened(remote, engine) as file:
        file.read(100)
        copy = pickle.loads(pickle.dumps(file))
    assert copy.read(50) == content[100:150]
    assert copy.cache.name == "forerun"


@pytest.mark.parametrize("address", ["forerun::remote://data", "forerun::memory://data"])
def test_the_protocol_reads_any_other_file_system(remote, content, address):
    MemoryFileSystem.store.clear()
    MemoryFileSystem().pipe_file("/data", content[:SIZE])
    with fsspec.open(address) as file:
        assert isinstance(file, forerun.File)
        assert file.read() == content[:SIZE]


def test_local_files_are_read_by_path(path, content):
    with fsspec.open(f"forerun::file://{path}") as file:
        assert isinstance(file, forerun.File)
        assert file.read(10) == content[:10]
    with fsspec.open(f"forerun::{path}") as file:
        assert file.read(10) == content[:10]


def test_the_file_system_has_an_engine_and_is_pickled_with_it(remote, engine, content):
    fs = fsspec.filesystem("forerun", target_protocol="remote", engine=engine)
    assert fs.cat_file("data", 5, 25) == content[5:25]
    assert fs.cat_file("data", -20) == content[SIZE - 20 : SIZE]
    assert fs.info("data")["size"] == SIZE
    assert [entry["name"] for entry in fs.ls("")] == ["data", "other"]
    copy = pickle.loads(pickle.dumps(fs))
    assert copy.engine is engine
    with fs.open("data") as file:
        file.seek(9)
        assert pickle.loads(pickle.dumps(file)).read(2) == content[9:11]


def test_a_file_that_changes_within_a_tick_of_its_clock_is_read_anew_once_something_was_written(remote, engine, content):
    class Clocked(Remote):
        def info(self, path, **_):
            details = super().info(path)
            del details["ETag"]
            return details | {"mtime": 1.0}

        def pipe_file(self, path, value, **_):
            self.objects[path] = (value, None)

    fs = fsspec.filesystem("forerun", fs=Clocked(), engine=engine)
    for number in range(3):
        fs.pipe_file("data", bytes([number]) * 5000)
        assert fs.cat_file("data") == bytes([number]) * 5000


def test_a_file_system_needs_one_target():
    with pytest.raises(ValueError, match="both given: give either fs or target_protocol"):
        fsspec.filesystem("forerun", fs=fsspec.filesystem("memory"), target_protocol="memory")
    with pytest.raises(ValueError, match="either fs or target_protocol"):
        fsspec.filesystem("forerun")


def test_an_address_without_a_target_is_answered_with_the_two_that_work(tmp_path):
    (tmp_path / "data").write_bytes(b"as it is")
    with pytest.raises(ValueError, match="write forerun::s3://bucket/key") as refused:
        fsspec.open(f"forerun://{tmp_path}/data")
    assert 'fsspec.open("forerun://bucket/key", target_protocol="s3")' in str(refused.value)
    for opened in (
        fsspec.open(f"forerun::file://{tmp_path}/data"),
        fsspec.open(f"forerun://{tmp_path}/data", target_protocol="file"),
    ):
        with opened as file:
            assert file.read() == b"as it is"


def test_libraries_read_through_it(remote, engine, tmp_path):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("inside", "text")
    Remote.objects["packed"] = (packed.getvalue(), "1")
    fs = fsspec.filesystem("forerun", fs=remote, engine=engine)
    with fs.open("packed") as file:
        assert zipfile.ZipFile(file).read("inside") == b"text"
    pandas = pytest.importorskip("pandas")
    Remote.objects["table.csv"] = (b"a,b\n1,2\n", "1")
    with fs.open("table.csv") as file:
        assert pandas.read_csv(file)["b"].tolist() == [2]


def test_a_forked_child_reads_through_the_cache(remote, engine, content):
    file = opened(remote, engine)
    assert file.read(10) == content[:10]
    child = os.fork()
    if child == 0:
        os._exit(0 if file.read(100_000) == content[10:100_010] else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_threads_that_share_a_file_read_where_each_has_set_the_position(remote, engine, content):
    fs = fsspec.filesystem("forerun", fs=remote, engine=engine)
    with fs.open("data") as file:
        turns = [threading.Event() for _ in range(4)]
        read = []

        def other():
            turns[0].wait()
            file.seek(5000)
            turns[1].set()
            turns[2].wait()
            read.append(file.read(10))
            turns[3].set()

        thread = threading.Thread(target=other)
        thread.start()
        file.seek(100)
        turns[0].set()
        turns[1].wait()
        assert file.tell() == 100
        assert file.read(10) == content[100:110]
        turns[2].set()
        turns[3].wait()
        thread.join()
        assert read == [content[5000:5010]]
        # Behind the read of the thread that has set it last.
        assert file.tell() == 5010
        buffer = bytearray(4)
        assert (file.readinto(buffer), bytes(buffer)) == (4, content[5010:5014])


def test_a_position_that_one_thread_sets_is_that_of_the_reads_of_others(remote, engine, content):
    fs = fsspec.filesystem("forerun", fs=remote, engine=engine)
    with fs.open("data") as file:
        read = []
        file.seek(100)
        thread = threading.Thread(target=lambda: read.extend([file.read(10), file.read(10)]))
        thread.start()
        thread.join()
        assert read == [content[100:110], content[110:120]]
        assert file.read(5) == content[120:125]
        assert file.seek(-5, os.SEEK_CUR) == 120
        assert file.readline(7) == content[120:127].split(b"\n")[0]
        file.seek(0)
        assert file.read() == content[:SIZE] and file.read() == b""
        file.seek(SIZE + 5)
        assert file.read() == b"" and file.tell() == SIZE + 5


def test_a_thousand_ranges_open_their_files_once(engine, monkeypatch):
    target = MemoryFileSystem()
    for number in range(300):
        target.pipe_file(f"/ranges/{number}", b"%03d" % number * 500)
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    opened, real = [], fs.open
    monkeypatch.setattr(fs, "open", lambda path, *arguments, **options: opened.append(path) or real(path, *arguments, **options))
    paths = ["/ranges/7"] * 1000
    assert fs.cat_ranges(paths, list(range(1000)), list(range(5, 1005))) == [(b"007" * 500)[at : at + 5] for at in range(1000)]
    assert opened == ["/ranges/7"]
    # As many as are open at once, and the rest; the first again.
    paths = [f"/ranges/{number}" for number in (*range(300), 0)]
    assert fs.cat_ranges(paths, 0, 3) == [b"%03d" % number for number in (*range(300), 0)]
    assert len(opened) == 1 + 301
    assert fs.cat_ranges([], [], []) == []


def test_a_thread_begins_at_no_position_of_one_that_has_ended(remote, engine, content):
    """It may have the number of that thread."""
    fs = fsspec.filesystem("forerun", fs=remote, engine=engine)
    with fs.open("data") as file:
        read = []
        for call in (lambda: file.seek(5000), lambda: read.append(file.read(10))) * 20:
            file.seek(0)
            assert file.read(10) == content[:10]
            thread = threading.Thread(target=call)
            thread.start()
            thread.join()
        assert read == [content[10:20]] * 20


def test_a_position_that_a_thread_has_set_stays_where_its_read_fails(remote, engine, content):
    fs = fsspec.filesystem("forerun", fs=remote, engine=engine)
    with fs.open("data") as file:
        for read in (lambda: file.read(10), lambda: bytes(buffer[: file.readinto(buffer)])):
            buffer = bytearray(10)
            file.seek(100)
            thread = threading.Thread(target=file.seek, args=(5000,))
            thread.start()
            thread.join()
            file.pread, file.readinto_at = _fails, _fails
            with pytest.raises(OSError, match="once"):
                read()
            del file.pread, file.readinto_at
            assert file.tell() == 100 and file.seek(1, os.SEEK_CUR) == 101
            assert read() == content[101:111]


def _fails(*_):
    raise OSError(5, "once")


@pytest.mark.parametrize("length", [SIZE + 1, 1 << 40, 1 << 62, sys.maxsize])
def test_a_read_of_more_than_there_is_ends_with_the_file(remote, engine, content, length):
    asked = []
    with fsspec.filesystem("forerun", fs=remote, engine=engine).open("data") as file:
        pread = file.pread

        def counted(length, at):
            asked.append(at)
            assert len(asked) < 100
            return pread(length, at)

        file.pread = counted
        for at in (0, SIZE - 9, SIZE, 3 * SIZE):
            file.seek(at)
            assert file.read(length) == content[:SIZE][at:]


class Meeting(MemoryFileSystem):
    """A file system whose details are given to 40 callers at once, and to none before."""

    cachable = False
    barrier = threading.Barrier(40)

    def info(self, path, **kwargs):
        self.barrier.wait(timeout=600)
        return super().info(path, **kwargs)


def test_coroutines_have_as_many_calls_at_once_as_a_store_has_requests(engine):
    target = Meeting()
    for number in range(40):
        target.pipe_file(f"/meeting/{number}", b"%d" % number)
    fs = fsspec.filesystem("forerun", fs=target, engine=engine, asynchronous=True)
    assert fs.async_impl and fs.asynchronous

    async def together():
        return await asyncio.gather(*(fs._cat_file(f"/meeting/{number}") for number in range(40)))

    # The event loop has six threads on a machine with two processors, and 32 at most.
    assert asyncio.run(together()) == [b"%d" % number for number in range(40)]


def test_a_file_system_with_coroutines_is_one_again_where_it_is_unpickled_or_read_as_json(engine):
    MemoryFileSystem().pipe_file("/asynchronous", b"content")
    made = fsspec.filesystem("forerun", target_protocol="memory", engine=engine, asynchronous=True)
    copies = [pickle.loads(pickle.dumps(made)), fsspec.AbstractFileSystem.from_json(made.to_json())]
    assert copies[0].sync_fs.engine is engine
    for fs in copies:
        assert type(fs) is type(made) and fs.asynchronous
        assert asyncio.run(fs._cat_file("/asynchronous")) == b"content"


@pytest.mark.parametrize(
    ("name", "size", "places", "length", "announces"),
    [
        ("sets.h5", 8 << 20, range(0, 8 << 20, 2 << 20), 512, True),
        ("sets.nc", 8 << 20, [6 << 20, 0, 4 << 20], 4096, True),
        # Not far enough, too few, reads of data, a file of another kind, and one of more than an eighth of the memory.
        ("sets.h5", 8 << 20, range(0, 8 << 20, 1 << 20), 512, False),
        ("sets.h5", 8 << 20, [0, 2 << 20, 4 << 20], 512, False),
        ("sets.h5", 8 << 20, range(0, 8 << 20, 2 << 20), 64 << 10, False),
        ("sets.bin", 8 << 20, range(0, 8 << 20, 2 << 20), 512, False),
        ("sets.h5", (8 << 20) + 1, range(0, 8 << 20, 2 << 20), 512, False),
    ],
)
def test_a_small_file_whose_tree_is_walked_is_fetched_whole(tmp_path, name, size, places, length, announces):
    content = random.Random(5).randbytes(size)
    (tmp_path / name).write_bytes(content)
    engine = forerun.Engine("64MiB")
    fs, buffer = forerun.fsspec.ForerunFileSystem("file", engine=engine), bytearray(length)
    with fs.open(str(tmp_path / name)) as file:
        for place in places:
            file.seek(place)
            assert file.readinto(buffer) == length and buffer == content[place : place + length]
        assert (engine.ledger()["hints"] > 0) == announces
        file.seek(0)
        assert file.read() == content


def test_the_folders_of_a_file_system_with_coroutines_are_walked(engine):
    target, folder = MemoryFileSystem(), "/walked"
    for name in ("a", "b/c", "b/d/e"):
        target.pipe_file(f"{folder}/{name}", b"content")
    fs = fsspec.filesystem("forerun", fs=target, engine=engine, asynchronous=True)

    async def walked():
        return [one async for one in fs._walk(folder)]

    assert asyncio.run(walked()) == list(target.walk(folder))
