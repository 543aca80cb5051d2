"""The cache type "forerun" of fsspec's files.

Problem: files of s3fs, gcsfs, adlfs and http have a cache each, of a size that is set beforehand. Mechanism: a cache that
is a handle of the engine, opened at the first read, with one limit of memory for all files.

Registered by `forerun.fsspec`.
"""

import contextlib
import errno
from collections.abc import Callable
from typing import Any, ClassVar

import fsspec.caching
from fsspec.spec import AbstractBufferedFile

from . import native
from ._default import default_engine
from ._forerun import Engine, Handle
from ._handles import known_handle, native_handle, proved, target_handle, tell
from ._object import whole


class _Name(str):
    """The name of the cache. A pickled file has it, and unpickling it registers the cache."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _Name, (str(self),)


class ForerunCache(fsspec.caching.BaseCache):
    """Reads of one fsspec file through the engine.

    `cache_options` may have an `engine`. A pickled file goes to the default engine of the process
    that unpickles it, because fsspec leaves cache options out.
    """

    name: ClassVar[str] = _Name("forerun")

    def __init__(
        self,
        blocksize: int,
        fetcher: Callable[[int, int], bytes],
        size: int,
        engine: Engine | None = None,
        **_other: Any,
    ) -> None:
        super().__init__(blocksize, fetcher, size)
        self._engine = engine
        self._opened: Handle | None = None
        # A bucket of which the engine's own client has read nothing so far.
        self._unproved: tuple[str, int] | None = None

    @property
    def engine(self) -> Engine:
        """The engine, with one limit for all files."""
        if self._engine is None:
            self._engine = default_engine()
        return self._engine

    @property
    def handle(self) -> Handle:
        """The handle that `Engine.hint` takes; opened at the first use."""
        if self._opened is None:
            self._opened = self._open()
        return self._opened

    def _open(self) -> Handle:
        fetch = self.fetcher
        file = getattr(fetch, "__self__", None)
        if not isinstance(file, AbstractBufferedFile):
            return target_handle(self.engine, fetch, None, f"{id(self):x}", self.size, {})
        # Without a request: details are there unless the size was given.
        details = getattr(file, "_details", None) or {}
        # Options of one file are the target's alone.
        if not (file.kwargs or getattr(file, "s3_additional_kwargs", None)):
            with contextlib.suppress(FileNotFoundError):
                handle = self._open_known(file, details) or native_handle(self.engine, file.fs, file.path, details)
                if handle is not None and handle.size() == self.size:
                    return handle
        return self._open_target(file, details)

    def _open_known(self, file: AbstractBufferedFile, details: dict[str, Any]) -> Handle | None:
        """The object that the target has found. Its store is asked at the first read, which tells whether it answers."""
        try:
            known = native.reached(file.fs, file.path)
            handle = known and known_handle(self.engine, known, details)
        except (native.UnknownOptionError, OSError, ValueError):
            return None
        if known and handle and known.bucket not in proved:
            self._unproved = known.bucket
        return handle

    def _open_target(self, file: AbstractBufferedFile, details: dict[str, Any]) -> Handle:
        # The engine keeps the function that it reads with. That of a copy, because the file has
        # this cache, and a file that keeps itself is never closed.
        kind: Any = type(file)
        copy = kind.__new__(kind)
        copy.__dict__.update(file.__dict__, cache=None, _closed=True)
        fetch = self.fetcher.__func__.__get__(copy)  # type: ignore[attr-defined]
        return target_handle(self.engine, fetch, file.fs, file.path, self.size, details)

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start = 0 if start is None else start
        stop = self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        self.total_requested_bytes += stop - start
        try:
            return self._read(self.handle, start, stop)
        except OSError as error:
            if error.errno == errno.ESTALE and isinstance(file := getattr(self.fetcher, "__self__", None), AbstractBufferedFile):
                # Its listing is out of date.
                file.fs.invalidate_cache(file.path)
            raise

    def _read(self, handle: Handle, start: int, stop: int) -> bytes:
        if self._unproved is None:
            return whole(handle, start, stop)
        try:
            data = whole(handle, start, stop)
            proved.add(self._unproved)
        except OSError as error:
            if error.errno == errno.ESTALE:
                raise
            file = self.fetcher.__self__  # type: ignore[attr-defined]
            if not isinstance(error, FileNotFoundError):
                tell(file.fs, "error", str(error))
            self._opened = self._open_target(file, file.details)
            data = whole(self._opened, start, stop)
        self._unproved = None
        return data
