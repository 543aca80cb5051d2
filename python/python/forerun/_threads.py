"""Threads for calls side by side, which no interrupt and no end of a process waits for.

Problem: a server that never answers holds the thread that asks it. `ThreadPoolExecutor` waits for its threads where it is
left and at the end of the process: an interrupt has no effect, and the process does not end. Mechanism: an executor with
daemons, as those of `forerun._calls`, that leaves behind the ones which are in a call. After an error it waits for them: a
program that tries again would have as many threads once more, and as many openings in memory.

Called by `forerun.fsspec` and `forerun._asynchronous`.
"""

import functools
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from queue import Empty, SimpleQueue
from typing import Any

_Call = tuple["Future[Any]", Callable[[], Any]]


class Threads(Executor):
    """At most so many threads, which are started as calls need them."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._started: list[threading.Thread] = []
        self._starting = threading.Lock()
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        # Without a lock of Python, which an interrupt could leave locked.
        self._idle: SimpleQueue[None] = SimpleQueue()

    def submit(self, call: Callable[..., Any], /, *args: Any, **kwargs: Any) -> "Future[Any]":
        """Has a thread make a call. Raises `RuntimeError` if the system gives none."""
        future: Future[Any] = Future()
        self._calls.put((future, functools.partial(call, *args, **kwargs)))
        try:
            self._idle.get_nowait()
        except Empty:
            self._start()
        return future

    def _start(self) -> None:
        with self._starting:
            if len(self._started) == self._most:
                return
            thread = threading.Thread(target=_serve, args=(self._calls, self._idle), name="forerun-call", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                if not self._started:
                    raise
            else:
                self._started.append(thread)

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Ends the threads that are idle, and others once their calls have ended."""
        for _ in self._started:
            self._calls.put(None)
        if wait:
            for thread in self._started:
                thread.join()

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Waits for calls in progress, but for an interrupt or a program that ends."""
        self.shutdown(wait=kind is None or issubclass(kind, Exception))


def _serve(calls: "SimpleQueue[_Call | None]", idle: "SimpleQueue[None]") -> None:
    # Nothing of a call is kept while the thread is idle.
    while _serve_one(calls):
        idle.put(None)


def _serve_one(calls: "SimpleQueue[_Call | None]") -> bool:
    taken = calls.get()
    if taken is None:
        return False
    future, call = taken
    answer = None
    if future.set_running_or_notify_cancel():
        try:
            answer = call()
        except BaseException as error:
            future.set_exception(error)
        else:
            future.set_result(answer)
    # An exception has this frame, which would have the exception.
    del future, call, taken, answer
    return True
