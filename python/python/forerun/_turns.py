"""Targets of fsspec that bear one call at a time, and files of theirs that have no range requests.

Problem: members of an archive share one file, and files of an FTP server one connection: two fetches side by side move it
for each other, and read wrong bytes without an error. A file without range requests is opened again for each of them, and
a compressed one is inflated from its beginning each time. Mechanism: one lock for each such target, around every call of
it (`turn_of`), which holds up no other target; and one open file, read by its position under that lock (`Kept`).

Targets with coroutines, those in memory or on the local disk, and that of Hugging Face, which asks with a session for each
thread, and those of pyarrow bear several calls at once (`bears_calls`). A target around others (`dir`, `reference`) bears as
many as all of them do. One that keeps copies of files in a local folder is held at the opening of a file alone (`opening_of`):
it shows a copy while that is being made. The lock does not know calls that a program makes of its target past `forerun`, nor those of its parent.

Called by `forerun.fsspec` and `forerun._handles`.
"""

import contextlib
import functools
import os
import threading
import weakref
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from fsspec.asyn import AsyncFileSystem
from fsspec.implementations.cached import CachingFileSystem, SimpleCacheFileSystem
from fsspec.implementations.dirfs import DirFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.implementations.memory import MemoryFileSystem
from fsspec.spec import AbstractFileSystem

from ._forerun import Turn

_T = TypeVar("_T")

Fetch = Callable[[int, int], bytes]


def of_each(make: Callable[[AbstractFileSystem], _T]) -> Callable[[AbstractFileSystem], _T]:
    """A function of a file system, with its result kept for as long as that lives. Equal ones are not the same.

    A forked child begins without results: a lock may have been held by a thread that it lacks.
    """
    kept: dict[int, _T] = {}

    @functools.wraps(make)
    def of(fs: AbstractFileSystem) -> _T:
        try:
            return kept[id(fs)]
        except KeyError:
            weakref.finalize(fs, kept.pop, id(fs), None).atexit = False
            return kept.setdefault(id(fs), make(fs))

    os.register_at_fork(after_in_child=kept.clear)
    return of


def attributes(fs: AbstractFileSystem) -> dict[str, Any]:
    """The attributes of a file system itself: those of a cache in front of another are that one's."""
    own: dict[str, Any] = object.__getattribute__(fs, "__dict__")
    return own


def below(fs: AbstractFileSystem) -> Iterator[AbstractFileSystem]:
    """The file systems that one calls."""
    own = attributes(fs)
    for one in (own.get("fs"), own.get("sync_fs"), *dict(own.get("fss") or {}).values()):
        if isinstance(one, AbstractFileSystem) and one is not fs:
            yield one


_KNOWN = {"huggingface_hub.hf_file_system.HfFileSystem", "fsspec.implementations.arrow.ArrowFSWrapper"}


@of_each
def bears_calls(fs: AbstractFileSystem) -> bool:
    """Whether a target bears several calls at once."""
    kind = type(fs)
    names = {f"{one.__module__}.{one.__qualname__}" for one in kind.__mro__}
    if isinstance(fs, MemoryFileSystem | LocalFileSystem) or names & _KNOWN:
        return True
    return bool(getattr(kind, "async_impl", False)) and all(map(bears_calls, below(fs)))


def keeps_copies(fs: AbstractFileSystem) -> bool:
    """Whether a target keeps copies of files of another, which bears several calls."""
    return _keeper(fs, "") is not None


def _keeper(fs: AbstractFileSystem, path: str) -> tuple[AbstractFileSystem, str] | None:
    while isinstance(fs, DirFileSystem):
        fs, path = fs.fs, fs._join(path)
    return (fs, path) if isinstance(fs, CachingFileSystem) and all(map(bears_calls, below(fs))) else None


# A call that collects garbage may wait for a lock of the reader (h5py's). No collection that ends by itself takes as long.
_COLLECTION_SECONDS = 10.0


@of_each
def _lock_of(fs: AbstractFileSystem) -> Turn:
    return Turn(_COLLECTION_SECONDS)


def turn_of(fs: AbstractFileSystem) -> Any:
    """A context in which a target is called: one at a time, unless it bears several."""
    if bears_calls(fs) or keeps_copies(fs):
        return contextlib.nullcontext()
    while (one := next(below(fs), None)) and not bears_calls(one):
        # Two folders of one archive have its one file.
        fs = one
    return _lock_of(fs)


@of_each
def _openings(fs: AbstractFileSystem) -> tuple[threading.Lock, weakref.WeakValueDictionary[str, Turn]]:
    return threading.Lock(), weakref.WeakValueDictionary()


def opening_of(fs: AbstractFileSystem, path: str) -> Any:
    """A context in which a target opens a file."""
    found = _keeper(fs, path)
    if found is None:
        return turn_of(fs)
    keeper, name = found
    if not isinstance(keeper, SimpleCacheFileSystem):
        # The list of its copies is of all files, and is lost where two threads change it.
        return _lock_of(keeper)
    lock, turns = _openings(keeper)
    with lock:
        return turns.setdefault(keeper._strip_protocol(name), Turn(_COLLECTION_SECONDS))


class _Alone:
    """Stands for the file system of a function that names none."""


def in_turn(fs: AbstractFileSystem | None, fetch: Fetch) -> Fetch:
    """A function that fetches of a target while nothing else calls that; without a target, one call at a time."""
    of: Any = _Alone() if fs is None else fs

    def fetched(start: int, end: int) -> bytes:
        with turn_of(of):
            return fetch(start, end)

    return fetched


def has_ranges(fs: AbstractFileSystem) -> bool:
    """Whether a target has range requests of its own, and not one that opens the file, seeks and reads."""
    if isinstance(fs, DirFileSystem):
        return has_ranges(fs.fs)
    kind = type(fs)
    if issubclass(kind, AsyncFileSystem) and kind._cat_file is not AsyncFileSystem._cat_file:
        # Its `cat_file` is made of that, for each instance.
        return True
    return kind.cat_file is not AbstractFileSystem.cat_file


class Kept:
    """Ranges of one open file of a target, by its position; opened again after an error, and in a forked child.

    Called in the target's turn; `reopen` takes it by itself.
    """

    def __init__(self, file: Any, reopen: Callable[[], Any]) -> None:
        # Those of other processes are left as they are: to close one may speak to its server.
        self._files = {os.getpid(): file}
        self._reopen = reopen
        self._is_closed = False

    def __call__(self, start: int, end: int) -> bytes:
        # Some targets bear several calls, but no file does.
        with _lock_of(self):  # type: ignore[arg-type]
            return self._read(start, end)

    def _read(self, start: int, end: int) -> bytes:
        file = self._files.pop(os.getpid(), None)
        if file is None:
            file = self._reopen()
        file.seek(start)
        data = file.read(end - start)
        while len(data) < end - start and (more := file.read(end - start - len(data))):
            data += more
        self._files[os.getpid()] = file
        if self._is_closed:
            self.close()
        return bytes(data)

    def close(self) -> None:
        """Lets go of the file, which a call in progress does at its end. The engine keeps the function for its blocks."""
        self._is_closed = True
        self._files.pop(os.getpid(), None)
