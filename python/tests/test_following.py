"""The ends of the tables that come next in a listing, announced while a scan opens them in its order."""

import random

import fsspec
import pytest

import forerun
from forerun import _handles
from forerun._following import AHEAD_MAX, Following
from targets import s3, s3_options  # noqa: F401

TABLES = 64
SIZE = 200_000


class Recorder:
    """Handles, with what was announced of each."""

    def __init__(self):
        self.announced = []

    def handle_of(self, details):
        self.name = details["name"]
        return self

    def announce(self, ranges):
        self.announced += [(self.name, *one) for one in ranges]

    def take(self):
        taken, self.announced = self.announced, []
        return taken


def listed(size=SIZE):
    names = [f"b/f/p{number:03}.parquet" for number in range(TABLES)]
    others = [{"name": "b/f/sub", "type": "directory", "size": 0}, {"name": "b/f/a.csv", "type": "file", "size": 5}]
    return names, [*others, *({"name": name, "type": "file", "size": size} for name in names)]


@pytest.mark.parametrize("size", [0, 10, SIZE])
def test_the_ends_of_the_next_tables_are_announced_once_and_no_more_than_the_most(size):
    names, listing = listed(size)
    following, recorder, announced = Following(), Recorder(), []
    for place, name in enumerate(names):
        following.opened(name, listing, recorder.handle_of)
        # A table is opened twice by its reader.
        following.opened(name, listing, recorder.handle_of)
        announced += recorder.take()
        assert len(announced) + 2 - place - 1 <= AHEAD_MAX or place == 0
    assert [name for name, _, _ in announced] == names[2:]
    length = min(size, 69_632)
    assert {(first, count) for _, first, count in announced} == {(size - length, length)}
    assert len(following._kept) == 2 * AHEAD_MAX


@pytest.mark.parametrize("order", ["shuffled", "backwards", "one"])
def test_nothing_is_announced_for_tables_that_are_opened_out_of_order(order):
    names, listing = listed()
    opened = {
        "shuffled": random.Random(3).sample(names[::5], len(names[::5])),
        "backwards": names[::-1],
        "one": names[7:8],
    }[order]
    following, recorder = Following(), Recorder()
    for name in [*opened, "b/f/a.csv", "b/f/absent.parquet"]:
        following.opened(name, listing, recorder.handle_of)
    assert recorder.take() == []


def test_another_listing_and_a_gap_begin_anew():
    names, listing = listed()
    following, recorder = Following(), Recorder()
    for name in (*names[:4], names[40]):
        following.opened(name, listing, recorder.handle_of)
    assert [name for name, _, _ in recorder.take()] == names[2:12]
    following.opened(names[41], listing, recorder.handle_of)
    assert [name for name, _, _ in recorder.take()] == names[42:44]
    following.opened(names[42], list(listing), recorder.handle_of)
    assert recorder.take() == [] and following._kept == {}


def test_ends_of_listed_objects_are_there_when_their_tables_are_opened(s3, monkeypatch):
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 3600.0)
    monkeypatch.setattr(_handles, "_opened", {})
    target, folder = s3
    contents = {f"{folder}/{number:02}.parquet": random.Random(number).randbytes(SIZE + number) for number in range(12)}
    for path, content in contents.items():
        target.pipe_file(path, content)
    target.invalidate_cache()
    engine = forerun.Engine()
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    for path in fs.ls(folder, detail=False):
        with fs.open(path) as file:
            file.seek(-1000, 2)
            assert file.read() == contents[path][-1000:]
    ledger = engine.ledger()
    # Of the first two nothing was announced.
    assert (ledger["hints_dropped"], ledger["misses"]) == (0, 2)
    assert ledger["request_bytes"] <= 12 * (80 << 10)
