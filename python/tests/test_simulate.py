"""The simulator: the command line's options and rows, methods of one's own, and refusals before the first run."""

import math
import random

import pytest

import forerun


def test_a_row_for_each_preset_and_cache_size_that_adds_up():
    workload = "sequential(file_bytes=1048576)"
    rows = forerun.simulate(workload=workload, preset=["none", "forerun"], cache_blocks=[640])
    assert [row["preset"] for row in rows] == ["none", "forerun"]
    for row in rows:
        assert row["reads"] == row["hits"] + row["late_hits"] + row["misses"] > 0
        assert row["elapsed_ns"] >= row["stall_ns"]


def test_hinted_methods_and_the_engine_run_the_same_trace(tmp_path):
    trace = tmp_path / "trace.csv"
    lines = [f"{(i * 7919) % 200 * 8192},8192" for i in range(500)]
    trace.write_text("offset,bytes\n" + "\n".join(lines) + "\n")
    presets = ["demand-lru", "forestall", "none"]
    rows = forerun.simulate(trace=trace, preset=presets, cache_blocks=[200], block_bytes=4096)
    assert len({row["reads"] for row in rows}) == 1
    assert rows[1]["elapsed_ns"] <= rows[0]["elapsed_ns"]


def test_equal_calls_have_equal_rows():
    call = {"workload": "sequential(file_bytes=10485760)", "preset": ["forerun"]}
    assert forerun.simulate(**call) == forerun.simulate(**call)


def shuffled(tmp_path, blocks, files):
    """Blocks in random order, each once: as numbers, or as a log of fio over files."""
    numbers = list(range(blocks))
    random.Random(5).shuffle(numbers)
    if files == 0:
        lines = [str(number) for number in numbers]
    else:
        lines = ["fio version 3 iolog"]
        lines += [f"0 f{number % files} read {number // files * 8192} 8192" for number in numbers]
    trace = tmp_path / f"shuffled{files}"
    trace.write_text("\n".join(lines) + "\n")
    return trace


@pytest.mark.parametrize(("files", "disks"), [(0, None), (2, None), (2, 1), (16, 1)])
@pytest.mark.parametrize("place", ["address", "packed"])
def test_no_preset_foresees_a_random_permutation(tmp_path, files, disks, place):
    trace = shuffled(tmp_path, 20_000, files)
    presets = ["none", "demand-lru", "linux-2.6.24", "cp", "forerun"]
    rows = forerun.simulate(
        trace=trace, preset=presets, cache_blocks=640, disks=disks, place=place
    )
    for row in rows:
        assert (row["place"], row["regions"], row["device"]) == (place, "concatenated", "hdd")
        hits = row["hits"] + row["late_hits"]
        assert hits <= 1.1 * 640 * math.log(20_000 / 640), row
        assert row["elapsed_ns"] >= 0.9 * rows[0]["elapsed_ns"], row


def test_the_order_of_first_use_is_refused_for_presets_that_prefetch(tmp_path):
    trace = shuffled(tmp_path, 2000, 0)
    rows = forerun.simulate(trace=trace, preset=["none", "forestall"], place="dense")
    assert {row["place"] for row in rows} == {"dense"}
    with pytest.raises(ValueError, match="order of first use"):
        forerun.simulate(trace=trace, preset=["forerun"], place="dense")


def test_responses_of_an_open_loop(tmp_path):
    trace = tmp_path / "log"
    lines = [f"{at * 20_000} f{at % 2} read {at * 7919 % 500 * 81920} 8192" for at in range(500)]
    trace.write_text("\n".join(["fio version 3 iolog", *lines]) + "\n")
    call = {"trace": trace, "preset": "none", "disks": 1, "cache_blocks": 1280}
    row = forerun.simulate(**call, loop="open", readers_by="file")[0]
    assert (row["loop"], row["readers_by"], row["saturated"]) == ("open", "device", False)
    assert 0 < row["response_p50_ns"] <= row["response_p99_ns"] <= row["response_max_ns"]
    row = forerun.simulate(**call, arrivals="10x")[0]
    assert row["saturated"] and row["response_p99_ns"] is None


def test_pandas_takes_the_rows():
    pandas = pytest.importorskip("pandas")
    rows = forerun.simulate(workload="sequential(file_bytes=1048576)", cache_blocks=[64, 128])
    frame = pandas.DataFrame(rows)
    assert list(frame["cache_blocks"]) == [64, 128, 64, 128]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "required arguments were not provided"),
        ({"workload": "a", "trace": __file__}, "cannot be used with"),
        ({"workload": "sequentia"}, "sequentia"),
        ({"workload": "sequential", "preset": ["forrun"]}, "forrun"),
        ({"workload": "sequential", "device": "hp9756"}, "hp9756"),
        ({"workload": "sequential", "cache_blocks": [0]}, "must be a whole number from 1"),
        ({"workload": "sequential", "cache_blocks": [-5]}, "must be a whole number from 1"),
        ({"workload": "sequential", "block_bytes": 0}, "must lie from 1 to"),
        ({"workload": "sequential", "disks": 0}, "must be a whole number from 1 to 1024"),
        ({"workload": "many-readers", "preset": ["forestall"]}, "plans for one reader"),
        ({"workload": "sequential", "place": "dence"}, "possible values: address, packed, dense"),
        ({"workload": "sequential", "regions": "x"}, "possible values: concatenated, striped"),
        ({"workload": "sequential", "loop": "x"}, "possible values: closed, open, paced"),
        ({"workload": "sequential", "readers_by": "x"}, "possible values: one, device, pid"),
        ({"workload": "sequential", "arrivals": "0x"}, "from 0.001x to 1000x"),
    ],
)
def test_values_that_cannot_be_used_are_named(arguments, message):
    with pytest.raises(ValueError) as raised:
        forerun.simulate(**arguments)
    assert message in str(raised.value)


def test_a_whole_number_with_a_point_is_that_number(tmp_path):
    trace = tmp_path / "trace.csv"
    trace.write_text("".join(f"{number},{number % 7}\n" for number in range(100)))
    call = {"trace": trace, "trace_format": "csv", "columns": "time-col=1,obj-id-col=2", "policy": "lru"}
    whole = forerun.count(**call, cache=[5, 1000000])
    assert forerun.count(**call, cache=[5.0, 1e6]) == whole


def test_a_trace_that_is_missing_is_an_error_of_the_system(tmp_path):
    trace, missing = tmp_path / "trace.csv", tmp_path / "missing"
    trace.write_text("0,1\n1,2\n")
    read = {"trace_format": "csv", "columns": "time-col=1,obj-id-col=2"}
    for call in (
        lambda: forerun.simulate(trace=missing),
        lambda: forerun.simulate(trace=trace, merge=[trace, missing], **read),
        lambda: forerun.count(trace=trace, merge=missing, **read),
    ):
        with pytest.raises(FileNotFoundError) as raised:
            call()
        assert raised.value.filename == str(missing)
    garbage = tmp_path / "garbage"
    garbage.write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="garbage"):
        forerun.simulate(trace=garbage)
