"""Threads for calls side by side."""

import contextlib
import gc
import itertools
import sys
import threading
import time
import weakref

import fsspec
import pytest
from fsspec.spec import AbstractFileSystem

import forerun.fsspec  # noqa: F401
from forerun import _threads
from forerun._threads import Threads
from test_calls import ends


@pytest.fixture
def uncollected():
    gc.collect()
    gc.disable()
    yield
    gc.enable()


class Argument:
    pass


def fails(_argument):
    raise OSError(5, "no")


def tells(_argument):
    try:
        raise OSError(5, "no")
    except OSError as error:
        return error


def raised(pool, call, argument):
    with pytest.raises(OSError, match="no"):
        pool.submit(call, argument).result()


def returned(pool, call, argument):
    assert isinstance(pool.submit(call, argument).result(), OSError)


@pytest.mark.parametrize(("call", "ends"), [(fails, raised), (tells, returned)])
def test_a_call_that_fails_leaves_nothing_behind_without_a_collection(call, ends, uncollected):
    argument = Argument()
    lives = weakref.ref(argument)
    with Threads(1) as pool:
        ends(pool, call, argument)
        # The thread has let go of the first call when it answers the second.
        pool.submit(int).result()
    del argument
    assert lives() is None


@contextlib.contextmanager
def interrupted_at(step, files):
    """An interrupt behind so many lines of these files, as one that a signal's handler raises. Whether there were as many."""
    lines, was_reached = itertools.count(), []

    def trace(frame, event, _arg):
        if event != "call" and frame.f_code.co_filename in files and next(lines) == step:
            was_reached.append(True)
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield was_reached
    except KeyboardInterrupt:
        pass
    finally:
        sys.settrace(before)


def test_an_interrupt_at_any_line_leaves_a_pool_that_takes_calls():
    for step in itertools.count():
        pool = Threads(4)
        pool.submit(int).result()
        with interrupted_at(step, [_threads.__file__, threading.__file__]) as was_reached:
            pool.submit(int)
        assert ends(lambda pool=pool: pool.submit(int).result()) == 0
        pool.shutdown(wait=False)
        if not was_reached:
            break
    assert step > 0


class Lacks(AbstractFileSystem):
    """Takes calls side by side, and lacks one file: it says so while another call is in progress."""

    async_impl, mirror_sync_methods, cachable = True, False, False

    def __init__(self):
        super().__init__()
        self.begun, self.ended = threading.Event(), threading.Event()

    def _open(self, path, mode="rb", **kwargs):
        if path == "absent":
            self.begun.wait()
            raise FileNotFoundError(path)
        self.begun.set()
        # As long as a server takes.
        time.sleep(0.2)
        self.ended.set()
        raise PermissionError(path)


@pytest.mark.parametrize("starts", [[0, 0], [0, 0, 7, 7]])
def test_after_an_error_no_call_is_left_in_progress(starts, engine):
    target = Lacks()
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    paths = ["absent", "there"] * (len(starts) // 2)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges(paths, starts, 9, on_error="raise")
    assert target.ended.is_set()


def test_an_error_in_the_middle_of_a_batch_closes_its_files(engine):
    memory = fsspec.filesystem("memory")
    memory.pipe_file("/batch/a", b"a" * 100)
    fs = fsspec.filesystem("forerun", fs=memory, engine=engine)
    closed = []
    opened = fs.open

    def watched(*args, **kwargs):
        file = opened(*args, **kwargs)
        close = file.close
        file.close = lambda: (closed.append(file), close())
        return file

    fs.open = watched
    try:
        fs.cat_ranges(["/batch/a", "/batch/absent"], 0, 5, on_error="raise")
    except FileNotFoundError:
        assert closed
    else:
        pytest.fail("no error")
