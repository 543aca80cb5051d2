"""Threads that call fetch functions for the engine, which has none of its own that may run Python code.

They are daemons: one that hangs in a function does not keep the process from ending.
"""

import gc
import threading

from ._forerun import CallThread, collecting


def start(threads: list[CallThread]) -> None:
    """Starts threads that serve a queue until it is closed. Fewer, if the system has no more."""
    try:
        while threads:
            threading.Thread(target=_serve, args=(threads.pop(),), name="forerun-fetch", daemon=True).start()
    except Exception:
        pass
    finally:
        # An exception that is kept has this frame, and those left would count as long.
        threads.clear()


def _serve(thread: CallThread) -> None:
    try:
        # Nothing of an object is kept while the thread is idle.
        while _serve_one(thread):
            pass
    finally:
        # An exception that is kept has this frame.
        del thread


def _serve_one(thread: CallThread) -> bool:
    if thread.has_deferred():
        # Their code may wait for a lock of a reader, which waits for a call.
        start(thread.lacking())
        thread.drop_deferred()
    taken = thread.take()
    if taken is None:
        return False
    call, function, first, end = taken
    try:
        start(thread.lacking())
        try:
            answer = function(first, end)
        except BaseException as error:
            call.fail(error)
        else:
            call.answer(answer)
            del answer
    finally:
        # The frame of a function has this one, and an exception that frame: it would have the call, and so itself.
        del thread, taken, call, function
    return True


gc.callbacks.append(collecting)
