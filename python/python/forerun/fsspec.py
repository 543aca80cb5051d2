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
import functools
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from datetime import datetime
from typing import Any, ClassVar

import fsspec.caching
from fsspec.implementations.chained import ChainedFileSystem
from fsspec.implementations.local import LocalFileSystem
from fsspec.json import FilesystemJSONEncoder
from fsspec.spec import AbstractBufferedFile, AbstractFileSystem

# Before the first read, which is no place to run the code of a module.
from . import (
    _calls,  # noqa: F401
    _target,
    native,
)
from ._cache import ForerunCache
from ._default import default_engine
from ._file import File
from ._following import Following
from ._forerun import Engine, Handle
from ._handles import listed_handle, native_handle, target_handle, token, written
from ._object import TREE_FIRST, TREES, Object, batch, read_alone, whole
from ._threads import Threads
from ._turns import Fetch, Kept, bears_calls, has_ranges, keeps_copies, opening_of, turn_of
from .parquet import Footers


class ForerunFileSystem(ChainedFileSystem):
    """Another file system, the target, with files read through the engine.

    Files of the local file system are read by path, objects of s3fs, gcsfs, adlfs and http by the engine's own
    connections (see `forerun.native`), others by the range requests of their file system. All else is the target's:
    listings, writing, whole downloads by `get`. Paths may be those of the target, or begin with `forerun://`.
    """

    protocol: ClassVar[str] = "forerun"
    # Engines of equal settings are not the same engine.
    cachable = False

    def __new__(cls, *args: Any, asynchronous: bool = False, **kwargs: Any) -> Any:
        """A file system, or one with coroutines if that is asked for."""
        if asynchronous and cls is ForerunFileSystem:
            from ._asynchronous import AsynchronousFileSystem

            return AsynchronousFileSystem(*args, **kwargs)
        return super().__new__(cls)

    def __init__(
        self,
        target_protocol: str | None = None,
        target_options: dict[str, Any] | None = None,
        fs: AbstractFileSystem | None = None,
        engine: Engine | None = None,
        fo: str | None = None,
        anon: bool | None = None,
        **kwargs: Any,
    ) -> None:
        if anon is not None and fs is None:
            # pandas gives it to any file system whose store has refused a request.
            target_options = {**(target_options or {}), "anon": anon}
        for option in kwargs.keys() - _OPTIONS:
            to = f"target_options, or by an address as the options of {target_protocol!r}"
            raise ValueError(f"forerun: option {option!r}: give it to the target, in {to}")
        super().__init__(**kwargs)
        if fs is not None and target_protocol is not None:
            raise ValueError("forerun: fs and target_protocol are both given: give either fs or target_protocol")
        if fs is None and target_protocol is None:
            raise ValueError(
                "forerun: the address does not say which file system is read: write forerun::s3://bucket/key, with two colons and "
                "the target's own address (forerun::file:///data/x), or give either fs or target_protocol, as in "
                'fsspec.open("forerun://bucket/key", target_protocol="s3")'
            )
        target = fs if fs is not None else fsspec.filesystem(target_protocol, **(target_options or {}))
        self._target = target
        self._may_lack_keys = fs is None
        self.engine = engine if engine is not None else default_engine()
        self.footers = Footers()
        self._following = Following()
        # Answers that the opening of a file gave its thread: the path, when, and the answers that were not asked for yet.
        self._met = threading.local()
        # Files that `isfile` has opened, and when.
        self._found: dict[str, tuple[float, Handle]] = {}
        # As the target has them, for the methods of the base.
        self._strip_protocol = lambda path: target._strip_protocol(self._below(path))  # type: ignore[method-assign]
        self._parent = lambda path: target._parent(self._below(path))  # type: ignore[method-assign]
        self.root_marker = target.root_marker
        self.sep = target.sep

    @property
    def fs(self) -> AbstractFileSystem:
        """The target. One that was made for this file system, and finds no keys, signs nothing, as `forerun.open`."""
        if self._may_lack_keys:
            self._target = native.unsigned(self._target)
            self._may_lack_keys = False
        return self._target

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(one) for one in path]
        return _stripped(os.fspath(path))

    def _below(self, path: Any) -> Any:
        """Paths of the target for paths of this one: a slash at the end has a meaning, and stays."""
        if isinstance(path, dict):
            return {self._below(one): value for one, value in path.items()}
        if isinstance(path, list | tuple | set):
            return [self._below(one) for one in path]
        if not isinstance(path, str | os.PathLike):
            return path
        path = os.fspath(path)
        below = _stripped(path)
        if path.startswith("forerun::") and not path.startswith("forerun://"):
            end = "/" if below.endswith("/") else ""
            below = self._target._strip_protocol(below).removesuffix("/") + end
        return below

    @property
    def transaction(self) -> Any:
        """The target's: files that are written are its own."""
        return self.fs.transaction

    def start_transaction(self) -> Any:
        """Begins a transaction of the target."""
        return self.fs.start_transaction()

    def end_transaction(self) -> None:
        """Ends a transaction of the target."""
        with turn_of(self.fs):
            self.fs.end_transaction()

    def to_dict(self, *, include_password: bool = True) -> dict[str, Any]:
        """As of other file systems. The engine is left out: it is the default one where this is read."""
        told = dict(self.storage_options)
        told.pop("engine", None)
        if not include_password and told.get("target_options"):
            told["target_options"] = {k: v for k, v in told["target_options"].items() if k != "password"}
        kind = type(self)
        encoded = FilesystemJSONEncoder().make_serializable(told)
        arguments = FilesystemJSONEncoder().make_serializable(self.storage_args)
        name = f"{kind.__module__}:{kind.__name__}"
        return {"cls": name, "protocol": self.protocol, "args": arguments, **encoded}

    def open(self, path: Any, mode: str = "rb", *args: Any, **kwargs: Any) -> Any:
        """Opens a file: for reading through the engine, for writing that of the target."""
        if "r" in mode and "+" not in mode:
            return super().open(path, mode, *args, **kwargs)
        written.add(token(self.fs))
        self._forget()
        below = self._below(path)
        with opening_of(self.fs, below):
            return self.fs.open(below, mode, *args, **kwargs)

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: dict[str, Any] | None = None,
        cache_type: str | None = None,
        fill_cache: bool | None = None,
        **kwargs: Any,
    ) -> File | AbstractBufferedFile:
        if isinstance(self.fs, LocalFileSystem):
            return Object(self, path, Handle(self.engine, path))
        part = kwargs.pop("forerun_part", None) or self.footers.part(path)
        if part is None and path.endswith(_LINES):
            part = {"first": _LINES_FIRST}
        elif part is None and path.endswith(TREES):
            part = {"first": TREE_FIRST}
        when, handle = self._found.pop(path, (0.0, None))
        if time.monotonic() - when >= _FOUND_SECONDS:
            handle = None
        if not kwargs and (handle or (handle := native_handle(self.engine, self.fs, path, part=part))):
            if self.footers.has_name(path):
                self._announce_following(path)
            opened = Object(self, path, handle)
            if handle.modified is not None:
                self._met.of = path, time.monotonic(), {"size": opened.size, "modified": handle.modified}
            return opened

        def reopen() -> Any:
            with opening_of(self.fs, path):
                return self.fs.open(path, "rb", cache_type="none", **kwargs)

        with opening_of(self.fs, path):
            return self._open_target(path, reopen)

    def _open_target(self, path: str, reopen: Callable[[], Any]) -> File | AbstractBufferedFile:
        """A file that its target reads."""
        file = reopen()
        kept: Kept | None = None
        fetch: Fetch
        if not isinstance(file, AbstractBufferedFile):
            details = self.fs.info(path)
            size = details["size"]
            if has_ranges(self.fs):
                file.close()
                fetch = self._cat(path)
            else:
                fetch = kept = Kept(file, reopen)
        elif file.size is None:
            # A stream without positions.
            return file
        else:
            size, fetch, details = file.size, file._fetch_range, file.details
        return Object(self, path, target_handle(self.engine, fetch, self.fs, path, size, details), kept)

    def size(self, path: Any) -> int | None:
        """The size of a file. DuckDB asks for it and for the time after each opening: that has told both."""
        known = self._met_with("size", path)
        if known is not None:
            return known  # type: ignore[no-any-return]
        with turn_of(self.fs):
            return self.fs.size(self._below(path))  # type: ignore[no-any-return]

    def modified(self, path: Any, *args: Any, **kwargs: Any) -> datetime:
        """When a file was changed last, as its target says."""
        known = None if args or kwargs else self._met_with("modified", path)
        if known is not None:
            return known  # type: ignore[no-any-return]
        with turn_of(self.fs):
            return self.fs.modified(self._below(path), *args, **kwargs)  # type: ignore[no-any-return]

    def _met_with(self, name: str, path: Any) -> Any:
        """What the opening just before, by the same thread, has told of this file; once."""
        of, when, told = getattr(self._met, "of", _NOTHING_MET)
        is_it = of == self._below(path) and time.monotonic() - when < _FOUND_SECONDS
        return told.pop(name, None) if is_it else None

    def _forget(self) -> None:
        """Something is written, or what is known is no longer to be believed."""
        self._met = threading.local()
        self._found.clear()

    def invalidate_cache(self, path: Any = None) -> None:
        """Nothing that was listed, or told by an opening, is believed further."""
        self._forget()
        self.fs.invalidate_cache(path if path is None else self._below(path))

    def isfile(self, path: Any) -> bool:
        """Whether there is such a file. A Parquet file that is there is opened for the call of `open` that follows.

        pyarrow calls both for each file of a data set, one file after the other: one request in place of two.
        """
        below = self._below(path)
        if self.footers.has_name(below):
            try:
                handle = native_handle(self.engine, self.fs, below, part=self.footers.part(below))
            except FileNotFoundError:
                return False
            if handle is not None:
                # Of a copy: other threads change it meanwhile.
                for before in list(self._found)[: 1 - _FOUND_MAX]:
                    self._found.pop(before, None)
                self._found[below] = time.monotonic(), handle
                return True
        with turn_of(self.fs):
            return self.fs.isfile(below)  # type: ignore[no-any-return]

    def _announce_following(self, path: str) -> None:
        listing = getattr(self.fs, "dircache", {}).get(self.fs._parent(path))
        if listing:
            of = functools.partial(listed_handle, self.engine, self.fs)
            self._following.opened(path, listing, of)

    def _cat(self, path: str) -> Fetch:
        def cat(start: int, end: int) -> bytes:
            return self.fs.cat_file(path, start=start, end=end)  # type: ignore[no-any-return]

        return cat

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        """The bytes of a file from `start` to `end`; negative ones count from its end."""
        return self._cat_file(path, start, end, _FIRST, **kwargs)

    def _cat_file(self, path: str, start: int | None, end: int | None, first_max: int, **kwargs: Any) -> bytes:
        if start is None or start == 0:
            # A small object in one round trip.
            kwargs["forerun_part"] = {"first": min(end, first_max) if end and end > 0 else first_max}

        def cat() -> bytes:
            with self.open(path, "rb", **kwargs) as file:
                if not isinstance(file, File):
                    # A stream without positions.
                    return bytes(file.read()[start:end])
                first, last, _ = slice(start, end).indices(file.size)
                return whole(file, first, max(first, last), read_alone)

        try:
            return cat()
        except OSError as error:
            if error.errno != errno.ESTALE:
                raise
        # Replaced since it was listed, or just now.
        self.invalidate_cache(path)
        return cat()

    def cat_ranges(
        self,
        paths: list[Any],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """The bytes of ranges, announced to the engine together: they are in flight at once."""
        if not isinstance(paths, list):
            raise TypeError(f"paths of {paths!r}: must be a list")
        starts = starts if isinstance(starts, list) else [starts] * len(paths)
        ends = ends if isinstance(ends, list) else [ends] * len(paths)
        if not len(paths) == len(starts) == len(ends):
            counts = f"{len(paths)}, {len(starts)} and {len(ends)}"
            raise ValueError(f"paths, starts and ends: must be as many, not {counts}")
        out = self._read(list(zip(paths, starts, ends, strict=True)), **kwargs)
        return list(_or_raised(out, on_error == "return"))

    def cat(
        self, path: Any, recursive: bool = False, on_error: str = "raise", **kwargs: Any
    ) -> Any:
        """The bytes of a file, or of several by their paths, announced to the engine together."""
        paths = self.expand_path(path, recursive=recursive)
        if isinstance(path, str | os.PathLike) and paths == [self._strip_protocol(path)]:
            return self.cat_file(paths[0], **kwargs)
        start, end = kwargs.pop("start", None), kwargs.pop("end", None)
        out = self._read([(one, start, end) for one in paths], **kwargs)
        read = zip(paths, _or_raised(out, on_error != "raise"), strict=True)
        omits = on_error == "omit"
        return {one: got for one, got in read if not (omits and isinstance(got, Exception))}

    def _read(
        self, ranges: list[tuple[Any, int | None, int | None]], **kwargs: Any
    ) -> Generator[bytes | Exception, None, None]:
        """The bytes of each range in turn, or its exception."""
        for part in _parts(ranges):
            paths = list(dict.fromkeys(path for path, _, _ in part))
            bears = bears_calls(self.fs) or keeps_copies(self.fs)
            threads = _OPEN_THREADS if getattr(self.fs, "async_impl", False) and bears else 1
            if threads > 1 and 1 < len(paths) == len(part):
                yield from self._cat_all(part, kwargs)
                continue
            opened = dict(zip(paths, self._open_all(paths, threads, kwargs), strict=True))
            try:
                yield from batch([(opened[path], a, b) for path, a, b in part])
            finally:
                for file in opened.values():
                    if not isinstance(file, Exception):
                        file.close()

    def _cat_all(self, ranges: list[tuple[Any, int | None, int | None]], kwargs: Any) -> Iterator[bytes | Exception]:
        """The bytes of one range of each of several objects: opened and read side by side, small ones by one request."""
        # What comes with an opening is held beside the memory of the engine: half as much in all, and 4 MiB at least.
        held = self.engine.memory_limit // 2
        threads = max(min(held // _PIECE, _OPEN_THREADS, len(ranges)), _OPEN_THREADS_MIN)
        first_max = min(max(held // threads // _PIECE, 1) * _PIECE, _FIRST)

        def one(of: tuple[Any, int | None, int | None]) -> bytes | Exception:
            try:
                return self._cat_file(*of, first_max, **kwargs)
            except Exception as error:
                return error

        with Threads(threads) as pool:
            yield from pool.map(one, ranges)

    def _open_all(self, paths: list[Any], threads: int, kwargs: Any) -> list[Any]:
        def one(path: Any) -> Any:
            try:
                return self.open(path, "rb", **kwargs)
            except Exception as error:
                return error

        if len(paths) == 1 or threads == 1:
            return [one(path) for path in paths]
        with Threads(min(threads, len(paths))) as pool:
            return list(pool.map(one, paths))

    def get(self, rpath: Any, lpath: Any, *args: Any, **kwargs: Any) -> Any:
        """Copies files, as the target does where that has a way of its own to do so."""
        if self._copies:
            with turn_of(self.fs):
                return self.fs.get(self._below(rpath), lpath, *args, **kwargs)
        return super().get(self._below(rpath), lpath, *args, **kwargs)

    def get_file(self, rpath: str, lpath: Any, *args: Any, **kwargs: Any) -> Any:
        """Copies a file, as the target does where that has a way of its own to do so."""
        if self._copies:
            with turn_of(self.fs):
                return self.fs.get_file(self._below(rpath), lpath, *args, **kwargs)
        return super().get_file(self._below(rpath), lpath, *args, **kwargs)

    @property
    def _copies(self) -> bool:
        """Whether the target copies many files at once, and takes no memory of the engine."""
        is_async = bool(getattr(self.fs, "async_impl", False))
        return is_async or isinstance(self.fs, LocalFileSystem)


# Options that fsspec itself gives to any file system.
_OPTIONS = {
    "asynchronous",
    "listings_expiry_time",
    "loop",
    "max_paths",
    "skip_instance_cache",
    "use_listings_cache",
}

# What a connection of 80 MB/s gives in twice the time of a round trip of 30 ms: of a larger object the rest is fetched
# side by side.
_FIRST = 4 << 20

# Readers of these begin at the beginning: what they read first comes with the opening.
_LINES = (".csv", ".tsv", ".txt", ".log", ".json", ".jsonl", ".ndjson", ".gz", ".bz2", ".xz", ".zst")
# A read of pandas: 3 ms of a connection of 80 MB/s, a tenth of the round trip that is saved.
_LINES_FIRST = 256 << 10

# As long as a mount believes a name: a file that is replaced later is opened in its new version.
_FOUND_SECONDS = 1.0
_NOTHING_MET: tuple[str | None, float, dict[str, Any]] = (None, 0.0, {})
# As many as a store is asked for at once: others were not opened at all.
_FOUND_MAX = 64

# Files that are opened for one call at most, within the usual limits of descriptors and connections.
_OPEN_MAX = 256
# As many as a store is asked at once for its objects: see forerun-store.
_OPEN_THREADS = 64
_OPEN_THREADS_MIN = 4
# The longest request of the engine: a shorter beginning that came with the opening would be fetched again with it.
_PIECE = 1 << 20


def _parts(ranges: list[tuple[Any, int | None, int | None]]) -> Iterator[list[tuple[Any, int | None, int | None]]]:
    """Ranges in their order, with as many files in each part as are opened for one call."""
    first = 0
    paths: set[Any] = set()
    for at, (path, _, _) in enumerate(ranges):
        if path not in paths and len(paths) == _OPEN_MAX:
            yield ranges[first:at]
            first, paths = at, set()
        paths.add(path)
    if ranges:
        yield ranges[first:]


def _or_raised(out: Generator[bytes | Exception, None, None], returns: bool) -> Iterator[bytes | Exception]:
    for one in out:
        if isinstance(one, Exception) and not returns:
            try:
                # Thrown there, it ends calls side by side and closes files.
                out.throw(one)
            finally:
                # The exception has this frame.
                del one
        yield one


def _stripped(path: str) -> str:
    return path.removeprefix("forerun://").removeprefix("forerun::")


for _name, _method in _target.methods():
    setattr(ForerunFileSystem, _name, _method)


fsspec.caching.register_cache(ForerunCache, clobber=True)
fsspec.register_implementation("forerun", ForerunFileSystem, clobber=True)
