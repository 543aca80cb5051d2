"""Settings: sizes with units, variables of the environment, versions, and errors that name the value."""

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import forerun


def run(code, **variables):
    """Ends a program with these variables; what it printed, and its last line of stderr."""
    environment = {**ENVIRONMENT, **variables}
    ended = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False
    )
    return ended.stdout.strip(), (ended.stderr.strip().splitlines() or [""])[-1]


ENVIRONMENT = {"PATH": "/usr/bin:/bin", "RUST_BACKTRACE": "0"}

SHOW = "import forerun; e = forerun.default_engine(); print(e.memory, e.preset)"


@pytest.mark.parametrize(
    ("memory", "bytes_"),
    [("1GiB", 1 << 30), ("64 MiB", 64 << 20), ("20MB", 20_000_000), (8 << 20, 8 << 20), ("8388608B", 8 << 20)],
)
def test_a_memory_is_bytes_or_a_size_with_a_unit(memory, bytes_):
    assert forerun.Engine(memory).memory == bytes_
    assert forerun.Engine(memory=memory).memory == bytes_
    engine = forerun.Engine(1 << 30)
    engine.limit_memory(memory)
    assert engine.memory_limit == bytes_


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: forerun.Engine("much"), ValueError, 'memory of much: "much" is not a size'),
        (lambda: forerun.Engine("1 Gigabyte"), ValueError, 'memory of 1 Gigabyte: "Gigabyte" is not a unit'),
        (lambda: forerun.Engine("64"), ValueError, "memory of 64 bytes: must be at least"),
        (lambda: forerun.Engine("1.5B"), ValueError, 'memory of 1.5B: "1.5B" is not a whole number'),
        (lambda: forerun.Engine(1.5e9), TypeError, 'memory must be an int of bytes or a size as "1GiB", not .*float'),
        (lambda: forerun.Engine([1]), TypeError, "memory must be an int of bytes .*list"),
        (lambda: forerun.Engine().limit_memory("x"), ValueError, 'memory of x: "x" is not a size'),
        (lambda: forerun.Engine(preset=5), TypeError, "preset"),
        (lambda: forerun.Engine(emulate=5), TypeError, "emulate of 5: must be .nanoseconds for a switch"),
        (lambda: forerun.Engine(emulate=(1,)), TypeError, "emulate of .1,.: must be .nanoseconds"),
        (lambda: forerun.simulate(workload="a", preset=5), ValueError, "no preset and no hinted method .*5"),
        (lambda: forerun.simulate(workload="a", preset=object()), TypeError, "preset must be a value as on the command line or several"),
        (lambda: forerun.simulate(workload="a", presets="none"), TypeError, "no option 'presets'; the nearest are preset"),
        (lambda: forerun.simulate(workload="a", cache_blocks="x"), ValueError, "must be a whole number from 1"),
        (lambda: forerun.simulate(workload="a", cache_blocks=2.5), ValueError, "must be a whole number from 1"),
        (lambda: forerun.reproduce("li04", only=5), TypeError, "only must be a name or several, not .*int"),
    ],
)
def test_settings_of_a_wrong_kind_or_value_are_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()


def test_one_preset_and_one_size_need_no_list():
    rows = forerun.simulate(
        workload="sequential(file_bytes=65536)", preset="none", cache_blocks=640
    )
    assert [(row["preset"], row["cache_blocks"]) for row in rows] == [("none", 640)]
    assert [row["id"] for row in forerun.reproduce("li04", only="C1", sample=True)] == ["C1"]


def test_the_default_engine_has_the_memory_and_the_preset_of_the_environment():
    assert run(SHOW) == (f"{256 << 20} forerun", "")
    assert run(SHOW, FORERUN_MEMORY="64MiB", FORERUN_PRESET="none") == (f"{64 << 20} none", "")
    assert run(SHOW, FORERUN_MEMORY="", FORERUN_PRESET="") == (f"{256 << 20} forerun", "")


@pytest.mark.parametrize(
    ("variable", "value", "message"),
    [
        ("FORERUN_MEMORY", "much", 'ValueError: FORERUN_MEMORY: memory of much: "much" is not a size'),
        ("FORERUN_MEMORY", "1KiB", "ValueError: FORERUN_MEMORY: memory"),
        ("FORERUN_PRESET", "forrun", "ValueError: FORERUN_PRESET: "),
        ("FORERUN_LOG", "banana", 'ValueError: FORERUN_LOG of "banana": must be a level (error, warn'),
        ("FORERUN_LOG", "info,banana", 'ValueError: FORERUN_LOG of "info,banana": must be'),
        ("FORERUN_LOG", "forerun_io=loud", 'ValueError: FORERUN_LOG of "forerun_io=loud": must be'),
    ],
)
def test_a_variable_that_is_wrong_is_named_with_its_value(variable, value, message):
    assert run(SHOW, **{variable: value})[1].startswith(message)


@pytest.mark.parametrize("levels", ["error", "WARN", "off", "warn,forerun_io=debug", "forerun_io"])
def test_levels_of_messages_are_accepted(levels):
    assert run(SHOW, FORERUN_LOG=levels)[0] == f"{256 << 20} forerun"


def test_messages_of_the_engine_go_to_stderr_if_they_are_asked_for(path):
    code = f"import forerun; forerun.open({str(path)!r}).read(1)"
    ended = [
        subprocess.run(
            [sys.executable, "-c", code], env={**ENVIRONMENT, **log}, capture_output=True, check=True
        )
        for log in ({}, {"FORERUN_LOG": "trace"})
    ]
    assert ended[0].stderr == b""
    assert b"forerun_io" in ended[1].stderr


def test_the_version_is_that_of_the_workspace():
    manifest = Path(__file__).parents[2] / "Cargo.toml"
    version = tomllib.loads(manifest.read_text())["workspace"]["package"]["version"]
    assert forerun.__version__ == version
