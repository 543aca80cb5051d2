"""Threads that call fetch functions for the engine, which has none of its own that may run Python code.

They are daemons: one that hangs in a function does not keep the process from ending.
"""

import gc
import threading

from ._forerun import CallQueue, collecting


def start(queue: CallQueue, threads: int) -> None:
    """Starts threads that serve a queue until it is closed. Fewer, if the system has no more."""
    for started in range(threads):
        try:
            threading.Thread(target=_serve, args=(queue,), name="forerun-fetch", daemon=True).start()
        except Exception:
            queue.not_started(threads - started)
            return


def _serve(queue: CallQueue) -> None:
    is_new = True
    # Nothing of an object is kept while the thread is idle.
    while _serve_one(queue, is_new):
        is_new = False


def _serve_one(queue: CallQueue, is_new: bool) -> bool:
    taken = queue.take(is_new)
    if taken is None:
        return False
    call, function, first, end = taken
    if lacking := queue.lacking():
        start(queue, lacking)
    try:
        answer = function(first, end)
    except BaseException as error:
        # Without this frame, which has the call, which has the exception.
        trace = error.__traceback__
        call.fail(error.with_traceback(trace.tb_next if trace else None))
    else:
        call.answer(answer)
    return True


gc.callbacks.append(collecting)
