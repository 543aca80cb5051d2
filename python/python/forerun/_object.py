"""Files of the file system `forerun`, and ranges of several of them.

Problem: readers of tables share a file between threads, each with a position, read chunks far apart, and ask for many
ranges at once; a file of the system has one position, and its reads are one stream. Mechanism: a position for each
thread that sets one, reads after it that are no part of a stream (`read_alone`), the chunks of a Parquet scan announced
(`forerun.parquet`), and the ranges of `cat_ranges` and `cat` announced together (`batch`).

Called by `forerun.fsspec`.
"""

import errno
import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ._file import File
from ._forerun import Handle
from .parquet import Scan

if TYPE_CHECKING:
    from ._turns import Kept
    from .fsspec import ForerunFileSystem


class _Sought:
    """A position that a thread has set and not read from."""

    at: int | None = None


class Object(File):
    """A file of a file system, with the attributes that files of fsspec have."""

    def __init__(self, fs: "ForerunFileSystem", path: str, handle: Handle, kept: "Kept | None" = None) -> None:
        super().__init__(handle, path)
        self.fs = fs
        self.path = path
        self._kept = kept
        self._scan = Scan(self, path, fs.footers)
        # Where this thread has set the position and not read since; and the same of the thread that has set it last.
        self._of_thread = threading.local()
        self._last = _Sought()
        # Short reads far from the one before, until the whole of a small file is announced; and the end of that one.
        can_jump = path.endswith(TREES) and self.size <= self.engine.memory_limit // _WHOLE_PART
        self._jumps_left = _JUMPS if can_jump else 0
        self._end = 0

    def announce(self, ranges: list[tuple[int, int]]) -> int:
        """Announces reads as (offset, length); how many were taken."""
        return self._handle.announce(ranges)

    def close(self) -> None:
        """Closes the file, and that of its target. Again, it does nothing."""
        super().close()
        if self._kept is not None:
            self._kept.close()

    def __del__(self) -> None:
        # Announced reads of a scan that has ended are of no use.
        if hasattr(self, "_handle"):
            self.close()

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Sets the position. The next read of the same thread begins there, whatever positions others set in between.

        DuckDB shares a file between threads that each seek and then read, without a lock. A thread that has set none since
        its last read goes on behind the last position that was set, as with any file.
        """
        sought = self._sought
        if whence == os.SEEK_CUR and sought.at is not None:
            offset, whence = sought.at + offset, os.SEEK_SET
        to = super().seek(offset, whence)
        if whence == os.SEEK_SET:
            sought.at, self._last = to, sought
        else:
            sought.at = None
        return to

    @property
    def _sought(self) -> "_Sought":
        """Gone with the thread, whose number the next one may have."""
        try:
            return self._of_thread.sought  # type: ignore[no-any-return]
        except AttributeError:
            self._of_thread.sought = sought = _Sought()
            return sought

    def _take(self) -> int | None:
        """The position that this thread has set, for one read; None if that begins where the last was set."""
        sought = self._sought
        at, sought.at = sought.at, None
        if at is None:
            # As if that thread had read.
            self._last.at = None
        return at

    def tell(self) -> int:
        """The position: that of this thread, if it has set one and not read since."""
        at, own = super().tell(), self._sought.at
        return at if own is None else own

    def read(self, size: int | None = -1, /) -> bytes:
        """As of any file; the parts of a Parquet file that come next are announced."""
        at = self._take()
        if at is None:
            return super().read(size) if size is not None and size >= 0 else self.readall()
        length = max(self.size - at, 0) if size is None or size < 0 else size
        try:
            was_announced = self._scan.reading(at, at + length)
            data = self.pread(length, at) if was_announced else read_alone(self, at, length)
        except BaseException:
            self._sought.at = at
            raise
        self._scan.was_read(data, at + len(data))
        self._move(at + len(data))
        return data

    def readall(self) -> bytes:
        """All bytes from the position on."""
        at = self.tell()
        self.seek(at)
        return self.read(max(self.size - at, 0))

    def readinto(self, buffer: Any, /) -> int:
        """Fills a writable buffer from the position on; the number of bytes, 0 at the end."""
        at = self._take()
        if at is None:
            return super().readinto(buffer)
        if self._jumps_left:
            self._jump(at, len(memoryview(buffer)))
        try:
            taken = self.readinto_at(buffer, at)
        except BaseException:
            self._sought.at = at
            raise
        self._move(at + taken)
        return taken

    def readline(self, size: int | None = -1, /) -> bytes:
        """A line from the position on."""
        at = self._take()
        if at is not None:
            super().seek(at)
        return super().readline(size)

    def _jump(self, at: int, length: int) -> None:
        """Announces the whole file once its reader has waited as long for single places as the whole takes."""
        if length < _SHORT and abs(at - self._end) > _FAR:
            self._jumps_left -= 1
            if not self._jumps_left:
                self._handle.announce([(0, self.size)])
        self._end = at + length

    def _move(self, to: int) -> None:
        """Moves the position of all threads behind a read of the last that set it."""
        if self._last is self._sought:
            super().seek(to)

    @property
    def details(self) -> Any:
        """The details of the file, as its file system has them now."""
        return self.fs.info(self.path)

    def info(self) -> Any:
        """The details of the file, as its file system has them now."""
        return self.details

    @property
    def full_name(self) -> str:
        """The path with its protocol."""
        return str(self.fs.unstrip_protocol(self.path))

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_open()
        return _reopen, (self.fs, self.path, self.tell())


def _disbelieving(method: Callable[..., Any]) -> Callable[..., Any]:
    """A read; where it finds that its object was replaced, its listing is out of date."""

    @functools.wraps(method)
    def read(self: Object, *args: Any) -> Any:
        try:
            return method(self, *args)
        except OSError as error:
            if error.errno == errno.ESTALE:
                self.fs.invalidate_cache(self.path)
            raise

    return read


for _name in ("pread", "read", "readinto", "readinto_at", "readline"):
    setattr(Object, _name, _disbelieving(getattr(Object, _name)))


def _reopen(fs: "ForerunFileSystem", path: str, position: int) -> Any:
    file = fs.open(path, "rb")
    file.seek(position)
    return file


def whole(file: Any, start: int, stop: int, read: Any = None) -> bytes:
    """The bytes of a range, all of them: callers take less for the end of the file."""
    data: bytes = read(file, start, stop - start) if read else file.pread(stop - start, start)
    if len(data) != stop - start:
        why = f"{len(data)} bytes for the range {start}..{stop}: the file has become shorter"
        raise OSError(errno.EIO, why, file.name)
    return data


# Files whose places are found in a tree, one after the other: HDF5 and netCDF.
TREES = (".h5", ".hdf5", ".nc", ".nc4", ".he5")
# The root of the tree comes with the opening.
TREE_FIRST = 64 << 10
# So many round trips of 30 ms are the time in which a store of 400 MB/s gives 36 MB: the most that is announced as a whole is an
# eighth of the memory, 32 MiB of the usual.
_JUMPS = 3
_WHOLE_PART = 8
# A block of 1 MB and more away is no part of what a read ahead would bring, and a node of a tree is short.
_FAR = 1 << 20
_SHORT = 64 << 10

# Several requests of 1 MB, which is worth its time at a store: announced, they are in flight at once, as one read is not.
_ANNOUNCED_MIN = 2 << 20
# The main thread, which looks for signals, waits for all of a read before it copies: in parts of this size the copy of
# one goes on beside the fetch of the next. 32 MB that a store gives in 0.11 s took 0.22 s as one, 0.14 s in parts.
_PART_MAX = 4 << 20


def read_alone(file: File, first: int, length: int) -> bytes:
    """At most so many bytes of a file, by a read that is no part of a stream: a long one is announced right before."""
    if length < _ANNOUNCED_MIN:
        return file.pread(length, first)
    file._handle.announce([(first, length)])
    if length <= _PART_MAX or threading.current_thread() is not threading.main_thread():
        return file.pread(length, first)
    parts = []
    # A length may be any number, as `sys.maxsize` for all there is.
    for at in range(first, first + length, _PART_MAX):
        asked = min(_PART_MAX, first + length - at)
        parts.append(file.pread(asked, at))
        if len(parts[-1]) < asked:
            break
    return b"".join(parts)


def _announced(order: list[Any]) -> int:
    """Announces ranges of files in their order; how many of the first were taken."""
    taken = 0
    for file, of_file in itertools.groupby(order, lambda one: one[0]):
        ranges = [(first, length) for _, first, length in of_file]
        count = file._handle.announce(ranges)
        taken += count
        if count < len(ranges):
            break
    return taken


def _read_one(file: Any, first: int, length: int) -> bytes | Exception:
    try:
        if isinstance(file, File):
            return whole(file, first, first + length)
        file.seek(first)
        return file.read(length)  # type: ignore[no-any-return]
    except Exception as error:
        return error


def batch(ranges: list[tuple[Any, Any, Any]]) -> Iterator[bytes | Exception]:
    """Announces ranges of open files, and reads them in their order."""
    order: list[Any] = []
    for file, start, end in ranges:
        if isinstance(file, Exception):
            order.append(file)
            continue
        try:
            first, last, _ = slice(start, end).indices(file.size)
            order.append((file, first, max(last - first, 0)))
        except Exception as error:
            order.append(error)
    announced = [one for one in order if isinstance(one, tuple) and isinstance(one[0], File)]
    ahead = again = read = 0
    for one in order:
        if isinstance(one, Exception):
            yield one
            continue
        if len(announced) > 1 and read >= again and ahead < len(announced):
            taken = _announced(announced[ahead:])
            ahead += taken
            # The rest can be announced once half of them was read.
            again = read + max(taken // 2, 1)
        read += 1
        file, first, length = one
        yield _read_one(file, first, length)
