"""fsspec: the cache type "forerun", and file systems read through the engine.

With any file system whose files are fsspec's own (s3fs, gcsfs, adlfs, http):

    import forerun.fsspec
    fs.open(path, cache_type="forerun")

and without a change to the program that opens files, by the address:

    fsspec.open("forerun::s3://bucket/key")

All files share the memory limit of one engine: the one named by `engine`, or the default. Blocks
are shared by files of the same object, if the file system tells its version (ETag, generation, time
of the last change); files of an object without one share nothing.

>>> import fsspec, forerun.fsspec
>>> with fsspec.open("memory://doctest/greeting", "wb") as file:
...     _ = file.write(b"hello, world")
>>> with fsspec.open("forerun::memory://doctest/greeting") as file:
...     file.seek(7), file.read()
(7, b'world')
"""

import errno
import itertools
import os
from collections.abc import Callable
from typing import Any, ClassVar

import fsspec.caching
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

# Before the first read, which is no place to run the code of a module.
from . import _calls  # noqa: F401
from ._default import default_engine
from ._file import File
from ._file import open as _open_path
from ._forerun import Engine, Handle

# Names of an object's version in the details of file systems, the strongest first.
_VERSIONS = ("ETag", "etag", "generation", "version_id", "md5Hash", "content_md5", "checksum")
_TIMES = ("mtime", "LastModified", "last_modified", "updated", "created")

_devices: dict[str, int] = {}
_unshared = itertools.count()


def _device(fs: AbstractFileSystem) -> int:
    """A number for each file system: requests to one are measured together."""
    return _devices.setdefault(str(fs._fs_token), len(_devices))


def _version(details: dict[str, Any]) -> str:
    """The version of an object, or one that no other file has."""
    for key in (*_VERSIONS, *_TIMES):
        if details.get(key):
            return f"{key}={details[key]},size={details.get('size')}"
    return f"unknown-{os.getpid()}-{next(_unshared)}"


def _handle(
    engine: Engine,
    fetch: Callable[[int, int], bytes],
    fs: AbstractFileSystem | None,
    path: str,
    size: int,
    details: dict[str, Any],
) -> Handle:
    device = 0 if fs is None else _device(fs)
    # A path is one object in its file system alone.
    version = f"{device} {_version(details)}"
    return Handle.fetched(engine, fetch, path, version, size, device=device)


def _whole(file: Handle | File, start: int, stop: int) -> bytes:
    """The bytes of a range, all of them: callers take less for the end of the file."""
    data = file.pread(stop - start, start)
    if len(data) != stop - start:
        why = f"{len(data)} bytes for the range {start}..{stop}: the file has become shorter"
        raise OSError(errno.EIO, why, file.name)
    return data


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
            return _handle(self.engine, fetch, None, f"{id(self):x}", self.size, {})
        # The engine keeps the function that it reads with. That of a copy, because the file has
        # this cache, and a file that keeps itself is never closed.
        kind: Any = type(file)
        copy = kind.__new__(kind)
        copy.__dict__.update(file.__dict__, cache=None, _closed=True)
        fetch = fetch.__func__.__get__(copy)  # type: ignore[attr-defined]
        # Without a request: details are there unless the size was given.
        details = getattr(file, "_details", None) or {}
        return _handle(self.engine, fetch, file.fs, file.path, self.size, details)

    def _fetch(self, start: int | None, stop: int | None) -> bytes:
        start = 0 if start is None else start
        stop = self.size if stop is None else min(stop, self.size)
        if start >= stop:
            return b""
        self.total_requested_bytes += stop - start
        return _whole(self.handle, start, stop)


class ForerunFileSystem(ChainedFileSystem):
    """Another file system, with files read through the engine. Read-only.

    Files of the local file system are read by path, past its Python code; others by the range
    requests of their file system.
    """

    protocol: ClassVar[str] = "forerun"
    # Engines of equal settings are not the same engine.
    cachable = False

    def __init__(
        self,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        fs: AbstractFileSystem | None = None,
        engine: Engine | None = None,
        fo: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        if (fs is None) == (target_protocol is None):
            raise ValueError("forerun: give either fs or target_protocol")
        self.fs = fs or fsspec.filesystem(target_protocol, **(target_options or {}))
        self.engine = engine if engine is not None else default_engine()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        path = os.fspath(path)
        return path.removeprefix("forerun://").removeprefix("forerun::")

    def _open(self, path: str, mode: str = "rb", **kwargs: Any) -> File | AbstractBufferedFile:
        if mode != "rb":
            raise OSError(errno.EROFS, "Files of forerun are read-only", path)
        path = self.fs._strip_protocol(path)
        if isinstance(self.fs, LocalFileSystem):
            return _open_path(path, engine=self.engine)
        file = self.fs.open(path, "rb", cache_type="none")
        if not isinstance(file, AbstractBufferedFile):
            file.close()
            details = self.fs.info(path)
            return _Object(self, path, self._cat(path), details["size"], details)
        if file.size is None:
            # A stream without positions.
            return file
        return _Object(self, path, file._fetch_range, file.size, file.details)

    def _cat(self, path: str) -> Callable[[int, int], bytes]:
        def cat(start: int, end: int) -> bytes:
            return self.fs.cat_file(path, start=start, end=end)  # type: ignore[no-any-return]

        return cat

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        """The bytes of a file from `start` to `end`; negative ones count from its end."""
        with self.open(path, "rb") as file:
            first, last, _ = slice(start, end).indices(file.size)
            return _whole(file, first, max(first, last))

    def ls(self, path: str, detail: bool = True, **kwargs: Any) -> Any:
        """The entries of a folder, as the other file system lists them."""
        return self.fs.ls(path, detail=detail, **kwargs)

    def info(self, path: str, **kwargs: Any) -> Any:
        """The details of a file, as the other file system has them."""
        return self.fs.info(path, **kwargs)

    def find(self, path: str, *args: Any, **kwargs: Any) -> Any:
        """All files below a folder."""
        return self.fs.find(path, *args, **kwargs)

    def ukey(self, path: str) -> Any:
        """A hash of the version of a file."""
        return self.fs.ukey(path)

    def created(self, path: str) -> Any:
        """When a file was made."""
        return self.fs.created(path)

    def modified(self, path: str) -> Any:
        """When a file was changed."""
        return self.fs.modified(path)

    def invalidate_cache(self, path: str | None = None) -> None:
        """Drops listings."""
        self.fs.invalidate_cache(path)


class _Object(File):
    """A file of another file system."""

    def __init__(
        self,
        fs: ForerunFileSystem,
        path: str,
        fetch: Callable[[int, int], bytes],
        size: int,
        details: dict[str, Any],
    ) -> None:
        super().__init__(_handle(fs.engine, fetch, fs.fs, path, size, details), path)
        self.fs = fs
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_open()
        return _reopen, (self.fs, self.path, self.tell())


def _reopen(fs: ForerunFileSystem, path: str, position: int) -> Any:
    file = fs.open(path, "rb")
    file.seek(position)
    return file


fsspec.caching.register_cache(ForerunCache, clobber=True)
fsspec.register_implementation("forerun", ForerunFileSystem, clobber=True)
