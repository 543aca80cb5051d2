"""`open`: files with a buffer and in text mode, as those of Python's own `open`.

Problem: a read of a few bytes by way of the engine costs about a microsecond, a line fifty times its cost
from a buffer. Mechanism: `BufferedFile` has a buffer of Python's, an `io.BufferedReader` over a `File`. It is not a
subclass of that class, because lines of a subclass are read with a call of a method each, at twice the time;
`for line in file` goes over the buffer itself.

Reads of more than the buffer go past it, in one read of the engine.

Python's buffer loses bytes that it has copied when a read of the file behind it fails. `_Place` has the position where the
call began, and the call that fails sets it back. A loop over lines has no call that could do so for each line: there the
beginning is found in the file, behind the last line before it.
"""

import contextlib
import io
import operator
import os
import warnings
import weakref
from collections.abc import Callable
from typing import Any, Literal, cast, overload

from ._file import File, ReadAt
from ._file import open as _open_unbuffered
from ._forerun import Engine, Handle

# Four blocks. A short read at a random place fetches the whole buffer; lines take 1.40 times those of the built-in, of
# 8 KiB 1.48 times, and of 64 KiB 1.32 times.
_BUFFER_BYTES = 16 << 10

# Bytes that a text takes of its buffer at once: lines of a text take 1.4 times those of the built-in, with 8 KiB 1.6 times.
_CHUNK_BYTES = 32 << 10

# More is not allocated without a look at the size of the file.
_UNSEEN_BYTES = 1 << 20

Path = str | bytes | os.PathLike[str] | os.PathLike[bytes]


class _Place:
    """Where a call of a buffer begins."""

    def __init__(self, buffered: "io.BufferedReader[Any]", handle: Handle) -> None:
        # The file has this object, and is the buffer's.
        self._buffered = weakref.ref(buffered)
        self._handle = handle
        # The position; once lines are read, that behind the last call which may have ended within one.
        self.at = 0
        self.has_lines = False
        self._is_noted = False

    def failed(self) -> None:
        """A read of the file has failed. If it is one of a line, the position is set back to where that begins."""
        buffered, handle = self._buffered(), self._handle
        if self.has_lines and not self._is_noted and buffered is not None:
            with contextlib.suppress(OSError):
                handle.seek(self._begin_of_line(handle.tell()))
                # The buffer takes over the position.
                buffered.tell()

    def _begin_of_line(self, end: int) -> int:
        while end > self.at:
            begin = max(end - _BUFFER_BYTES, self.at)
            found = self._handle.pread(end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return self.at

    def noting(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """A method of the buffer that leaves the position as it is where it fails."""
        weak = self._buffered

        def method(*arguments: Any) -> Any:
            buffered = cast(io.BufferedReader, weak())
            at = buffered.tell()
            self._is_noted = True
            try:
                return call(*arguments)
            except BaseException:
                buffered.seek(at)
                raise
            finally:
                self._is_noted = False
                self.at = buffered.tell()

        return method


class BufferedFile(ReadAt, io.BufferedIOBase):
    """A file open for reading, with a buffer. Made by `forerun.open`."""

    peek: Callable[..., bytes]
    _is_detached = False
    # As of `File`.
    closed = False  # type: ignore[assignment]

    def __init__(self, raw: File, buffer_bytes: int = _BUFFER_BYTES) -> None:
        self._raw = raw
        self._buffer_bytes = buffer_bytes
        # The buffer closes it when it is let go of.
        raw._keeps_hints = True
        buffered = self._buffered = io.BufferedReader(raw, buffer_bytes)
        place = self._place = _Place(buffered, raw._handle)
        raw._failed = place.failed
        for name in ("readlines", "read1", "readinto", "readinto1"):
            self.__dict__[name] = place.noting(getattr(buffered, name))
        # Where it fails, nothing was taken out of the buffer.
        self.peek = buffered.peek
        line, limited = buffered.readline, place.noting(buffered.readline)

        def readline(size: int | None = -1, /) -> bytes:
            """A line from the position on, with its end; at most `size` bytes of it unless negative."""
            if size is None or size == -1:
                place.has_lines = True
                return line()
            return cast(bytes, limited(size))

        self.__dict__["readline"] = readline

    @property
    def raw(self) -> File:  # type: ignore[override]
        """The same file without the buffer."""
        return self._raw

    @property
    def _handle(self) -> Handle:  # type: ignore[override]
        return self._raw._handle

    @property
    def name(self) -> str | bytes:
        """The path as it was given."""
        return self._raw.name

    def readable(self) -> bool:
        """True."""
        return self._buffered.readable()

    def seekable(self) -> bool:
        """True."""
        return self._buffered.seekable()

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes from the position on; all the rest if it is negative or None."""
        buffered, place = self._buffered, self._place
        size = -1 if size is None or size < 0 else size
        if size > self._buffer_bytes or place.has_lines:
            return cast(bytes, place.noting(self._read_any)(size))
        try:
            data = buffered.read(size)
        except BaseException:
            with contextlib.suppress(ValueError):
                buffered.seek(place.at)
            raise
        place.at += len(data)
        return data

    def _read_any(self, size: int) -> bytes:
        buffered = self._buffered
        if size <= self._buffer_bytes:
            return buffered.read(size)
        position = buffered.tell()
        if position != self._handle.tell():
            return buffered.read(size)
        if size > _UNSEEN_BYTES:
            size = min(size, max(self.size - position, _UNSEEN_BYTES))
        # The buffer is empty: one read, without a second one for the buffer.
        data = buffered.read1(size)
        while 0 < len(data) < size and (more := buffered.read(size - len(data))):
            data += more
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Sets the position, from the beginning, the position or the end; the new one."""
        try:
            position = self._buffered.seek(offset, whence)
        except ValueError:
            if not self._is_detached:
                # The file names the value, with its range.
                self._raw.seek(offset, whence)
            raise
        self._place.at = position
        return position

    def tell(self) -> int:
        """The position."""
        return self._buffered.tell()

    def close(self) -> None:
        """Closes the file. Again, it does nothing."""
        self._raw._keeps_hints = False
        self._buffered.close()
        self.closed = True  # type: ignore[misc]

    def detach(self) -> File:  # type: ignore[override]
        """The file without the buffer, whose position is behind the bytes of the buffer."""
        self._buffered.detach()
        self._is_detached = True
        self._raw._keeps_hints, self._raw._failed = False, None
        return self._raw

    def __iter__(self) -> Any:
        self._place.has_lines = True
        return self._buffered.__iter__()

    def __next__(self) -> bytes:
        self._place.has_lines = True
        return next(self._buffered)

    def __del__(self) -> None:
        """Closes nothing: the buffer does, which a loop over its lines may still have."""

    def __reduce__(self) -> tuple[Any, ...]:
        reopen, arguments = self._raw.__reduce__()
        return _rebuffer, (reopen, arguments, self.tell(), self._buffer_bytes)

    def __repr__(self) -> str:
        return f"<forerun.BufferedFile {self.name!r}{' (closed)' if self.closed else ''}>"


def _rebuffer(
    reopen: Callable[..., File], arguments: tuple[Any, ...], position: int, buffer_bytes: int
) -> BufferedFile:
    file = BufferedFile(reopen(*arguments), buffer_bytes)
    file.seek(position)
    return file


def _is_text(mode: str) -> bool:
    """Whether a mode is one of text.

    Raises `ValueError` if there is no such mode, and `io.UnsupportedOperation` if it writes.
    """
    if not isinstance(mode, str):
        raise TypeError(f"mode must be a str, not {type(mode).__name__}")
    letters = set(mode)
    is_one = len(letters) == len(mode) and letters <= set("rwaxbt+")
    if not is_one or len(letters & set("rwax")) != 1 or {"b", "t"} <= letters:
        raise ValueError(f"mode of {mode!r}: must be 'rb', or 'r' or 'rt' for text")
    if letters & set("wax+"):
        why = "files are open for reading, so it must be 'rb', 'r' or 'rt'"
        raise io.UnsupportedOperation(f"mode of {mode!r}: {why}")
    return "b" not in letters


@overload
def open(
    path: Path,
    mode: Literal["rb", "br"] = "rb",
    buffering: Literal[-1] = -1,
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    *,
    engine: Engine | None = None,
) -> BufferedFile: ...
@overload
def open(
    path: Path,
    mode: Literal["rb", "br"],
    buffering: Literal[0],
    encoding: None = None,
    errors: None = None,
    newline: None = None,
    *,
    engine: Engine | None = None,
) -> File: ...
@overload
def open(
    path: Path,
    mode: Literal["rb", "br"] = "rb",
    *,
    buffering: Literal[0],
    engine: Engine | None = None,
) -> File: ...
@overload
def open(
    path: Path,
    mode: Literal["r", "rt", "tr"],
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    engine: Engine | None = None,
) -> io.TextIOWrapper: ...
@overload
def open(
    path: Path,
    mode: str = "rb",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    engine: Engine | None = None,
) -> File | BufferedFile | io.TextIOWrapper: ...
def open(
    path: Path,
    mode: str = "rb",
    buffering: int = -1,
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
    *,
    engine: Engine | None = None,
) -> File | BufferedFile | io.TextIOWrapper:
    r"""Opens a file, or an object by its address, with the default engine if none is given.

    As the built-in `open`, but for reading, and binary unless the mode is ``"r"`` or ``"rt"``. It has a buffer unless
    `buffering` is 0; `encoding`, `errors` and `newline` are those of text.

    Addresses begin with ``s3://``, ``gs://``, ``az://``, ``https://``, ``http://`` or ``file://``. Raises ``ValueError``
    for another address, and one that names no object, ``OSError`` if the file or the object cannot be opened,
    ``io.UnsupportedOperation``, which is both, for a mode that writes.

    >>> import tempfile
    >>> with tempfile.NamedTemporaryFile() as data:
    ...     _ = data.write("caf\u00e9\r\ntea\r\n".encode())
    ...     data.flush()
    ...     with open(data.name, "r", encoding="utf-8") as text:
    ...         list(text)
    ['café\n', 'tea\n']
    """
    is_text, buffering = _is_text(mode), operator.index(buffering)
    given = {"encoding": encoding, "errors": errors, "newline": newline}
    for name, value in given.items():
        if value is not None and not is_text:
            raise ValueError(f"{name} of {value!r}: is for text, and a file of mode {mode!r} is binary")
    if buffering < -1 or (is_text and buffering == 0):
        least = "1, or -1 for the usual buffer" if is_text else "0, or -1 for the usual buffer"
        raise ValueError(f"buffering of {buffering}: must be at least {least}")
    if buffering == 1 and not is_text:
        why = "line buffering (buffering=1) is for text: the usual buffer is taken"
        warnings.warn(why, RuntimeWarning, stacklevel=2)
    raw = _open_unbuffered(path, engine=engine)
    if buffering == 0:
        return raw
    binary = BufferedFile(raw, buffering if buffering > 1 else _BUFFER_BYTES)
    if not is_text:
        return binary
    try:
        text = io.TextIOWrapper(binary, encoding, errors, newline)
    except BaseException:
        binary.close()
        raise
    text.mode = mode  # type: ignore[misc]
    text._CHUNK_SIZE = _CHUNK_BYTES  # type: ignore[attr-defined]
    return text
