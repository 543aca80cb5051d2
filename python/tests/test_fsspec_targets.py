"""The whole of a file system: every method by path and by address gives the answer of the target, over four targets."""

import json
import os
import pickle

import fsspec
import pytest
from fsspec.spec import AbstractFileSystem
from fsspec.tests import abstract

import forerun.fsspec
from targets import http, local, memory, s3, s3_options  # noqa: F401

FILES = {"a.txt": b"first,second\n1,2\n", "sub/b.bin": bytes(range(256)) * 300, "sub/deep/empty": b""}


def _written_to(name, fixture, tmp_path):
    """A target with the files, and the folder that has them."""
    target, folder = fixture
    writes, begin = (fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "folder")) if name == "http" else fixture
    for path, content in FILES.items():
        writes.makedirs(os.path.dirname(f"{begin}/{path}"), exist_ok=True)
        writes.pipe_file(f"{begin}/{path}", content)
    target.invalidate_cache()
    return target, folder


TARGETS = ["local", "memory", "s3", "http"]
ON_FILES = [
    ("info", ()),
    ("exists", ()),
    ("lexists", ()),
    ("isfile", ()),
    ("isdir", ()),
    ("size", ()),
    ("stat", ()),
    ("checksum", ()),
    ("ukey", ()),
    ("modified", ()),
    ("created", ()),
    ("cat", ()),
    ("cat_file", ()),
    ("cat_file", {"start": 3, "end": 9}),
    ("cat_file", {"start": -4}),
    ("read_bytes", ()),
    ("head", (7,)),
    ("tail", (5,)),
    ("read_block", (2, 10)),
    ("expand_path", ()),
    ("sizes", ()),
]
ON_FOLDERS = [
    ("ls", ()),
    ("listdir", ()),
    ("find", ()),
    ("walk", ()),
    ("du", ()),
    ("disk_usage", ()),
    ("exists", ()),
    ("isfile", ()),
    ("isdir", ()),
    ("info", ()),
]


def _answer(fs, method, path, arguments):
    """The answer, or the kind of exception."""
    path = [path] if method == "sizes" else path
    try:
        named = arguments if isinstance(arguments, dict) else {}
        answer = getattr(fs, method)(path, *(() if named else arguments), **named)
        return list(answer) if method == "walk" else answer
    except Exception as error:
        return type(error)


@pytest.mark.parametrize("name", TARGETS)
def test_every_method_gives_by_path_and_by_address_the_answer_of_the_target(name, request, tmp_path):
    target, folder = _written_to(name, request.getfixturevalue(name), tmp_path)
    fs = fsspec.filesystem("forerun", fs=target)
    for calls, at in ((ON_FILES, "a.txt"), (ON_FILES, "sub/b.bin"), (ON_FILES, "absent"), (ON_FOLDERS, "sub"), (ON_FOLDERS, "")):
        path = f"{folder}/{at}".rstrip("/")
        for method, arguments in calls:
            wanted = _answer(target, method, path, arguments)
            for form in (path, f"forerun://{path}", f"forerun::{target.unstrip_protocol(path)}"):
                assert _answer(fs, method, form, arguments) == wanted, (method, form)
    if name != "http":
        for pattern in ("*", "**/*.bin", "sub/*"):
            assert fs.glob(f"forerun://{folder}/{pattern}") == target.glob(f"{folder}/{pattern}")


@pytest.mark.parametrize("name", TARGETS)
def test_files_are_read_in_every_mode_and_several_at_once(name, request, tmp_path):
    target, folder = _written_to(name, request.getfixturevalue(name), tmp_path)
    fs = fsspec.filesystem("forerun", fs=target)
    text, binary = f"forerun://{folder}/a.txt", f"forerun://{folder}/sub/b.bin"
    with fs.open(text) as file:
        assert file.readline() == b"first,second\n"
        assert file.readlines() == [b"1,2\n"]
    with fs.open(text, "r", encoding="utf-8", newline="") as file:
        assert list(file) == ["first,second\n", "1,2\n"]
    assert fs.read_text(text) == "first,second\n1,2\n"
    with fs.open(binary, block_size=1000, cache_type="readahead") as file:
        file.seek(-10, os.SEEK_END)
        assert pickle.loads(pickle.dumps(file)).read() == FILES["sub/b.bin"][-10:]
    with pytest.raises(FileNotFoundError):
        fs.open(f"forerun://{folder}/absent")
    content = FILES["sub/b.bin"]
    ranges = [(start, start + 700) for start in range(0, len(content), 5_000)]
    read = fs.cat_ranges([binary] * len(ranges), *map(list, zip(*ranges)))
    assert read == [content[start:end] for start, end in ranges]
    assert fs.cat_ranges([text, binary], 0, [5, -5]) == [b"first", content[:-5]]
    read = fs.cat_ranges([text, f"{folder}/absent"], 0, 5)
    assert (read[0], type(read[1])) == (b"first", FileNotFoundError)
    with pytest.raises(FileNotFoundError):
        fs.cat_ranges([text, f"{folder}/absent"], 0, 5, on_error="raise")
    with pytest.raises(ValueError, match="1, 2 and 1"):
        fs.cat_ranges([text], [0, 1], 5)
    with pytest.raises(TypeError, match="must be a list"):
        fs.cat_ranges(text, 0, 5)
    assert set(fs.cat([text, binary]).values()) == {FILES["a.txt"], content}
    fs.get(binary, str(tmp_path / "copy"))
    assert (tmp_path / "copy").read_bytes() == content
    fs.get_file(binary, str(tmp_path / "other"))
    assert (tmp_path / "other").read_bytes() == content


@pytest.mark.parametrize("name", ["local", "memory", "s3"])
def test_a_file_that_was_written_through_it_is_never_read_stale(name, request):
    target, folder = request.getfixturevalue(name)
    fs = fsspec.filesystem("forerun", fs=target)
    fs.makedirs(f"forerun://{folder}", exist_ok=True)
    path = f"forerun://{folder}/file"

    def writes(content):
        yield lambda: fs.pipe_file(path, content)
        yield lambda: fs.pipe(path=path, value=content)

        def opened():
            with fs.open(path, "wb") as file:
                # A reader between them sees the one or the other, and keeps neither.
                fs.exists(path) and fs.cat_file(path)
                file.write(content)

        yield opened
        yield lambda: fs.pipe({path: content})

    for turn in range(5):
        for number in range(4):
            content = bytes([turn * 4 + number]) * 5000
            list(writes(content))[number]()
            assert fs.cat_file(path) == content
            assert fs.cat([path]) == {fs._strip_protocol(path): content}
            with fs.open(path) as file:
                assert file.read() == content
    fs.cp_file(path, f"forerun://{folder}/two")
    assert fs.cat_file(f"{folder}/two") == content
    fs.rm(path)
    assert not fs.exists(path)
    with pytest.raises(FileNotFoundError):
        fs.open(path)


@pytest.mark.parametrize("name", ["local", "memory"])
def test_ten_thousand_files_in_one_call_are_read_with_few_descriptors(name, request):
    resource = pytest.importorskip("resource")
    target, folder = request.getfixturevalue(name)
    paths = [f"{folder}/{number:05}" for number in range(10_000)]
    contents = {path: number.to_bytes(3, "big") * (number % 5) for number, path in enumerate(paths)}
    for path, content in contents.items():
        target.pipe_file(path, content)
    missing = set(paths[::1111])
    for path in missing:
        target.rm_file(path)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine("16MiB"))
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) + 300, hard))
    try:
        read = fs.cat(paths, on_error="return")
        there = fs.cat(paths, on_error="omit")
        with pytest.raises(FileNotFoundError):
            fs.cat(paths)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert {path for path, content in read.items() if isinstance(content, FileNotFoundError)} == missing
    assert there == {path: content for path, content in contents.items() if path not in missing}
    assert {path: read[path] for path in there} == there and list(read) == paths


@pytest.mark.parametrize("name", ["local", "memory", "s3"])
def test_it_is_pickled_and_written_as_json_with_its_target(name, request, tmp_path):
    target, folder = _written_to(name, request.getfixturevalue(name), tmp_path)
    made = fsspec.filesystem("forerun", target_protocol=name.replace("local", "file"), target_options=dict(target.storage_options))
    for fs in (made, fsspec.filesystem("forerun", fs=target), fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())):
        told = json.loads(fs.to_json())
        assert told["cls"] == "forerun.fsspec:ForerunFileSystem"
        for copy in (AbstractFileSystem.from_json(fs.to_json()), AbstractFileSystem.from_dict(fs.to_dict()), pickle.loads(pickle.dumps(fs))):
            assert copy.cat_file(f"{folder}/a.txt") == FILES["a.txt"]
    secret = fsspec.filesystem("forerun", target_protocol="memory", target_options={"password": "x"})
    assert "password" in str(secret.to_dict()) and "password" not in str(secret.to_dict(include_password=False))


def test_an_option_of_the_target_that_is_given_to_it_is_refused_by_name():
    with pytest.raises(ValueError, match="key.*target_options"):
        fsspec.filesystem("forerun", target_protocol="memory", key="x")


class Suite(abstract.AbstractFixtures):
    """The suite that fsspec has for every file system."""

    @pytest.fixture
    def fs_join(self):
        return lambda *parts: "/".join(parts)


class LocalSuite(Suite):
    @pytest.fixture
    def fs(self):
        return fsspec.filesystem("forerun", target_protocol="file", target_options={"auto_mkdir": True})

    @pytest.fixture
    def fs_path(self, tmp_path):
        return str(tmp_path)


class MemorySuite(Suite):
    @pytest.fixture
    def fs(self, memory):
        return fsspec.filesystem("forerun", fs=memory[0])

    @pytest.fixture
    def fs_path(self):
        return ""


class S3Suite(Suite):
    @pytest.fixture
    def fs(self, s3):
        return fsspec.filesystem("forerun", fs=s3[0])

    @pytest.fixture
    def fs_path(self):
        return "bucket/folder"

    @pytest.fixture
    def supports_empty_directories(self):
        return False


PARTS = (abstract.AbstractCopyTests, abstract.AbstractGetTests, abstract.AbstractPutTests, abstract.AbstractOpenTests, abstract.AbstractPipeTests)


class TestLocal(*PARTS, LocalSuite):
    pass


class TestMemory(*PARTS, MemorySuite):
    pass


class TestS3(*PARTS, S3Suite):
    def test_open_exclusive(self, fs, fs_target):
        """As that of the suite; s3fs finds the other file where this one is closed."""
        fs.pipe_file(fs_target, b"data")
        with pytest.raises(FileExistsError), fs.open(fs_target, "xb") as file:
            file.write(b"other")
        assert fs.cat_file(fs_target) == b"data"
