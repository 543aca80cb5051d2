"""Binary files for reading, on the engine's memory.

`File` is an `io.RawIOBase`: `io.BufferedReader` and `io.TextIOWrapper` take it, and so does any
library that reads from a binary file. Each file has one position, as files of `open` have; threads
that share one use `pread` and `readinto_at`, which have none.
"""

import io
import os
from typing import TYPE_CHECKING, Any

from ._default import default_engine
from ._forerun import Engine, Handle

if TYPE_CHECKING:
    from typing_extensions import Buffer

_WHENCE = "whence of {}: must be 0, 1 or 2 (os.SEEK_SET, os.SEEK_CUR, os.SEEK_END)"


class File(io.RawIOBase):
    """A file open for reading. Made by `forerun.open`."""

    def __init__(self, handle: Handle, name: str) -> None:
        self._handle = handle
        self._name = name

    @property
    def name(self) -> str:
        """The path as it was given."""
        return self._name

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
        return self._handle.readinto(buffer)

    def readinto_at(self, buffer: "Buffer", offset: int, /) -> int:
        """Fills a writable buffer from an offset on, and leaves the position as it is."""
        return self._handle.readinto_at(buffer, offset)

    def pread(self, length: int, offset: int, /) -> bytes:
        """At most `length` bytes from an offset on, and leaves the position as it is."""
        return self._handle.pread(length, offset)

    def read(self, size: int | None = -1, /) -> bytes:
        """At most `size` bytes from the position on; all the rest if it is negative or None."""
        if size is None or size < 0:
            return self.readall()
        return self._handle.read(size)

    def readall(self) -> bytes:
        """All bytes from the position on."""
        parts = []
        while part := self._handle.read(max(self.size - self._handle.tell(), 1)):
            parts.append(part)
        return parts[0] if len(parts) == 1 else b"".join(parts)

    def write(self, _buffer: "Buffer", /) -> int:
        """Refused: files are open for reading."""
        raise io.UnsupportedOperation("not writable")

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        """Sets the position, from the beginning, the position or the end; the new one."""
        self._check_open()
        if whence == os.SEEK_CUR:
            offset += self._handle.tell()
        elif whence == os.SEEK_END:
            offset += self.size
        elif whence != os.SEEK_SET:
            raise ValueError(_WHENCE.format(whence))
        return self._handle.seek(offset)

    def tell(self) -> int:
        """The position."""
        self._check_open()
        return self._handle.tell()

    def close(self) -> None:
        """Closes the file. Again, it does nothing."""
        if not self.closed:
            self._handle.close()
            super().close()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")

    def __reduce__(self) -> tuple[Any, ...]:
        self._check_open()
        return _reopen, (self._handle.name, self._name, self._handle.tell(), self.engine)

    def __repr__(self) -> str:
        return f"<forerun.File {self._name!r}{' (closed)' if self.closed else ''}>"


_SCHEMES = ("s3://", "gs://", "az://", "http://", "https://")


def _reopen(absolute: str, name: str, position: int, engine: Engine) -> File:
    file = File(Handle(engine, absolute), name)
    file.seek(position)
    return file


def open(
    path: str | os.PathLike[str], mode: str = "rb", *, engine: Engine | None = None
) -> File:
    """Opens a file, or an object by its address, with the default engine if none is given.

    Addresses begin with ``s3://``, ``gs://``, ``az://``, ``https://`` or ``http://``. Raises ``ValueError`` for an
    address that names no object, ``OSError`` if the file or the object cannot be opened.
    """
    if mode not in ("rb", "br"):
        raise ValueError(f"mode of {mode!r}: must be 'rb'")
    name = os.fspath(path)
    # Absolute, because a child process may run in another folder.
    absolute = name if name.startswith(_SCHEMES) else os.path.abspath(name)
    return File(Handle(engine if engine is not None else default_engine(), absolute), name)
