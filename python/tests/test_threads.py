"""Threads for calls side by side."""

import gc
import weakref

import pytest

from forerun._threads import Threads


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
