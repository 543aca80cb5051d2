"""A file behaves as one of `open(path, "rb", buffering=0)`."""

import array
import errno
import io

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import forerun

OFFSET = st.integers(-5, 4 << 20)
STEP = st.one_of(
    st.tuples(st.just("seek"), OFFSET, st.sampled_from([0, 1, 2])),
    st.tuples(st.just("read"), st.one_of(st.none(), st.integers(-1, 1 << 20))),
    st.tuples(st.just("readinto"), st.integers(0, 1 << 20)),
    st.tuples(st.just("tell")),
)


def result(file, step):
    name, *arguments = step
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
@given(steps=st.lists(STEP, max_size=20))
def test_any_sequence_of_calls_answers_as_a_file_of_the_system(path, engine, steps):
    with open(path, "rb", buffering=0) as own, forerun.open(path, engine=engine) as file:
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
        file.readinto(buffer)


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
    with pytest.raises(IsADirectoryError):
        forerun.open(tmp_path)
    with pytest.raises(OSError, match="regular file"):
        forerun.open("/dev/null")


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda f: f.seek(-1), "offset of -1: must lie from 0 to 9223372036854775807"),
        (lambda f: f.seek(1 << 64), "offset of 18446744073709551616: must lie from 0"),
        (lambda f: f.seek(0, 7), "whence of 7: must be 0, 1 or 2"),
        (lambda f: f.pread(-1, 0), "length of -1: must lie from 0"),
        (lambda f: f.pread(1, -1), "offset of -1: must lie from 0"),
        (lambda f: forerun.open(f.name, "w"), "mode of 'w': must be 'rb'"),
    ],
)
def test_values_out_of_range_are_named_with_the_range(file, call, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        call(file)


def test_a_replaced_content_is_seen_whole(path, engine):
    path.write_bytes(b"a" * 100_000)
    with forerun.open(path, engine=engine) as file:
        assert file.read() == b"a" * 100_000
        path.write_bytes(b"b" * 50_000)
        assert file.size == 50_000
        assert file.pread(100_000, 0) == b"b" * 50_000


def test_writing_is_not_supported(file):
    assert not file.writable()
    with pytest.raises(io.UnsupportedOperation):
        file.write(b"x")
    assert (file.readable(), file.seekable(), file.mode) == (True, True, "rb")
