"""Files without a buffer, and the names of files.

`File` is an `io.RawIOBase`, as `open(.., "rb", buffering=0)` of Python gives one. A read is short only at
the end of the file: an error behind bytes that were read is raised, and the position stays. Each file has
one position, as files of `open` have: threads that share it get each byte once, in turns; `pread` and
`readinto_at` have none.
"""

import errno
import io
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from . import _forerun
from ._default import default_engine
from ._forerun import Engine, Handle

if TYPE_CHECKING:
    from typing_extensions import Buffer

_WHENCE = "whence of {}: must be 0, 1 or 2 (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END)"


class ReadAt:
    """The part of a file that has no position."""

    _handle: Handle

    @property
    def mode(self) -> str:
        """Always "rb"."""
        return "rb"

    @property
    def engine(self) -> Engine:
        """The engine that the file is read through."""
        return self._handle.engine

    @property
    def size(self) -> int:
        """The size in bytes, as of now."""
        return self._handle.size()

    def readinto_at(self, buffer: "Buffer", offset: int, /) -> int:
        """Fills a writable buffer from an offset on, and leaves the position as it is."""
        return self._handle.readinto_at(buffer, offset)

    def pread(self, length: int, offset: int, /) -> bytes:
        """At most `length` bytes from an offset on, and leaves the position as it is."""
        return self._handle.pread(length, offset)


class File(ReadAt, io.RawIOBase):
    """A file open for reading, without a buffer. Made by `forerun.open` with `buffering=0`."""

    # A plain attribute, which buffers and texts look at for each line: a property is three times as slow as a line.
    closed = False  # type: ignore[assignment]
    # Called by a buffer's file where a read fails.
    _failed: Callable[[], None] | None = None

    def __init__(self, handle: Handle, name: str | bytes) -> None:
        self._handle = handle
        self._name = name
        # Whether announced reads of it outlive it: yes if it is let go of, and no if it is closed.
        self._keeps_hints = False

    @property
    def name(self) -> str | bytes:
        """The path as it was given."""
        return self._name

    def readable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def seekable(self) -> bool:
        """True."""
        self._check_open()
        return True

    def readinto(self, buffer: "Buffer", /) -> int:
        """Fills a writable buffer from the position on; the number of bytes, 0 at the end."""
        try:
            return self._handle.readinto(buffer)
        except BaseException:
            if self._failed is not None:
                self._failed()
            raise

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes from the position on; all the rest if it is negative or None."""
        if size is None or size < 0:
            return self.readall()
        return self._handle.read(size)

    def readall(self) -> bytes:
        """All bytes from the position on."""
        # The size once: a server may be asked for it. Behind the end there is little, or nothing.
        length = max(self.size - self._handle.tell(), 1)
        parts: list[bytes] = []
        try:
            while part := self._handle.read(length):
                parts.append(part)
        except BaseException:
            self._handle.seek(-sum(map(len, parts)), os.SEEK_CUR)
            raise
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def readline(self, size: int | None = -1, /) -> bytes:
        """A line from the position on, with its end; at most `size` bytes of it unless negative."""
        return self._handle.readline(size)

    def write(self, _buffer: "Buffer", /) -> int:
        """Refused: files are open for reading."""
        raise io.UnsupportedOperation("not writable")

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Sets the position, from the beginning, the position or the end; the new one."""
        self._check_open()
        if whence not in (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END):
            raise ValueError(_WHENCE.format(whence))
        return self._handle.seek(offset, whence)

    def tell(self) -> int:
        """The position."""
        self._check_open()
        return self._handle.tell()

    def close(self) -> None:
        """Closes the file. Again, it does nothing."""
        if not self.closed:
            self._handle.close(self._keeps_hints)
            super().close()
            self.closed = True  # type: ignore[misc]

    def __del__(self) -> None:
        # Without a handle it could not be opened.
        if hasattr(self, "_handle"):
            self._keeps_hints = True
            self.close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_open()
        return _reopen, (self._handle.name, self._name, self._handle.tell(), self.engine)

    def __repr__(self) -> str:
        return f"<forerun.File {self._name!r}{' (closed)' if self.closed else ''}>"


_SCHEMES = ("s3", "gs", "az", "http", "https", "file")
_ADDRESS = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):(//?)")


class Listed(str):
    """An address of a listing, with the size and the version that the object had then: see `forerun.listed`."""

    size: int
    version: str | None

    def __new__(cls, address: str, size: int, version: str | None) -> "Listed":
        listed = super().__new__(cls, address)
        listed.size, listed.version = size, version
        return listed

    def __getnewargs__(self) -> tuple[str, int, str | None]:  # type: ignore[override]
        return str(self), self.size, self.version

    @property
    def _version(self) -> tuple[int, str] | None:
        return None if self.version is None else (self.size, self.version)


def listed(address: str, *, engine: Engine | None = None) -> list[Listed]:
    """The objects below an address, in the order of their names.

    Each is its address, and has a `size` and a `version`. `forerun.open` and hints ask the store for nothing about it, and
    read that version alone: of an object that was replaced since it was listed, a read is an error (``ESTALE``).
    """
    engine = engine if engine is not None else default_engine()
    return [Listed(*row) for row in _forerun.listed(engine, absolute(address))]


def _reopen(absolute: str, name: str | bytes, position: int, engine: Engine) -> File:
    file = File(Handle(engine, absolute, getattr(name, "_version", None)), name)
    file.seek(position)
    return file


def absolute(name: str | bytes) -> str:
    """The path from the root, because a child process may run in another folder; or the address."""
    text = os.fsdecode(name)
    if "\0" in text:
        raise ValueError("embedded null byte")
    if not text:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
    address = _ADDRESS.match(text)
    scheme = address[1].lower() if address else ""
    if address is None or (address[2] == "/" and scheme not in _SCHEMES):
        return _from_root(text)
    rest = text[address.end() :]
    if address[2] == "/" or scheme not in _SCHEMES:
        known = ", ".join(f"{scheme}://" for scheme in _SCHEMES)
        raise ValueError(f"address of {name!r}: must begin with {known}; other files have a path")
    if scheme != "file":
        return f"{scheme}://{rest}"
    # A tenth of the time of the import of this package, which few need.
    from urllib.parse import unquote_to_bytes

    path = os.fsdecode(unquote_to_bytes(rest))
    if "\0" in path or not path.removeprefix("localhost").startswith("/"):
        raise ValueError(f"address of {name!r}: must be file:// and a path from the root")
    return _from_root(path.removeprefix("localhost"))


def _from_root(path: str) -> str:
    # As it is written: behind a symbolic link, `..` is the folder above its target.
    return path if path.startswith("/") else os.path.join(os.getcwd(), path)


def open(
    path: str | bytes | os.PathLike[str] | os.PathLike[bytes],
    mode: str = "rb",
    *,
    engine: Engine | None = None,
) -> File:
    """Opens a file without a buffer, with the default engine if none is given."""
    if mode not in ("rb", "br"):
        raise ValueError(f"mode of {mode!r}: must be 'rb'")
    name = os.fspath(path)
    engine = engine if engine is not None else default_engine()
    return File(Handle(engine, absolute(name), getattr(name, "_version", None)), name)
