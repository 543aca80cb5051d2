"""Scans of Parquet files, announced to the engine from the footer.

Problem: a reader of one column asks for a chunk of it in each row group, one after the other; no detector of streams
knows where the next one lies. Mechanism: the footer names all chunks. Once a chunk was asked for, those of the same
column in the next row groups are announced, and are in flight beside it: eight of them where the first row group was
asked for, one where a filter has left others out, then twice as many with each that is asked for, and at most a
quarter of the engine's memory.

```text
footer         column c: 1 MB at 2 MB, 5 MB, 8 MB, ..
read 2..3 MB   announced 5..6, 8..9, .., 26..27
read 5..6 MB   announced 29..30 and the next seven
```

Files of `forerun.fsspec` do so by themselves where pyarrow is installed. `announce` is for a scan that is known
before: `announce(file, columns=["c"])`.
"""

import sys
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ._file import File
_MAGIC = b"PAR1"
# Length and magic number behind the footer.
_TAIL = 8
# A larger one is not parsed here: 100,000 chunks take about as long as a request.
_FOOTER_MAX = 8 << 20

# Row groups announced at the first one: as many as a file of 100 MB has, in one request's time. Readers of the first are
# scans; at another, a filter may leave the next one out, too.
AHEAD_OF_SCAN = 8
AHEAD_OF_FILTER = 1


# Readers of these begin at the end: pyarrow with 64 KiB, DuckDB with half of that, from the block on that it lies in.
_NAMES = (".parquet", ".parq", ".pq")
LAST = (64 << 10) + 4096


class Chunk(NamedTuple):
    """A column of one row group, as a part of the file."""

    group: int
    column: str
    first: int
    end: int

    @property
    def names(self) -> set[str]:
        """Those of the column and of all that it is a part of."""
        parts = self.column.split(".")
        return {".".join(parts[: end + 1]) for end in range(len(parts))}


def chunks(footer: bytes) -> list[Chunk]:
    """The chunks that a footer names, with length and magic number behind it; none if it is damaged."""
    import pyarrow
    import pyarrow.parquet

    try:
        known = pyarrow.parquet.read_metadata(pyarrow.BufferReader(footer))
        found = []
        for group in range(known.num_row_groups):
            part = known.row_group(group)
            for number in range(part.num_columns):
                column = part.column(number)
                begins = [column.data_page_offset, column.dictionary_page_offset]
                first = min(begin for begin in begins if begin)
                end = first + column.total_compressed_size
                found.append(Chunk(group, column.path_in_schema, first, end))
        return found
    except (OSError, ValueError, pyarrow.ArrowException):
        return []


class Layout:
    """The chunks of a file: by their columns, and in the order of the file, in which the place of a read is looked up."""

    def __init__(self, found: list[Chunk]) -> None:
        self.columns: dict[str, list[Chunk]] = {}
        placed = []
        for chunk in found:
            parts = self.columns.setdefault(chunk.column, [])
            placed.append((chunk.first, chunk.end, chunk.column, len(parts)))
            parts.append(chunk)
        self._placed = sorted(placed)
        self._firsts = [first for first, *_ in self._placed]

    def asked(self, first: int, end: int) -> dict[str, tuple[int, int]]:
        """The columns of which a range has chunks, with the places of the first and the last of them in their column."""
        places: dict[str, tuple[int, int]] = {}
        for at in reversed(range(bisect_left(self._firsts, end))):
            _, its_end, column, place = self._placed[at]
            if its_end <= first:
                break
            least, most = places.get(column, (place, place))
            places[column] = min(least, place), max(most, place)
        return places


class Footers:
    """Chunks of the files of a file system, by path and size: a reader opens a file twice, and reads its footer once.

    One of a file that was replaced leads to announcements that are of no use, never to other bytes.
    """

    # Files of a scan that are open at once, many times over.
    KEPT_MAX = 256

    def __init__(self) -> None:
        # By path, with the size: the length of a footer until its chunks are of use.
        self._kept: dict[str, tuple[int, int | Layout]] = {}

    @staticmethod
    def has_name(path: str) -> bool:
        """Whether a path has the name of a Parquet file."""
        return path.endswith(_NAMES)

    def part(self, path: str) -> dict[str, Any] | None:
        """The part of a file that is read first, unless its footer is known: asked for with the opening."""
        return {"last": LAST} if self.has_name(path) and path not in self._kept else None

    def found(self, path: str, size: int, length: int) -> None:
        """Takes note of the length of a footer, with its tail."""
        if length <= min(_FOOTER_MAX, size) and self._kept.get(path, (None, 0))[0] != size:
            # Of a copy: other threads change it meanwhile.
            for before in list(self._kept)[: 1 - self.KEPT_MAX]:
                self._kept.pop(before, None)
            self._kept[path] = size, length

    def of(self, file: "File", path: str, size: int) -> Layout:
        """The chunks; none where there is no footer, it is damaged, or pyarrow is not in use."""
        of_size, kept = self._kept.get(path, (None, _NONE))
        if of_size != size:
            return _NONE
        if not isinstance(kept, int):
            return kept
        found = chunks(file.pread(kept, size - kept)) if "pyarrow" in sys.modules else []
        layout = Layout([chunk for chunk in found if 0 <= chunk.first < chunk.end <= size])
        self._kept[path] = size, layout
        return layout


_NONE = Layout([])


class Scan:
    """The reads of one open file."""

    def __init__(self, file: Any, path: str, footers: Footers) -> None:
        self._file = file
        self._path = path
        self._footers = footers
        self._size = file.size
        self._next: dict[str, int] = {}
        self._ahead: dict[str, int] = {}

    def was_read(self, data: bytes, end: int) -> None:
        """Takes note of a read that ended at the end of the file."""
        if end == self._size and len(data) >= _TAIL and data.endswith(_MAGIC):
            length = int.from_bytes(data[-_TAIL:-4], "little") + _TAIL
            self._footers.found(self._path, self._size, length)

    def reading(self, first: int, end: int) -> bool:
        """Announces the next row groups of the columns that are read. Whether the read itself has been announced."""
        if end >= self._size:
            return False
        was_announced, order = False, []
        layout = self._footers.of(self._file, self._path, self._size)
        for column, (least, most) in layout.asked(first, end).items():
            was_announced |= least < self._next.get(column, 0)
            order += self._following(column, layout.columns[column], most + 1)
        order.sort()
        self._announce(order)
        return was_announced

    def _following(self, column: str, parts: list[Chunk], place: int) -> list[Chunk]:
        usual = AHEAD_OF_SCAN if place == 1 else AHEAD_OF_FILTER
        ahead = self._ahead.get(column, usual)
        begin = max(self._next.get(column, 0), place)
        end = min(place + ahead, len(parts))
        if begin >= end:
            return []
        self._ahead[column] = ahead * 2
        self._next[column] = end
        return parts[begin:end]

    def _announce(self, order: list[Chunk]) -> None:
        left = self._file.engine.memory_limit // 4
        merged: list[tuple[int, int]] = []
        for chunk in order:
            left -= chunk.end - chunk.first
            if left < 0:
                self._next[chunk.column] = min(self._next[chunk.column], chunk.group)
                continue
            if merged and merged[-1][1] == chunk.first:
                merged[-1] = (merged[-1][0], chunk.end)
            else:
                merged.append((chunk.first, chunk.end))
        if merged:
            self._file.announce([(first, end - first) for first, end in merged])


def announce(
    file: "File", columns: list[str] | None = None, row_groups: list[int] | None = None
) -> int:
    """Announces a scan of columns and row groups, all of them if none are named; the number of chunks taken.

    A nested column is named whole (`a`), or as one of its parts (`a.list.element`).

    Raises `ValueError` where there is no such column or row group, or no footer.
    """
    size = file.size
    tail = file.pread(_TAIL, max(size - _TAIL, 0))
    footer = int.from_bytes(tail[:4], "little") + _TAIL
    if not tail.endswith(_MAGIC) or footer > size:
        raise ValueError(f"{file.name!r}: no Parquet file: a footer must end it")
    found = chunks(file.pread(footer, size - footer))
    known = {name for chunk in found for name in chunk.names}
    groups = {chunk.group for chunk in found}
    for column in columns or ():
        if column not in known:
            raise ValueError(f"column {column!r}: must be one of {', '.join(sorted(known))}")
    for group in row_groups or ():
        if group not in groups:
            raise ValueError(f"row group {group}: must lie from 0 to {max(groups, default=0)}")
    order = [
        (file, chunk.first, chunk.end - chunk.first)
        for chunk in sorted(found)
        if (columns is None or not chunk.names.isdisjoint(columns))
        and (row_groups is None or chunk.group in row_groups)
    ]
    return file.engine.hint(order)
