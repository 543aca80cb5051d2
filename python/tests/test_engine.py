"""Engines: settings, hints, counters, and threads."""

import pathlib
import threading
import time
import tomllib

import pytest

import forerun
from forerun import _default
from forerun._forerun import Handle

PROFILE = """
servers = 1
[[switching]]
distance_bytes = 0
switching_ns = 8000000
[[rate]]
location_bytes = 0
rate_bytes_per_second = 80000000
"""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"memory": 1}, "memory of 1 bytes: must be at least"),
        ({"memory": -1}, "memory of -1: must lie from 0"),
        ({"memory": 1 << 70}, "memory of 1180591620717411303424: must lie from 0"),
        ({"preset": "forrun"}, "no preset \"forrun\": nearest are forerun"),
        ({"profile": {}}, "profile: must have the keys switching and rate"),
        ({"profile": {"switching": [], "rate": []}}, "points=0: must be"),
        ({"emulate": (8_000_000, 1)}, "rate_bytes_per_second=1: must be a whole number from 1000"),
        ({"emulate": (-1, 80_000_000)}, "switching_ns of emulate of -1: must lie from 0"),
    ],
)
def test_settings_out_of_range_are_named_with_the_range(settings, message):
    with pytest.raises(ValueError) as raised:
        forerun.Engine(**settings)
    assert message in str(raised.value)


def test_a_profile_is_the_file_that_forerun_profile_writes():
    profile = tomllib.loads(PROFILE)
    assert forerun.Engine(profile=profile).profile == profile
    assert forerun.Engine().profile is None


def test_counters_add_up(file, engine):
    file.read()
    ledger = engine.ledger()
    assert ledger["reads"] == ledger["hits"] + ledger["late_hits"] + ledger["misses"] > 0
    assert ledger["memory_peak_bytes"] <= engine.memory
    assert all(isinstance(value, int) for value in ledger.values())


def test_announced_reads_are_known_and_fetched_before_they_are_asked_for(file, engine, content):
    order = [(file, offset, 65536) for offset in (2 << 20, 0, 1 << 20)]
    assert engine.hint(order) == 3
    for _, offset, length in order:
        assert file.pread(length, offset) == content[offset : offset + length]
    ledger = engine.ledger()
    assert ledger["hints"] == ledger["hints_read"] > 0
    assert ledger["misses"] == 0


ORDER = r"must be an iterable of \(file, offset, length\), as \[\(file, 0, None\)\]"


@pytest.mark.parametrize(
    ("order", "kind", "message"),
    [
        (lambda f: [(f, -1, 1)], ValueError, "offset of -1: must lie from 0"),
        (lambda f: [(f, 0, -1)], ValueError, "length of -1: must lie from 0"),
        (lambda f: [(3, 0, 1)], TypeError, "must be one of forerun.open, a path or an address, not"),
        (lambda f: [(f, 0)], TypeError, r"must be \(file, offset, length\)"),
        (lambda f: ["sample"], TypeError, r"hint of 'sample': must be \(file, offset, length\)"),
        (lambda f: "sample", TypeError, f"order of 'sample': {ORDER}"),
        (lambda f: b"sample", TypeError, f"order of b'sample': {ORDER}"),
        (lambda f: pathlib.Path("sample"), TypeError, rf"order of .*Path\('sample'\): {ORDER}"),
        (lambda f: f, TypeError, f"order of <forerun.*: {ORDER}"),
        (lambda f: (f, 0, 1), TypeError, rf"order of \(<forerun.*: {ORDER}"),
        (lambda f: ("sample", 0, None), TypeError, rf"order of \('sample', 0, None\): {ORDER}"),
        (lambda f: "s" * 1000, TypeError, rf"order of 's+\.\.: {ORDER}"),
        (lambda f: 5, TypeError, f"order of 5: {ORDER}"),
        (lambda f: [("hf://a/b", 0, 1)], ValueError, "address of 'hf://a/b': must begin with s3://"),
        (lambda f: [("", 0, 1)], FileNotFoundError, "No such file or directory: ''"),
    ],
)
def test_hints_are_checked(file, engine, order, kind, message):
    with pytest.raises(kind, match=message):
        engine.hint(order(file))


def test_a_hint_for_another_engine_is_refused(file):
    other = forerun.Engine(memory=4 << 20)
    with pytest.raises(ValueError, match="must be a file of this engine"):
        other.hint([(file, 0, 1)])


def test_a_hint_of_nothing_is_taken(engine):
    assert engine.hint([]) == 0


def test_the_limit_can_be_lowered_and_raised(file, engine, content):
    engine.limit_memory(2 << 20)
    assert engine.memory_limit == 2 << 20
    assert file.read() == content
    engine.limit_memory(engine.memory)
    with pytest.raises(ValueError, match="must be at most"):
        engine.limit_memory(engine.memory + (1 << 30))
    assert engine.memory_limit == engine.memory


def test_other_threads_run_while_a_read_waits(path):
    """The device takes half a second for a request, and the interpreter is free meanwhile."""
    slow = forerun.Engine(memory=4 << 20, emulate=(500_000_000, 1_000_000_000))
    with forerun.open(path, engine=slow) as file:
        reading = threading.Thread(target=file.pread, args=(4096, 0))
        reading.start()
        turns = 0
        while reading.is_alive():
            time.sleep(0.01)
            turns += 1
        reading.join()
    # With the interpreter held it would be one turn.
    assert turns > 3


def test_threads_share_a_file(file, content):
    failed = []

    def read(first):
        for offset in range(first, len(content), 4 * 10_000):
            if file.pread(10_000, offset) != content[offset : offset + 10_000]:
                failed.append(offset)

    threads = [threading.Thread(target=read, args=(10_000 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


def test_many_threads_in_little_memory_have_each_block_fetched_once():
    """256 reads of 64 KiB are 16 MiB, if each holds its blocks until all are there."""
    engine = forerun.Engine(memory=6 << 20)
    lock, fetched, size, piece = threading.Lock(), [0], 512 << 10, 64 << 10
    answers = []

    def fetch(start, end):
        threading.Event().wait(0.005)  # a slow server
        with lock:
            fetched[0] += end - start
        return bytes(end - start)

    def read(number):
        handle = Handle.fetched(engine, fetch, f"object {number}", "1", size)
        for offset in range(0, size, piece):
            answers.append(len(handle.pread(piece, offset)))

    threads = [threading.Thread(target=read, args=(number,)) for number in range(256)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [piece] * (256 * size // piece)
    assert fetched[0] < 1.1 * 256 * size


def test_a_file_closed_by_another_thread_ends_the_reads_with_an_error_or_the_bytes(path):
    slow = forerun.Engine(memory=4 << 20, emulate=(50_000_000, 1_000_000_000))
    file = forerun.open(path, engine=slow)
    got = []
    reading = threading.Thread(target=lambda: got.append(file.pread(4096, 0)))
    reading.start()
    file.close()
    reading.join()
    # Not begun yet: a ValueError in that thread, of which nothing is left here.
    assert got in ([path.read_bytes()[:4096]], [])


@pytest.mark.parametrize("pickled", [False, True])
def test_threads_that_come_side_by_side_have_one_default_engine(pickled, monkeypatch):
    made, come = [], threading.Barrier(8)

    def slow(*arguments, **options):
        made.append(arguments)
        # The others come meanwhile.
        time.sleep(0.05)
        return forerun.Engine(*arguments, **options)

    monkeypatch.setattr(_default, "_default", None)
    monkeypatch.setattr(_default, "Engine" if pickled else "_of_the_environment", slow)
    monkeypatch.setattr(_default, "set_default_engine", lambda engine: monkeypatch.setattr(_default, "_default", engine))

    def take():
        come.wait()
        engines.add(_default._restore("default", 1 << 20, 1 << 20, "forerun", None, None) if pickled else _default.default_engine())

    engines = set()
    threads = [threading.Thread(target=take) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(made), len(engines)) == (1, 1)


def test_the_default_engine_is_shared_and_can_be_set(path):
    with forerun.open(path) as one, forerun.open(path) as two:
        assert one.engine is two.engine is forerun.default_engine()
    with pytest.raises(TypeError):
        forerun.set_default_engine(3)
