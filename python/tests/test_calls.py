"""Fetch functions: on threads of Python, beside each other, and let go with their files."""

import errno
import gc
import itertools
import sys
import threading
import time
import types
import weakref

import fsspec
import pytest
from fsspec.spec import AbstractBufferedFile

import forerun
import forerun.fsspec
from forerun import _calls
from forerun._forerun import Handle

SIZE = 1 << 20
WAIT = 600


def ends(call):
    """Runs a call in a thread; fails where it does not end."""
    result = []
    thread = threading.Thread(target=lambda: result.append(call()), daemon=True)
    thread.start()
    thread.join(WAIT)
    assert not thread.is_alive(), "it does not end"
    return result[0]


def test_functions_are_called_on_threads_that_python_started(engine):
    seen = set()

    def fetch(start, end):
        seen.add(threading.current_thread())
        return bytes(end - start)

    handle = Handle.fetched(engine, fetch, "threads", "1", SIZE)
    assert handle.pread(SIZE, 0) == bytes(SIZE)
    assert seen and all(type(thread) is threading.Thread and thread.daemon for thread in seen)


def test_functions_that_hang_hold_up_only_their_own_reads(engine):
    released = threading.Event()
    asked = threading.Semaphore(0)

    def hang(start, end):
        asked.release()
        released.wait()
        return bytes(end - start)

    def hung(number):
        Handle.fetched(engine, hang, f"hung {number}", "1", SIZE, device=number).pread(1, 0)

    threads = [threading.Thread(target=hung, args=(number,)) for number in range(40)]
    try:
        for thread in threads:
            thread.start()
        for _ in threads:
            assert asked.acquire(timeout=WAIT)
        fetch = lambda start, end: b"x" * (end - start)  # noqa: E731
        other = Handle.fetched(engine, fetch, "other", "1", SIZE, device=99)
        assert ends(lambda: other.pread(SIZE, 0)) == b"x" * SIZE
    finally:
        released.set()
        for thread in threads:
            thread.join()


def collect_garbage_that_takes(lock):
    class Garbage:
        def __init__(self):
            self.me = self

        def __del__(self):
            with lock:
                pass

    Garbage()
    gc.collect()


def error_of(handle, offset):
    with pytest.raises(OSError) as raised:
        handle.pread(1, offset)
    return raised.value


@pytest.mark.parametrize("when", ["first call", "start of a thread"])
def test_a_collection_that_waits_for_the_reader_does_not_hold_its_fetch_up(engine, when, monkeypatch):
    """As h5py's objects do: their destructor takes a lock that the reader holds."""
    lock, calls = threading.Lock(), itertools.count()

    def collect():
        if next(calls) == 0:
            collect_garbage_that_takes(lock)

    def fetch(start, end):
        if when == "first call":
            collect()
        return bytes(end - start)

    handle = Handle.fetched(engine, fetch, f"collected {when}", "1", SIZE)
    if when == "start of a thread":
        start = _calls.start

        def held_up(threads):
            collect()
            start(threads)

        monkeypatch.setattr(_calls, "start", held_up)

    def read():
        with lock:
            return handle.pread(4096, 0)

    assert ends(read) == bytes(4096)


@pytest.fixture
def kept_exceptions(monkeypatch):
    """Those that end threads are kept, with their frames."""
    kept = []
    monkeypatch.setattr(threading, "excepthook", kept.append)
    return kept


@pytest.mark.usefixtures("kept_exceptions")
def test_a_call_whose_thread_dies_has_failed_and_the_thread_counts_no_more(engine, monkeypatch):
    start, has_started = _calls.start, threading.Event()
    monkeypatch.setattr(_calls, "start", lambda threads: (start(threads), has_started.set()))
    handle = Handle.fetched(engine, lambda start, end: bytes(end - start), "dies", "1", 1 << 40)
    assert has_started.wait(WAIT)

    class Ended(BaseException):
        pass

    def dies(**given):
        # Nothing of the thread in this frame.
        given.clear()
        raise Ended

    # Each thread that takes a call starts another in its place.
    monkeypatch.setattr(_calls, "threading", types.SimpleNamespace(Thread=dies))
    # The two threads die, and the last read finds none: it is given up as soon as that is seen.
    numbers = ends(lambda: [error_of(handle, number << 30).errno for number in range(4)])
    assert set(numbers) <= {errno.EIO, errno.EAGAIN} and numbers[-1] == errno.EAGAIN


class Odd(Exception):
    def with_traceback(self, _trace):
        raise RuntimeError("no")


def test_an_exception_of_an_odd_class_reaches_its_reader(engine):
    def fetch(_start, _end):
        raise Odd

    handle = Handle.fetched(engine, fetch, "odd", "1", SIZE)
    assert isinstance(ends(lambda: error_of(handle, 0)).__cause__, Odd)


class Owner:
    def fetch(self, start, end):
        return bytes(end - start)


def owned(engine, dressed):
    owner = Owner()
    handle = Handle.fetched(engine, owner.fetch, f"cycle {id(owner)}", "1", SIZE)
    owner.file = dressed(handle)
    owner.file.pread(10, 0)
    return owner


def cached(engine):
    fs = fsspec.filesystem("memory")
    fs.pipe("/cycle", bytes(1000))

    class Buffered(AbstractBufferedFile):
        def _fetch_range(self, start, end):
            return self.fs.cat_file(self.path, start, end)

    options = {"engine": engine}
    file = Buffered(fs, "/cycle", cache_type="forerun", cache_options=options)
    # The function is that of a copy, which has this, too.
    file.me = file
    file.read(10)
    return file


def chained(engine):
    fs = fsspec.filesystem("memory")
    fs.pipe("/cycle", bytes(1000))
    own = fsspec.filesystem("forerun", fs=fs, engine=engine)
    own.kept = own.open("/cycle")
    own.kept.read(10)
    return own


@pytest.mark.parametrize(
    "made",
    [
        lambda engine: owned(engine, lambda handle: handle),
        lambda engine: owned(engine, lambda handle: forerun.File(handle, "cycle")),
        cached,
        chained,
    ],
    ids=["handle", "file", "cache", "protocol"],
)
def test_a_cycle_through_a_function_is_collected(engine, made):
    gone = [weakref.ref(made(engine)) for _ in range(10)]
    until = time.monotonic() + WAIT
    while any(ref() for ref in gone) and time.monotonic() < until:
        # A function that fetches ahead is in use as yet.
        gc.collect()
        time.sleep(0.01)
    assert [ref() for ref in gone] == [None] * 10


def test_a_fetch_that_failed_and_has_no_reader_is_collected_with_its_file(engine):
    def made():
        owner, failed = Owner(), threading.Event()

        def fetch(start, end):
            if start:
                failed.set()
                raise OSError(errno.ECONNRESET, "reset")
            return owner.fetch(start, end)

        # Of no other test, whose functions would fetch its blocks.
        handle = Handle.fetched(engine, fetch, f"failed {id(owner)}", "1", 1 << 40)
        handle.pread(3, 0)
        handle.announce([(1 << 30, 10)])
        assert failed.wait(WAIT)
        handle.close()
        return weakref.ref(owner)

    gone = made()
    until = time.monotonic() + WAIT
    while gone() and time.monotonic() < until:
        # The exception may be on its way to the file as yet.
        gc.collect()
    assert gone() is None


def test_a_function_is_let_go_of_with_its_file_without_a_collection(engine):
    def made():
        owner = Owner()
        file = Handle.fetched(engine, owner.fetch, f"let go {id(owner)}", "1", SIZE)
        assert file.pread(10, 0) == bytes(10)
        return weakref.ref(owner)

    numbers = itertools.count()
    gc.collect()
    gc.disable()
    try:
        gone = made()
        until = time.monotonic() + WAIT
        while gone() and time.monotonic() < until:
            # Threads of the engine let go of the last answers; one that calls drops those.
            name = f"other {next(numbers)}"
            Handle.fetched(engine, Owner().fetch, name, "1", SIZE).pread(10, 0)
        assert gone() is None
    finally:
        gc.enable()


def test_no_call_waits_for_the_end_of_another_function(engine):
    """Which may wait for a lock that the reader of the call has, as those of h5py do."""
    lock, dropped = threading.RLock(), []

    class Function:
        def __call__(self, start, end):
            return bytes(end - start)

        def __del__(self):
            with lock:
                dropped.append(threading.current_thread().name)

    kept = Handle.fetched(engine, Function(), "kept", "1", 1 << 40)

    def reads(number):
        with lock:
            return kept.pread(1, number << 27)

    gc.collect()
    gc.disable()
    # Threads change places often, so that now and then the one that called a function is the last to let it go.
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for number in range(5000):
            handle = Handle.fetched(engine, Function(), f"let go {number}", "1", SIZE)
            handle.pread(1, 0)
            handle.close()
            del handle
            assert ends(lambda number=number: reads(number)) == bytes(1)
            if number >= 200 and "forerun-fetch" in dropped:
                break
    finally:
        sys.setswitchinterval(interval)
        gc.enable()
    if "forerun-fetch" not in dropped:
        pytest.skip(f"functions were let go by {set(dropped)} alone")


def test_a_file_that_a_finalizer_keeps_is_read_once_the_collection_is_over(engine):
    kept = []

    class Keeps(Owner):
        def __del__(self):
            with pytest.raises(OSError) as raised:
                self.file.pread(3, SIZE - 3)
            kept.append((self, raised.value.errno))

    def made():
        owner = Keeps()
        owner.file = Handle.fetched(engine, owner.fetch, f"kept {id(owner)}", "1", SIZE)
        owner.file.pread(3, 0)

    made()
    until = time.monotonic() + WAIT
    while not kept and time.monotonic() < until:
        # A function that fetches ahead is in use as yet.
        gc.collect()
    owner, number = kept[0]
    assert number == errno.EBADF
    assert owner.file.pread(3, SIZE - 3) == bytes(3)


def test_an_object_is_read_by_its_newest_function_and_the_one_before_is_collected(engine):
    calls = []

    def fetch(start, end):
        calls.append((start, end))
        return bytes(end - start)

    owner = Owner()
    owner.file = Handle.fetched(engine, owner.fetch, "twins", "1", SIZE)
    other = Handle.fetched(engine, fetch, "twins", "1", SIZE)
    gone = weakref.ref(owner)
    del owner
    gc.collect()
    assert gone() is None
    assert other.pread(SIZE, 0) == bytes(SIZE)
    assert sum(end - start for start, end in calls) == SIZE


class Last:
    """Of garbage: `hook` runs when its part is taken apart, which no finalizer of the same garbage is called after."""

    def __init__(self, hook):
        self.part, self.hook = Owner(), hook

    def __del__(self):
        hook = self.hook
        hook.seen = weakref.ref(self.part, lambda _: hook())


def test_a_function_that_is_being_taken_apart_is_not_called(engine):
    answers = []
    other = Handle.fetched(engine, lambda start, end: b"o" * (end - start), "apart", "1", 1 << 40)

    def read():
        answers.append(ends(lambda: other.pread(4, 1 << 39)))

    def made():
        def fetch(start, end):
            return bytes(end - start)

        # In this order: the function loses its variables first, and then the items of its attribute, from the end.
        fetch.kept = [Handle.fetched(engine, fetch, "apart", "1", 1 << 40), Last(read)]
        assert fetch.kept[0].pread(4, 0) == bytes(4)
        return weakref.ref(fetch)

    gc.collect()
    gone = made()
    until = time.monotonic() + WAIT
    while gone() and time.monotonic() < until:
        # A function that fetches ahead is in use as yet.
        gc.collect()
    assert answers == [b"oooo"]


def test_the_cause_of_an_error_is_the_exception_of_the_call_that_failed(engine):
    failures = {}

    def function(name):
        def fetch(start, end):
            if failure := failures.get(name):
                raise failure
            return bytes(end - start)

        return fetch

    other, own = (Handle.fetched(engine, function(name), "causes", "1", 1 << 40) for name in ["other", "own"])
    failures["own"] = PermissionError(13, "refused")
    assert own.pread(1, 0) == bytes(1)
    # A read of either handle may be carried out by the function of the other.
    failures["other"] = TimeoutError(110, "silent")
    for handle in (own, other, own, other):
        with pytest.raises(OSError) as raised:
            handle.pread(1, 1 << 39)
        cause = raised.value.__cause__
        assert cause in failures.values()
        assert raised.value.errno == cause.errno


def test_the_collector_sees_the_function_of_a_handle(engine):
    def fetch(start, end):
        return bytes(end - start)

    handle = Handle.fetched(engine, fetch, "kept", "1", SIZE)
    assert gc.is_tracked(handle)
    assert any(one is fetch for one in gc.get_referents(*gc.get_referents(handle)))


def test_an_engine_with_a_fetch_that_hangs_is_dropped_at_once():
    released = threading.Event()
    asked = threading.Event()

    def hang(start, end):
        asked.set()
        released.wait()
        return bytes(end - start)

    def used():
        engine = forerun.Engine(memory=4 << 20)
        handle = Handle.fetched(engine, hang, "hang", "1", SIZE)
        engine.hint([(handle, 0, 4096)])
        assert asked.wait(WAIT)

    try:
        ends(used)
    finally:
        released.set()


def test_readers_side_by_side_get_the_exceptions_of_their_own_ranges(engine):
    readers = 8
    together, calls = threading.Barrier(readers), itertools.count()

    def fetch(start, _end):
        if next(calls) < readers:
            together.wait(WAIT)
        raise OSError(errno.EIO, f"from {start}")

    handle = Handle.fetched(engine, fetch, "side by side", "1", 1 << 40)
    causes = {}

    def read(at):
        with pytest.raises(OSError) as raised:
            handle.pread(4096, at)
        causes[at] = str(raised.value.__cause__)

    places = [number << 30 for number in range(readers)]
    threads = [threading.Thread(target=read, args=(at,)) for at in places]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert causes == {at: f"[Errno {errno.EIO}] from {at}" for at in places}


def test_all_readers_that_wait_for_a_call_get_its_exception(engine):
    readers = 4

    def fetch(_start, _end):
        # Each of them waits in the engine by then.
        while engine.ledger()["reads"] < readers:
            time.sleep(0)
        raise OSError(errno.EIO, "refused")

    handle = Handle.fetched(engine, fetch, "awaited by all", "1", 1 << 40)
    causes = []

    def read():
        with pytest.raises(OSError) as raised:
            handle.pread(4096, 1 << 30)
        causes.append(str(raised.value.__cause__))

    threads = [threading.Thread(target=read) for _ in range(readers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert causes == [f"[Errno {errno.EIO}] refused"] * readers


def test_a_read_of_many_calls_gets_the_exception_of_the_first_that_failed_behind_its_bytes():
    # So small that no more calls are made ahead than the exceptions that are kept.
    engine = forerun.Engine(memory=4 << 20)
    good = 1 << 20

    def fetch(start, end):
        if end <= good:
            return bytes(end - start)
        raise OSError(errno.EIO, "first" if start <= good else "behind")

    for number in range(16):
        handle = Handle.fetched(engine, fetch, f"many {number}", "1", 1 << 40, requests=64)
        for at in (0, good):
            with pytest.raises(OSError) as raised:
                handle.pread(4 << 20, at)
            assert str(raised.value.__cause__) == f"[Errno {errno.EIO}] first"
