"""The file system `forerun` with coroutines, for callers that ask for one with `asynchronous=True`.

Problem: zarr reads chunks side by side with coroutines. It runs the calls of a file system that has none on the threads
of its event loop, six on a machine with two processors: so many requests are in flight, whatever the store can do.
Mechanism: fsspec's own wrapper, with calls on as many threads as a store is asked at once. 200 chunks of 1 MB of a store
of 30 ms: 1.5 s, with the threads of the loop 2.0 s (`python/bench/tables.py`). The end of the process waits for calls that
write, and for none that only reads: a server may never answer.

Made by `ForerunFileSystem`.
"""

import asyncio
import functools
import os
from collections.abc import Callable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any, ClassVar

from fsspec.implementations.asyn_wrapper import AsyncFileSystemWrapper

from . import _target
from ._threads import Threads

# See `_OPEN_THREADS` of `forerun.fsspec`.
_MOST = 64

# Those that write nothing, neither to the store nor to a local file.
_READS = {*_target.READS, *"cat cat_file cat_ranges head isfile ls modified read_block read_bytes read_text size tail".split()}


class AsynchronousFileSystem(AsyncFileSystemWrapper):
    """The file system `forerun` whose methods are coroutines: `_cat_file` for `cat_file`, and so on."""

    protocol: ClassVar[str] = "forerun"
    cachable = False

    def __init__(self, *args: Any, asynchronous: bool = True, **kwargs: Any) -> None:
        from .fsspec import ForerunFileSystem

        super().__init__(ForerunFileSystem(*args, **kwargs), asynchronous=asynchronous)

    def _wrap_all_sync_methods(self) -> None:
        super()._wrap_all_sync_methods()
        # A generator makes no coroutine: that of the base lists folder by folder.
        self.__dict__.pop("_walk", None)
        for name, made in list(vars(self).items()):
            if asyncio.iscoroutinefunction(made) and (method := getattr(made, "__wrapped__", None)):
                setattr(self, name, _on_threads(method, _readers if name.removeprefix("_") in _READS else _writers))

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """As of other file systems, without the engine."""
        kind = type(self)
        told: dict[str, Any] = self.sync_fs.to_dict(include_password=include_password)
        return {**told, "cls": f"{kind.__module__}:{kind.__name__}", "asynchronous": True}


def _on_threads(method: Callable[..., Any], pool: Callable[[int], Executor]) -> Callable[..., Any]:
    @functools.wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(pool(os.getpid()), functools.partial(method, *args, **kwargs))

    return call


@functools.lru_cache(maxsize=1)
def _readers(_process: int) -> Executor:
    """The threads of this process: a forked child has none of its parent's."""
    return Threads(_MOST)


@functools.lru_cache(maxsize=1)
def _writers(_process: int) -> Executor:
    """Threads that the end of the process waits for."""
    return ThreadPoolExecutor(_MOST, thread_name_prefix="forerun-write")
