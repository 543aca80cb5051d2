"""Scans of Parquet files are announced from the footer: with pyarrow, over a file that writes announcements down."""

import io
import sys
import threading

import pytest

import forerun
import forerun.fsspec
from forerun.parquet import Chunk, Footers, Layout, Scan, announce, chunks

pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

GROUPS = 20


@pytest.fixture(scope="module")
def table():
    """A table of three columns, as a file."""
    rows = range(GROUPS * 100)
    columns = {"a": list(rows), "b": [str(row) for row in rows], "c": [row * 0.5 for row in rows]}
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(columns), file, row_group_size=100)
    return file.getvalue()


class Recorder:
    """A file and its engine."""

    def __init__(self, content, memory_limit=1 << 30):
        self.content, self.size, self.memory_limit = content, len(content), memory_limit
        self.engine, self.announced, self.name = self, [], "file"

    def pread(self, length, offset):
        return self.content[offset : offset + length]

    def hint(self, order):
        assert all(file is self for file, _, _ in order)
        return self.announce([(first, length) for _, first, length in order])

    def announce(self, ranges):
        self.announced += [(first, first + length) for first, length in ranges]
        return len(ranges)

    def take(self):
        announced, self.announced = self.announced, []
        return announced


def begun(content, footers=None, **more):
    """A scan whose footer was read, and the chunks of each column."""
    file = Recorder(content, **more)
    scan = Scan(file, "path", footers or Footers())
    scan.was_read(content[-1000:], len(content))
    found = chunks(content)
    return file, scan, {column: [c for c in found if c.column == column] for column in "abc"}


def test_the_next_row_groups_of_a_column_are_announced_once_and_twice_as_many_each_time(table):
    file, scan, by = begun(table)
    one = by["b"]
    assert scan.reading(one[0].first, one[0].end) is False
    assert file.take() == [(c.first, c.end) for c in one[1:9]]
    assert scan.reading(one[1].first, one[1].end) is True
    assert file.take() == [(c.first, c.end) for c in one[9:18]]
    for chunk in one[2:]:
        assert scan.reading(chunk.first, chunk.end) is True
    assert file.take() == [(c.first, c.end) for c in one[18:]]


def test_a_read_of_whole_row_groups_announces_whole_row_groups(table):
    file, scan, by = begun(table)
    scan.reading(by["a"][0].first, by["c"][1].end)
    assert file.take() == [(by["a"][2].first, by["c"][2].end)]
    # Side by side in the file, they are one.
    scan.reading(by["a"][2].first, by["c"][2].end)
    assert file.take() == [(by["a"][3].first, by["c"][4].end)]
    # All of the file at once leaves nothing to announce.
    file, scan, by = begun(table)
    assert scan.reading(by["a"][0].first, by["c"][-1].end) is False
    assert file.take() == []


def test_where_a_filter_has_left_row_groups_out_one_is_announced_at_first(table):
    file, scan, by = begun(table)
    one = by["a"][7]
    scan.reading(one.first, one.end)
    assert file.take() == [(by["a"][8].first, by["a"][8].end)]


def test_a_quarter_of_the_memory_bounds_what_is_announced_and_the_rest_comes_later(table):
    _, _, by = begun(table)
    one = by["a"]
    room = sum(c.end - c.first for c in one[1:4])
    file, scan, _ = begun(table, memory_limit=4 * room)
    taken = []
    for chunk in one:
        scan.reading(chunk.first, chunk.end)
        announced = file.take()
        assert sum(end - first for first, end in announced) <= room
        taken += announced
    assert taken == [(c.first, c.end) for c in one[1:]]


def test_a_second_open_file_knows_the_footer_and_one_of_another_size_does_not(table):
    footers = Footers()
    begun(table, footers)
    file = Recorder(table)
    first = chunks(table)[0]
    Scan(file, "path", footers).reading(first.first, first.end)
    assert file.take() != []
    other = Recorder(table + b"x")
    Scan(other, "path", footers).reading(first.first, first.end)
    assert other.take() == []


class Counting(list):
    """A list that counts the entries that are looked at."""

    looked = 0

    def __getitem__(self, at):
        self.looked += 1
        return super().__getitem__(at)


def test_a_read_looks_at_the_chunks_that_it_has_and_no_others():
    found = [Chunk(group, f"c{column}", place := (group * 100 + column) * 10, place + 10) for group in range(200) for column in range(100)]
    layout = Layout(found)
    layout._placed = Counting(layout._placed)
    assert layout.asked(52_010, 52_025) == {"c1": (52, 52), "c2": (52, 52)}
    assert layout.asked(0, 1_011) == {"c0": (0, 1), "c1": (0, 1), **{f"c{n}": (0, 0) for n in range(2, 100)}}
    assert layout.asked(200_000, 300_000) == {} and layout.asked(5, 5) == {"c0": (0, 0)}
    assert layout._placed.looked < 200


def test_threads_that_open_tables_side_by_side_share_what_is_known_of_footers():
    footers, errors = Footers(), []

    def open_many(thread):
        try:
            for number in range(3_000):
                path = f"{thread}-{number % 500}.parquet"
                footers.part(path)
                footers.found(path, 1_000 + number, 100)
        except Exception as error:
            errors.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=open_many, args=(thread,)) for thread in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(before)
    assert errors == [] and len(footers._kept) <= Footers.KEPT_MAX + 4


DAMAGES = ["length", "bytes", "cut", "offsets"]


def damaged(table, damage):
    length = int.from_bytes(table[-8:-4], "little")
    return {
        "length": table[:-8] + (1 << 31).to_bytes(4, "little") + b"PAR1",
        "bytes": table[: -length - 8] + bytes(length) + table[-8:],
        "cut": b"PAR1",
        "offsets": table[:4] + table[-length - 8 :],
    }[damage]


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_footer_announces_nothing_and_is_no_error(table, damage):
    content = damaged(table, damage)
    file = Recorder(content)
    scan = Scan(file, "path", Footers())
    scan.was_read(content, len(content))
    scan.reading(0, len(content) - 1)
    assert all(end <= len(content) for _, end in file.take())


def test_a_scan_that_is_announced_before_names_columns_and_row_groups(table):
    file = Recorder(table)
    found = chunks(table)
    assert announce(file) == len(found) == 3 * GROUPS
    assert file.take() == [(c.first, c.end) for c in sorted(found)]
    assert announce(file, columns=["c"], row_groups=[1, 3]) == 2
    assert file.take() == [(c.first, c.end) for c in found if c.column == "c" and c.group in (1, 3)]
    with pytest.raises(ValueError, match="'d': must be one of a, b, c"):
        announce(file, columns=["d"])
    with pytest.raises(ValueError, match="20: must lie from 0 to 19"):
        announce(file, row_groups=[20])
    for content in (b"", b"PAR1", table[:-1]):
        with pytest.raises(ValueError, match="no Parquet file"):
            announce(Recorder(content))


def test_a_nested_column_is_announced_by_its_name_and_by_those_of_its_parts():
    rows = [{"x": number, "y": {"z": str(number)}} for number in range(100)]
    made = io.BytesIO()
    parquet.write_table(pyarrow.table({"b": rows, "bx": range(100), "l": [[1, 2]] * 100}), made)
    content = made.getvalue()
    found = {chunk.column: (chunk.first, chunk.end) for chunk in chunks(content)}
    assert {"b.x", "b.y.z", "bx"} < found.keys()
    of_list = [name for name in found if name.startswith("l.")]
    for names, wanted in ((["b"], ["b.x", "b.y.z"]), (["b.y"], ["b.y.z"]), (["l", "b.x"], [*of_list, "b.x"])):
        file = Recorder(content)
        assert announce(file, columns=names) == len(wanted)
        assert sorted(file.take()) == sorted(found[name] for name in wanted)
    with pytest.raises(ValueError, match="column 'y': must be one of b, b.x, "):
        announce(Recorder(content), columns=["y"])


def test_chunks_name_a_column_in_a_row_group(table):
    first = chunks(table)[0]
    assert isinstance(first, Chunk) and first[:2] == (0, "a") and first.first == 4


def test_a_table_of_a_file_system_is_read_with_announcements(table, tmp_path):
    (tmp_path / "table.parquet").write_bytes(table)
    engine = forerun.Engine()
    fs = forerun.fsspec.ForerunFileSystem("file", engine=engine)
    with fs.open(str(tmp_path / "table.parquet")) as file:
        read = parquet.read_table(file, columns=["b"], pre_buffer=False)
    assert read["b"].to_pylist() == [str(row) for row in range(GROUPS * 100)]
    assert engine.ledger()["hints"] > 0


@pytest.mark.parametrize("columns", [None, ["b"]])
@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_the_error_that_it_is_without(table, damage, columns, tmp_path):
    path = tmp_path / "table.parquet"
    path.write_bytes(damaged(table, damage))
    fs, raised = forerun.fsspec.ForerunFileSystem("file", engine=forerun.Engine()), []
    for opened in (open(path, "rb"), fs.open(str(path))):
        with opened as file, pytest.raises((OSError, ValueError)) as error:
            parquet.read_table(file, columns=columns)
        raised.append((error.type, str(error.value)))
    assert raised[0] == raised[1]
