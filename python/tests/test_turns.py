"""Targets that bear one call at a time, and files without range requests: members of archives, and a target that counts."""

import contextlib
import errno
import gc
import io
import itertools
import os
import tarfile
import threading
import time
import types
import zipfile

import fsspec
import pytest
from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.zip import ZipFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

import forerun
import forerun.fsspec
from forerun import _turns
from forerun._forerun import Turn
from forerun._turns import bears_calls
from test_calls import WAIT, collect_garbage_that_takes, ends
from test_processes import in_child
from test_threads import interrupted_at

SIZE = 2 << 20


class Single(AbstractFileSystem):
    """A file system that counts the calls that are in it at once."""

    protocol = "single"
    content = b""
    seconds = 0

    def __init__(self, name="", **kwargs):
        super().__init__(**kwargs)
        self.lock = threading.Lock()
        self.inside = self.most = self.fetched = 0
        self.during = lambda: None

    def _call(self, answer):
        with self.lock:
            self.inside += 1
            self.most = max(self.most, self.inside)
        self.during()
        # As long as a server takes: other calls come meanwhile.
        time.sleep(0.002)
        with self.lock:
            self.inside -= 1
        return answer

    def info(self, path, **_):
        told = {"name": path, "size": len(self.content), "type": "file", "mtime": self.seconds}
        return self._call(told)

    def _open(self, path, mode="rb", **kwargs):
        return SingleFile(self, path, mode, **kwargs) if mode == "rb" else Written()


class SingleFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        self.fs.fetched += 1
        return self.fs._call(self.fs.content[start:end])


class Written(io.BytesIO):
    def close(self):
        if not self.closed:
            Single.content = self.getvalue()
        super().close()


fsspec.register_implementation("single", Single, clobber=True)


@pytest.fixture
def single(content):
    Single.content, Single.seconds = content[:SIZE], 1
    Single.clear_instance_cache()
    return Single()


def read_all(file):
    with file:
        return b"".join(iter(lambda: file.read(100_000), b""))


def together(*calls):
    """The answers of calls on a thread each."""
    answers = [None] * len(calls)

    def call(at):
        answers[at] = calls[at]()

    threads = [threading.Thread(target=call, args=(at,)) for at in range(len(calls))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return answers


def test_one_call_at_a_time_comes_to_a_target_without_coroutines(single, engine, content):
    fs = fsspec.filesystem("forerun", fs=single, engine=engine)
    calls = [lambda: read_all(fs.open("a")), lambda: read_all(fs.open("b")), lambda: [fs.info("a") for _ in range(20)]]
    assert together(*calls)[:2] == [content[:SIZE]] * 2
    assert single.most == 1


class Watched:
    """A turn that tells whether it is taken."""

    def __init__(self, turn):
        self.turn, self.depth = turn, 0

    def __enter__(self):
        self.turn.__enter__()
        self.depth += 1

    def __exit__(self, *_):
        self.depth -= 1
        self.turn.__exit__()


def test_each_step_of_a_walk_and_the_end_of_a_transaction_have_a_turn(single, engine, monkeypatch):
    turn, steps = Watched(_turns.turn_of(single)), []
    monkeypatch.setattr(_turns, "_lock_of", lambda _: turn)

    def walk(path, **_):
        for step in range(2):
            steps.append(turn.depth)
            yield step

    single.walk, single.end_transaction = walk, lambda: steps.append(turn.depth)
    fs = fsspec.filesystem("forerun", fs=single, engine=engine)
    for _ in fs.walk("/"):
        assert turn.depth == 0
    fs.end_transaction()
    assert steps == [1] * 3


def test_one_call_at_a_time_comes_to_it_by_the_cache_type_and_two_engines(single, engine, content):
    def opened(name, engine):
        return single.open(name, cache_type="forerun", cache_options={"engine": engine}, size=SIZE)

    files = [opened("a", engine), opened("b", engine), opened("a", forerun.Engine("16MiB"))]
    assert together(*(lambda file=file: read_all(file) for file in files)) == [content[:SIZE]] * 3
    assert single.most == 1


def test_targets_bear_as_many_calls_as_those_that_they_call(single, memory_and_http):
    memory, http = memory_and_http
    assert bears_calls(memory) and bears_calls(fsspec.filesystem("file")) and bears_calls(http)
    assert bears_calls(DirFileSystem("/x", memory)) and bears_calls(DirFileSystem("x", http))
    assert not bears_calls(single) and not bears_calls(DirFileSystem("x", single))
    assert not bears_calls(fsspec.filesystem("simplecache", fs=http))
    named = {"__module__": "huggingface_hub.hf_file_system", "cachable": False}
    hugging = type("HfFileSystem", (AbstractFileSystem,), named)
    assert bears_calls(hugging()) and bears_calls(type("Own", (hugging,), {"__module__": "own"})())
    named = {**named, "__module__": "fsspec.implementations.arrow"}
    assert bears_calls(type("ArrowFSWrapper", (AbstractFileSystem,), named)())


@pytest.fixture
def memory_and_http():
    pytest.importorskip("aiohttp")
    return fsspec.filesystem("memory"), fsspec.filesystem("http")


class Remote(AbstractFileSystem):
    """Bears several calls. The download of `slow` stops half way."""

    protocol = "remote"
    async_impl, asynchronous, mirror_sync_methods, cachable = True, False, False, False

    def __init__(self):
        super().__init__()
        self.half, self.rest, self.downloads = threading.Event(), threading.Event(), []

    def info(self, path, **_):
        return {"name": path, "size": 2000, "type": "file", "ETag": path}

    def ls(self, path, detail=True, **_):
        return [self.info(folder + name) for name in ("there", "other", "slow") for folder in ("", "in/")]

    def exists(self, path, **_):
        return True

    def get_file(self, rpath, lpath, **_):
        name = rpath.removeprefix("in/")
        self.downloads.append(name)
        with open(lpath, "wb", buffering=0) as file:
            file.write(b"1" * 1000)
            if name == "slow":
                self.half.set()
                self.rest.wait()
            file.write(b"2" * 1000)


WHOLE = b"1" * 1000 + b"2" * 1000


@pytest.mark.parametrize("is_folder", [False, True])
def test_a_download_holds_up_no_file_that_is_there_and_is_read_once_it_is_whole(is_folder, engine, tmp_path):
    remote = Remote()
    cache = fsspec.filesystem("simplecache", fs=remote, cache_storage=str(tmp_path))
    target = DirFileSystem("in", cache) if is_folder else cache
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    assert fs.cat_file("there") == WHOLE
    answers = []
    readers = [threading.Thread(target=lambda: answers.append(fs.cat_file("slow"))) for _ in range(2)]
    readers[0].start()
    remote.half.wait()
    readers[1].start()
    try:
        # The third is downloaded meanwhile.
        assert (fs.cat_file("there"), fs.info("there")["size"], fs.cat_file("other")) == (WHOLE, 2000, WHOLE)
    finally:
        remote.rest.set()
        for reader in readers:
            reader.join()
    assert answers == [WHOLE] * 2
    assert remote.downloads == ["there", "slow", "other"]


def test_an_open_file_of_a_cache_is_read_while_another_is_downloaded(engine, tmp_path):
    remote = Remote()
    fs = fsspec.filesystem("forerun", fs=fsspec.filesystem("filecache", fs=remote, cache_storage=str(tmp_path)), engine=engine)
    with fs.open("there") as file:
        reader = threading.Thread(target=fs.cat_file, args=("slow",))
        reader.start()
        remote.half.wait()
        try:
            assert file.read() == WHOLE
        finally:
            remote.rest.set()
            reader.join()


@contextlib.contextmanager
def opened_in_call(target, engine, during, hangs, answers):
    """A file of a target that is called by another thread until the end."""
    with target.open("a", cache_type="forerun", cache_options={"engine": engine}, size=SIZE) as file:
        target.during = during
        thread = threading.Thread(target=file.read, args=(10,))
        thread.start()
        hangs.wait()
        try:
            yield file
        finally:
            answers.set()
            thread.join()


def test_a_target_that_hangs_holds_up_no_other(single, engine, content):
    hangs, answers = threading.Event(), threading.Event()

    def during():
        hangs.set()
        answers.wait()

    slow, fs = Single("slow"), fsspec.filesystem("forerun", fs=single, engine=engine)
    with opened_in_call(slow, engine, during, hangs, answers):
        assert read_all(fs.open("a")) == content[:SIZE]


def test_a_child_that_is_forked_while_a_target_is_called_calls_it_too(single, engine, content):
    hangs, answers, parent = threading.Event(), threading.Event(), os.getpid()

    def during():
        hangs.set()
        if os.getpid() == parent:
            answers.wait()

    with opened_in_call(single, engine, during, hangs, answers) as file:
        assert in_child(lambda: file.cache._fetch(0, SIZE) == content[:SIZE])


def test_a_collection_in_a_call_that_waits_for_the_reader_is_an_error_and_no_hang(single, engine, content, monkeypatch):
    """As h5py's objects do: their destructor takes a lock that the reader holds. Another call would move the file of the first."""
    monkeypatch.setattr(_turns, "_COLLECTION_SECONDS", 0.5)
    lock, calls, collected = threading.Lock(), itertools.count(), threading.Event()

    def during():
        if next(calls) == 0:
            collect_garbage_that_takes(lock)
            collected.set()

    with single.open("a", cache_type="forerun", cache_options={"engine": engine}, size=SIZE) as file:
        single.during = during

        def read():
            with lock:
                return file.read(10)

        with pytest.raises(OSError) as raised:
            read()
        assert raised.value.errno == errno.EDEADLK
        collected.wait()
        assert read() == content[:10]
    assert single.most == 1


def test_a_thread_has_its_turn_again_and_another_once_it_is_given_back_as_often():
    turn, steps = Turn(1), []

    def other():
        with turn:
            steps.append("other")

    thread = threading.Thread(target=other)
    with turn:
        with turn:
            thread.start()
        steps.append("first")
    thread.join()
    assert steps == ["first", "other"]


def test_threads_have_their_turns_in_the_order_in_which_they_asked():
    turn, order = Turn(1), []

    def once(number):
        with turn:
            order.append(number)

    threads = [threading.Thread(target=once, args=(number,)) for number in range(8)]
    with turn:
        for number, thread in enumerate(threads):
            thread.start()
            until = time.monotonic() + WAIT
            while turn.waiting <= number and time.monotonic() < until:
                time.sleep(0.001)
            assert turn.waiting == number + 1
        # Given back with the interpreter held, and asked for at once.
        turn.__exit__()
        turn.__enter__()
        order.append("again")
    for thread in threads:
        thread.join(WAIT)
    assert order == [*range(8), "again"]


def test_a_wait_that_is_given_up_holds_up_no_other():
    turn, order = Turn(0), []
    collects, ended = threading.Event(), threading.Event()

    class Garbage:
        def __init__(self):
            self.me = self

        def __del__(self):
            with turn:
                collects.set()
                ended.wait(WAIT)

    def collect():
        Garbage()
        gc.collect()

    def gives_up():
        with pytest.raises(OSError, match="collection"), turn:
            pass
        order.append("given up")

    def waits():
        with turn:
            order.append("had")

    holder = threading.Thread(target=collect)
    holder.start()
    assert collects.wait(WAIT)
    first = threading.Thread(target=gives_up)
    first.start()
    first.join(WAIT)
    ended.set()
    holder.join(WAIT)
    other = threading.Thread(target=waits)
    other.start()
    other.join(WAIT)
    assert order == ["given up", "had"]


def test_an_interrupt_at_any_line_leaves_no_turn_taken(single):
    def takes():
        with _turns.turn_of(single):
            return True

    for step in itertools.count():
        with interrupted_at(step, [_turns.__file__]) as was_reached:
            with _turns.turn_of(single):
                pass
        assert ends(takes)
        if not was_reached:
            break
    assert step > 0


def test_the_collector_calls_no_python_code_of_ours():
    """An interrupt amid a collection would be raised in that, and lost."""
    ours = [call for call in gc.callbacks if call.__module__.startswith("forerun")]
    assert ours and all(isinstance(call, types.BuiltinFunctionType) for call in ours)


@pytest.fixture
def archives(tmp_path, content):
    members = {f"in/m{number}": content[number:SIZE] for number in range(3)}
    with tarfile.open(tmp_path / "x.tar", "w") as archive:
        for name, data in members.items():
            header = tarfile.TarInfo(name)
            header.size = len(data)
            archive.addfile(header, io.BytesIO(data))
    with zipfile.ZipFile(tmp_path / "x.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    return tmp_path, members


@pytest.mark.parametrize("kind", ["tar", "zip"])
@pytest.mark.parametrize("folder_of", [None, "in"])
def test_members_of_an_archive_are_read_side_by_side_as_they_are(kind, folder_of, archives, engine):
    folder, members = archives
    target = fsspec.filesystem(kind, fo=str(folder / f"x.{kind}"))
    if folder_of:
        target = DirFileSystem(folder_of, target)
        members = {name.removeprefix("in/"): data for name, data in members.items()}
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    read = together(*(lambda name=name: read_all(fs.open(name)) for name in members))
    assert read == list(members.values())
    assert fs.cat(list(members)) == members
    assert fs.cat_ranges(list(members), 7, 700_000) == [data[7:700_000] for data in members.values()]
    with fsspec.open(f"forerun::{kind}://in/m1::file://{folder}/x.{kind}") as file:
        assert file.read() == list(members.values())[1]


@pytest.mark.parametrize("is_folder", [False, True])
def test_an_archive_that_is_written_anew_with_the_same_times_is_read_anew(is_folder, tmp_path, engine):
    def write(data):
        with tarfile.open(tmp_path / "x.tar", "w") as archive:
            header = tarfile.TarInfo("in/m")
            header.size, header.mtime = len(data), 1
            archive.addfile(header, io.BytesIO(data))

    def read():
        target = fsspec.filesystem("tar", fo=str(tmp_path / "x.tar"), skip_instance_cache=True)
        target = DirFileSystem("in", target) if is_folder else target
        return fsspec.filesystem("forerun", fs=target, engine=engine).cat_file("m" if is_folder else "in/m")

    write(b"before" * 100)
    assert read() == b"before" * 100
    write(b"behind" * 100)
    assert read() == b"behind" * 100
    assert together(read) == [b"behind" * 100]


class Counted(ZipFileSystem):
    """Counts the members that were opened, and breaks one on demand."""

    opened = 0
    broken = False

    def _open(self, path, mode="rb", **kwargs):
        self.opened += 1
        file = super()._open(path, mode, **kwargs)
        if self.broken:
            file.read = lambda _size=-1: (_ for _ in ()).throw(OSError(5, "broken"))
        return file


def test_a_compressed_member_is_opened_once_however_many_ranges_are_read(archives, engine):
    folder, members = archives
    target = Counted(str(folder / "x.zip"))
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    assert read_all(fs.open("in/m0")) == members["in/m0"]
    assert target.opened == 1


def test_a_member_is_opened_again_after_an_error(archives, engine):
    folder, members = archives
    target = Counted(str(folder / "x.zip"))
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    target.broken = True
    with fs.open("in/m0") as file:
        with pytest.raises(OSError, match="Input/output error"):
            file.read(10)
        target.broken = False
        assert file.read() == members["in/m0"]


def test_the_file_of_a_target_is_closed_with_the_file_that_reads_it(archives, engine):
    folder, members = archives
    target = Counted(str(folder / "x.zip"))
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    before = target.zip._fileRefCnt
    with fs.open("in/m0") as file:
        file.read()
        assert target.zip._fileRefCnt == before + 1
    assert target.zip._fileRefCnt == before
    assert fs.cat_file("in/m0") == members["in/m0"]
    assert target.zip._fileRefCnt == before


def test_a_file_that_another_thread_has_written_is_never_read_stale(single, engine):
    """Each thread has an instance of its own, and times are of whole seconds."""
    def write(content):
        with fsspec.open("forerun::single://x", "wb") as file:
            file.write(content * 1000)

    def read():
        with fsspec.open("forerun::single://x") as file:
            return file.read()

    together(lambda: write(b"before"))
    assert read() == b"before" * 1000
    together(lambda: write(b"behind"))
    assert read() == b"behind" * 1000


def test_threads_share_the_blocks_of_a_file_that_each_opens(single, engine):
    targets = []

    def read():
        targets.append(Single("shared"))
        return read_all(fsspec.filesystem("forerun", fs=targets[-1], engine=engine).open("x"))

    read()
    together(read)
    first, second = targets
    assert first is not second
    assert (first.fetched > 0, second.fetched) == (True, 0)


class Coroutines(AsyncFileSystem):
    """Has ranges, and files that are none of fsspec's."""

    protocol = "coroutines"
    cachable = False

    async def _info(self, path, **_):
        return {"name": path, "size": 2000, "type": "file", "ETag": path}

    async def _cat_file(self, path, start=None, end=None, **_):
        return WHOLE[start:end]

    def _open(self, path, mode="rb", **_):
        return io.BytesIO()


def test_a_target_with_ranges_by_coroutines_is_asked_for_ranges(engine):
    fs = fsspec.filesystem("forerun", fs=Coroutines(), engine=engine)
    assert fs.cat_file("a", 500, 1500) == WHOLE[500:1500]
