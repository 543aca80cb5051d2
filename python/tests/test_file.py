"""A file behaves as one of Python's `open`, with a buffer and without."""

import array
import errno
import io
import itertools
import os
import pickle
import signal
import threading
import time
import zipfile

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forerun
from forerun._forerun import Handle

OFFSET = st.integers(-5, 4 << 20)
STEP = st.one_of(
    st.tuples(st.just("seek"), OFFSET, st.sampled_from([0, 1, 2])),
    st.tuples(st.just("read"), st.one_of(st.none(), st.integers(-1, 1 << 20))),
    st.tuples(st.just("readinto"), st.integers(0, 1 << 20)),
    st.tuples(st.just("readline"), st.one_of(st.none(), st.integers(-1, 5000))),
    st.tuples(st.just("tell")),
    st.tuples(st.just("next")),
    st.tuples(st.just("iterated")),
)


def result(file, step):
    name, *arguments = step
    if name == "next":
        return next(file, None)
    if name == "iterated":
        return next(iter(file), None)
    if name == "readinto":
        buffer = bytearray(arguments[0])
        return file.readinto(buffer), bytes(buffer)
    try:
        return getattr(file, name)(*arguments)
    except (OSError, ValueError):
        return "refused"


@settings(
    max_examples=150,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(steps=st.lists(STEP, max_size=20), buffering=st.sampled_from([0, -1, 2, 5000]))
def test_any_sequence_of_calls_answers_as_a_file_of_the_system(path, engine, steps, buffering):
    with (
        open(path, "rb", buffering) as own,
        forerun.open(path, "rb", buffering, engine=engine) as file,
    ):
        for step in steps:
            assert result(file, step) == result(own, step), step


def test_every_writable_buffer_is_filled(file, content):
    for buffer in (
        bytearray(800),
        memoryview(bytearray(1000))[100:900],
        array.array("d", bytes(800)),
        memoryview(array.array("i", bytes(800))),
    ):
        assert file.readinto_at(buffer, 4000) == 800
        assert bytes(memoryview(buffer).cast("B")) == content[4000:4800]
    assert file.readinto(bytearray()) == 0


@pytest.mark.parametrize("buffer", [b"abc", "abc", 3, memoryview(bytearray(9))[::2]])
def test_other_buffers_are_type_errors(file, buffer):
    with pytest.raises(TypeError, match="writable and contiguous"):
        file.raw.readinto(buffer)


def test_readers_of_the_standard_library_take_it(path, engine, content):
    buffered = io.BufferedReader(forerun.open(path, engine=engine), 10_000)
    assert buffered.read(5) == content[:5]
    assert buffered.peek(1)[:1] == content[5:6]
    path.write_text("one\ntwo\n")
    with io.TextIOWrapper(forerun.open(path, engine=engine)) as text:
        assert list(text) == ["one\n", "two\n"]


def test_positions_are_not_moved_by_reads_at_an_offset(file, content):
    file.seek(10)
    assert file.pread(20, 30) == content[30:50]
    assert file.tell() == 10
    assert file.pread(1 << 62, len(content) - 3) == content[-3:]
    assert file.pread(5, len(content)) == b""


def test_a_closed_file_refuses_everything_but_to_close(file):
    file.close()
    file.close()
    assert file.closed
    for call in (
        file.read,
        file.tell,
        file.readable,
        lambda: file.seek(0),
        lambda: file.readinto(bytearray(1)),
        lambda: file.pread(1, 0),
        lambda: file.size,
    ):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_errors_of_the_system_have_number_and_path(tmp_path):
    missing = tmp_path / "missing"
    with pytest.raises(FileNotFoundError) as raised:
        forerun.open(missing)
    assert (raised.value.errno, raised.value.filename) == (errno.ENOENT, str(missing))
    for path in ["/proc/self/status", "/sys/devices/system/cpu/online"]:
        with pytest.raises(OSError, match="other bytes than its size says") as refused:
            forerun.open(path)
        assert refused.value.errno == errno.EOPNOTSUPP
    with pytest.raises(IsADirectoryError):
        forerun.open(tmp_path)
    with pytest.raises(OSError, match="regular file"):
        forerun.open("/dev/null")
    (tmp_path / "file").write_bytes(b"a")
    with pytest.raises(NotADirectoryError):
        forerun.open(f"{tmp_path}/file/")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.seek(1 << 64), "offset of 18446744073709551616: must lie from 0"),
        (lambda f: f.seek(0, 7), "whence of 7: must be 0, 1 or 2"),
        (lambda f: f.pread(-1, 0), "length of -1: must lie from 0"),
        (lambda f: f.pread(1, -1), "offset of -1: must lie from 0"),
    ],
)
def test_values_out_of_range_are_named_with_the_range(file, call, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        call(file)


@pytest.mark.parametrize(
    ("offset", "whence"), [(-1, 0), (-(1 << 62), 0), (-(3 << 20) - 778, 2), (-6, 1)]
)
def test_a_seek_before_the_beginning_is_the_error_of_files(file, path, offset, whence):
    with open(path, "rb", buffering=0) as own:
        for one in (file, own):
            one.seek(5)
            with pytest.raises(OSError) as raised:
                one.seek(offset, whence)
            assert raised.value.errno == errno.EINVAL
            assert one.tell() == 5
    with pytest.raises(OSError, match=r"offset of -1: must lie from 0 to 9223372036854775807"):
        file.seek(-1)


@pytest.mark.parametrize("size", [0, 1, 21, 22])
def test_short_archives_are_refused_as_those_of_files(tmp_path, engine, size):
    short = tmp_path / "short"
    short.write_bytes(b"x" * size)
    with forerun.open(short, engine=engine) as file:
        assert not zipfile.is_zipfile(file)
        with pytest.raises(zipfile.BadZipFile):
            zipfile.ZipFile(file)


# Of a file with a buffer CPython's own `readline` and `readinto` may lose what it holds, with the
# built-in `open` too: they look at it before they lock it.
@pytest.mark.parametrize(
    ("read", "buffering"),
    [("read", 0), ("readinto", 0), ("readline", 0), ("read", -1)],
)
def test_threads_that_share_a_position_get_each_byte_once(tmp_path, read, buffering):
    numbers = [b"%07d\n" % number for number in range(20_000)]
    path = tmp_path / "numbers"
    path.write_bytes(b"".join(numbers))
    engine = forerun.Engine(memory=2 << 20)
    got, file = [], forerun.open(path, buffering=buffering, engine=engine)

    def reading():
        own = []
        while True:
            if read == "read":
                part = file.read(8 * 37)
            elif read == "readline":
                part = file.readline()
            else:
                buffer = bytearray(8 * 37)
                part = bytes(buffer[: file.readinto(buffer)])
            if not part:
                break
            own += [part[at : at + 8] for at in range(0, len(part), 8)]
        got.append(own)

    threads = [threading.Thread(target=reading) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(itertools.chain(*got)) == numbers
    assert all(own == sorted(own) for own in got)
    assert file.tell() == path.stat().st_size


def test_a_handler_that_reads_the_file_it_interrupted_is_refused_and_does_not_hang():
    asked, go_on = threading.Event(), threading.Event()

    def fetch(start, end):
        asked.set()
        go_on.wait()
        return bytes(end - start)

    engine = forerun.Engine(memory=4 << 20)
    file = forerun.File(Handle.fetched(engine, fetch, "handler", "1", 1 << 20), "handler")
    refused = []

    def handler(*_):
        try:
            file.read(1)
        except RuntimeError as error:
            refused.append(str(error))
        go_on.set()

    before = signal.signal(signal.SIGALRM, handler)
    interrupting = threading.Thread(
        target=lambda: asked.wait() and os.kill(os.getpid(), signal.SIGALRM)
    )
    interrupting.start()
    try:
        assert file.read(10) == bytes(10)
    finally:
        interrupting.join()
        signal.signal(signal.SIGALRM, before)
    assert refused == ["reentrant call inside a read of the same file"]


LINES = {
    "short": b"one\n\ntwo\n" * 20_000,
    "long": (b"x" * 300_000 + b"\n") * 3 + b"rest",
    "none": bytes(200_000),
    "empty": b"",
    "returns": b"a\r\nb\rc\n",
}


@pytest.mark.parametrize("buffering", [0, -1])
@pytest.mark.parametrize("kind", LINES)
def test_lines_are_those_of_files(tmp_path, engine, kind, buffering):
    path = tmp_path / "lines"
    path.write_bytes(LINES[kind])
    with forerun.open(path, "rb", buffering, engine=engine) as file, open(path, "rb") as own:
        assert list(file) == list(own)
        file.seek(3), own.seek(3)
        assert file.readlines(50) == own.readlines(50)
        # Reads between lines, and lines again.
        assert (file.read(7), file.readline(), file.tell()) == (own.read(7), own.readline(), own.tell())
        assert file.readline(0) == b""


def test_a_line_costs_no_call_for_each_byte(tmp_path):
    path = tmp_path / "lines"
    path.write_bytes(b"0123456789012345678901234567\n" * 20_000)
    engine = forerun.Engine(memory=4 << 20)
    with forerun.open(path, engine=engine) as file:
        assert sum(1 for _ in file) == 20_000
    # Of 4 KiB each, at first.
    assert engine.ledger()["reads"] < 1000


def test_a_line_is_read_anew_once_the_file_is_another(tmp_path, engine):
    path = tmp_path / "log"
    path.write_bytes(b"one\n")
    with forerun.open(path, engine=engine) as file:
        assert file.readline() == b"one\n"
        until = time.monotonic() + 600
        with open(path, "ab") as more:
            more.write(b"two\n")
        while not (line := file.readline()) and time.monotonic() < until:
            pass
        assert line == b"two\n"


def test_a_path_as_bytes_is_a_path(path, engine, content):
    with forerun.open(os.fsencode(path), engine=engine) as file:
        assert file.read(10) == content[:10]
        assert file.name == os.fsencode(path)
        assert pickle.loads(pickle.dumps(file)).tell() == 10


def test_a_name_that_is_no_text_is_a_path(tmp_path, engine):
    path = os.path.join(os.fsencode(tmp_path), b"n\xff\n")
    with open(path, "wb") as made:
        made.write(b"odd")
    for name in (path, os.fsdecode(path)):
        with forerun.open(name, engine=engine) as file:
            assert file.read() == b"odd"


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        ("", FileNotFoundError, "No such file or directory: ''"),
        (b"", FileNotFoundError, "No such file or directory: b''"),
        ("a\0b", ValueError, "embedded null byte"),
        (b"a\0b", ValueError, "embedded null byte"),
        ("s3://b/a\0b", ValueError, "embedded null byte"),
        ("ftp://host/a", ValueError, "address of 'ftp://host/a': must begin with s3://, gs://"),
        ("hf://datasets/x", ValueError, "address of 'hf://datasets/x': must begin with s3://"),
        ("s3:/bucket/key", ValueError, "address of 's3:/bucket/key': must begin with s3://"),
        ("file:/etc/passwd", ValueError, "must begin with s3://"),
        ("file://host/a", ValueError, "must be file:// and a path from the root"),
        ("file:///a%00b", ValueError, "must be file:// and a path from the root"),
        (b"hdfs://a/b", ValueError, "address of b'hdfs://a/b'"),
        ("abfs+x://a/b", ValueError, "must begin with"),
        (5, TypeError, "expected str, bytes or os.PathLike object, not int"),
    ],
)
def test_names_that_are_none_are_refused_by_name(engine, name, kind, message):
    with pytest.raises(kind) as raised:
        forerun.open(name, engine=engine)
    assert message in str(raised.value)


def test_a_replaced_content_is_seen_whole(path, engine):
    path.write_bytes(b"a" * 100_000)
    with forerun.open(path, engine=engine) as file:
        assert file.read() == b"a" * 100_000
        path.write_bytes(b"b" * 50_000)
        assert file.size == 50_000
        assert file.pread(100_000, 0) == b"b" * 50_000


def test_writing_is_not_supported(file):
    assert not file.writable()
    for one in (file, file.raw):
        for call in (lambda f: f.write(b"x"), lambda f: f.truncate(), lambda f: f.writelines([b""])):
            with pytest.raises(io.UnsupportedOperation):
                call(one)
    assert (file.readable(), file.seekable(), file.mode) == (True, True, "rb")
