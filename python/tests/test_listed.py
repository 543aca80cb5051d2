"""Listings that a target keeps: an object that is replaced afterwards is read in its new version."""

import errno

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

import forerun.fsspec
from forerun import _handles, native
from test_stores import SETTINGS, server, tag_of  # noqa: F401

PATH = "/bucket/folder/key"
SIZE = 300_000


class Listing(MemoryFileSystem):
    """A target that lists a folder once, as that of s3fs does."""

    cachable = False
    protocol = "listing"

    def __init__(self, objects):
        super().__init__()
        self.objects = objects
        self.read = []

    def ls(self, path, detail=True, **kwargs):
        folder = self._strip_protocol(path)
        if folder not in self.dircache:
            names = [name for name in self.objects if self._parent(name) == folder]
            self.dircache[folder] = [self.details(name) for name in names]
        return self.dircache[folder] if detail else [one["name"] for one in self.dircache[folder]]

    def details(self, name):
        content = self.objects[name]
        return {"name": name, "size": len(content), "type": "file", "ETag": tag_of(content)}

    def invalidate_cache(self, path=None):
        self.dircache.clear()


@pytest.fixture
def target(server, monkeypatch):
    variables = {"AWS_ENDPOINT_URL": f"http://127.0.0.1:{server.server_port}", "AWS_REGION": "us-east-1"}
    monkeypatch.setattr(native, "reached", lambda fs, path: native.Reached(f"s3:/{path}", variables, knows_tags=True))
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 3600.0)
    monkeypatch.setattr(_handles, "_opened", {})
    server.objects[PATH] = bytes(SIZE)
    return Listing(server.objects)


@pytest.mark.parametrize("name", [PATH, f"{PATH}.parquet", f"{PATH}.csv"])
def test_an_object_of_an_old_listing_is_read_in_the_version_that_it_has(target, engine, name, monkeypatch):
    target.objects[name] = bytes(SIZE)
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    assert fs.cat_file(name) == bytes(SIZE)
    fs.ls("/bucket/folder")
    assert fs.cat_file(name) == bytes(SIZE)
    target.objects[name] = b"\1" * SIZE
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 0.0)
    assert fs.cat_file(name) == b"\1" * SIZE
    assert fs.isfile(name) or not name.endswith(".parquet")
    with fs.open(name) as file:
        assert file.read() == b"\1" * SIZE


def test_an_object_is_believed_for_five_seconds_from_its_first_opening_by_a_listing(target, engine, monkeypatch):
    now = [100.0]
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 5.0)
    monkeypatch.setattr(_handles.time, "monotonic", lambda: now[0])
    known = native.reached(target, PATH)
    opened = [
        (after, _handles.known_handle(engine, known, target.details(PATH)) is not None)
        for after in (0.0, 4.9, 5.0, 9.0, 3600.0)
        if now.__setitem__(0, 100.0 + after) is None
    ]
    assert opened == [(0.0, True), (4.9, True), (5.0, False), (9.0, False), (3600.0, False)]
    # An object that is opened ahead is asked for by its program, whenever that comes.
    assert _handles.known_handle(engine, known, target.details(PATH), is_ahead=True)
    other = "/bucket/folder/other"
    target.objects[other] = bytes(SIZE)
    listed = _handles.listed_handle(engine, target, target.details(other))
    now[0] += 5.0
    assert listed and not _handles.known_handle(engine, native.reached(target, other), target.details(other))


def test_an_object_of_an_old_listing_that_is_in_memory_is_asked_for_and_not_fetched(target, server, engine, monkeypatch):
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    fs.ls("/bucket/folder")
    for _ in range(2):
        assert fs.cat_file(PATH) == bytes(SIZE)
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 0.0)
    fetched, heads = engine.ledger()["request_bytes"], len(server.heads)
    assert fs.cat_file(PATH) == bytes(SIZE)
    assert (engine.ledger()["request_bytes"], len(server.heads)) == (fetched, heads + 1)


def test_an_object_that_was_asked_for_is_not_believed_by_an_older_listing(target, engine):
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    fs.ls("/bucket/folder")
    # The first object of a bucket is asked for.
    assert fs.cat_file(PATH) == bytes(SIZE)
    target.objects[PATH] = b"\1" * SIZE
    assert fs.cat_file(PATH) == b"\1" * SIZE


def test_so_many_objects_are_remembered(monkeypatch):
    monkeypatch.setattr(_handles, "_opened", {})
    monkeypatch.setattr(_handles, "_OPENED_MAX", 3)
    first = [_handles._opened_at(f"s3://b/{name}", float(name)) for name in (0, 1, 2, 0, 3, 0)]
    assert first == [0.0, 1.0, 2.0, 0.0, 3.0, 0.0]
    assert list(_handles._opened) == ["s3://b/2", "s3://b/3", "s3://b/0"]


def listed_and_replaced(target, engine):
    """A file system, and an object that was replaced after it was listed, of a bucket that was read."""
    fs = fsspec.filesystem("forerun", fs=target, engine=engine)
    assert fs.cat_file(PATH) == bytes(SIZE)
    name = "/bucket/folder/other"
    target.objects[name] = bytes(SIZE)
    fs.ls("/bucket/folder")
    target.objects[name] = b"\1" * SIZE
    return fs, name


def test_a_listed_object_that_was_replaced_is_read_by_one_call_in_its_new_version(target, engine):
    fs, name = listed_and_replaced(target, engine)
    assert fs.cat_file(name) == b"\1" * SIZE


@pytest.mark.parametrize(
    "read",
    [
        lambda file: file.read(),
        lambda file: file.read(10),
        lambda file: file.pread(10, 5),
        lambda file: file.readinto(bytearray(10)),
        lambda file: file.readinto_at(bytearray(10), 5),
        lambda file: file.readline(),
    ],
)
def test_what_was_replaced_since_it_was_listed_is_an_error_once(target, engine, read):
    fs, name = listed_and_replaced(target, engine)
    with fs.open(name) as file, pytest.raises(OSError) as raised:
        read(file)
    assert raised.value.errno == errno.ESTALE
    with fs.open(name) as file:
        assert file.read() == b"\1" * SIZE
