"""Sweeps on executors of the program's: rows are the command line's, and a lost worker loses a row."""

import json
import os
import signal
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context

import pytest

import forerun
from forerun import _forerun, _sweep
from test_own_methods import LRU, numbers

PLAN = """
workload = "sequential(file_bytes=1048576)"
preset = ["none", "forerun", "demand-lru"]
cache-blocks = [80, 128, 320, 640]
"""


@pytest.fixture
def plan(tmp_path):
    path = tmp_path / "plan.toml"
    path.write_text(PLAN)
    return path


def results(rows):
    """Rows by their keys, without the program that made them."""
    return {row["key"]: {k: v for k, v in row.items() if k != "program_sha256"} for row in rows}


def expected():
    """The rows of `simulate`, by preset and cache size."""
    call = {"workload": "sequential(file_bytes=1048576)", "cache_blocks": [80, 128, 320, 640]}
    return {
        (row["preset"], row["cache_blocks"]): row
        for row in forerun.simulate(preset=["none", "forerun", "demand-lru"], **call)
    }


def test_rows_are_those_of_simulate_and_are_written_as_they_end(tmp_path, plan):
    file = tmp_path / "rows.jsonl"
    rows = []
    for row in forerun.sweep(plan, rows=file):
        rows.append(row)
        assert json.loads(file.read_text().splitlines()[-1]) == row
    assert len(rows) == 12
    for row in rows:
        single = expected()[row["preset"], row["cache_blocks"]]
        assert {name: row[name] for name in single} == single
        assert row["version"] == forerun.__version__ and len(row["program_sha256"]) == 64
    assert list(forerun.sweep(plan, rows=file)) == []


def test_a_sweep_goes_on_where_it_was_left(tmp_path, plan):
    file = tmp_path / "rows.jsonl"
    with ThreadPoolExecutor(1) as pool:
        first = forerun.sweep(plan, rows=file, executor=pool)
        rows = [next(first) for _ in range(3)]
        with pytest.raises(ValueError, match="another sweep writes to it"):
            forerun.sweep(plan, rows=file)
        first.close()
    del first
    with file.open("a") as lines:
        lines.write('{"key": "half of a li')
    rows += forerun.sweep(plan, rows=file)
    assert len(rows) == len(results(rows)) == 12
    assert results(rows) == results(map(json.loads, file.read_text().splitlines()))


def test_shards_are_all_runs_each_once(plan):
    shards = [list(forerun.sweep(plan, shard=(part, 5))) for part in range(1, 6)]
    assert sorted(map(len, shards)) == [2, 2, 2, 3, 3]
    assert results(row for shard in shards for row in shard) == results(forerun.sweep(plan))
    for shard in ((0, 3), (4, 3)):
        with pytest.raises(ValueError, match="must be a part and the number of parts"):
            forerun.sweep(plan, shard=shard)


def test_processes_make_the_same_rows(plan):
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        assert results(forerun.sweep(plan, executor=pool)) == results(forerun.sweep(plan))


def test_a_killed_worker_costs_no_other_run(tmp_path, plan):
    file = tmp_path / "rows.jsonl"
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        sweep = forerun.sweep(plan, rows=file, executor=pool)
        rows = [next(sweep)]
        os.kill(next(iter(pool._processes)), signal.SIGKILL)
        rows += sweep
    rows += forerun.sweep(plan, rows=file)
    assert results(row for row in rows if "error" not in row) == results(forerun.sweep(plan))


class Deadly(LRU):
    """Kills its process."""

    def inserted(self, block):
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_run_that_kills_its_worker_has_the_row_that_says_so(tmp_path):
    trace = numbers(tmp_path, 1, count=3000)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'trace = "{trace}"\npreset = "none"\nreclaim = ["lru", "deadly", "own"]\ncache-blocks = [320, 640]\n'
    )
    methods = {"deadly": Deadly, "own": LRU}
    with ProcessPoolExecutor(4, mp_context=get_context("spawn")) as pool:
        rows = list(forerun.sweep(plan, executor=pool, methods=methods))
    lost = [row for row in rows if "error" in row]
    assert [row["reclaim"] for row in lost] == ["deadly", "deadly"]
    assert all("BrokenProcessPool" in row["error"] for row in lost)
    assert len(rows) == 6


def test_an_executor_that_is_made_anew_is_like_the_broken_one():
    broken = ProcessPoolExecutor(3, mp_context=get_context("spawn"), initializer=print, max_tasks_per_child=7)
    runs = _sweep._Runs(broken, "", {})
    runs.renew(broken)
    made = runs.executor
    assert made is not broken and made._mp_context.get_start_method() == "spawn"
    assert (made._max_workers, made._initializer, made._max_tasks_per_child) == (3, print, 7)


class Failing(LRU):
    def hit(self, block):
        raise ZeroDivisionError(block)


def test_methods_of_ones_own_have_rows_and_keys_of_their_own(tmp_path):
    trace = numbers(tmp_path, 1, count=3000)
    plan = tmp_path / "plan.toml"
    plan.write_text(
        f'trace = "{trace}"\npreset = "none"\nreclaim = ["lru", "own", "failing"]\ncache-blocks = 320\n'
    )
    rows = {row["reclaim"]: row for row in forerun.sweep(plan, methods={"own": LRU, "failing": Failing})}
    assert "ZeroDivisionError" in rows["failing"]["error"]
    call = {"trace": trace, "preset": "none", "cache_blocks": 320}
    assert rows["own"]["misses"] == forerun.simulate(**call, reclaim=LRU)[0]["misses"]
    assert rows["own"]["inputs"]["own"] != rows["failing"]["inputs"]["failing"]
    other = list(forerun.sweep(plan, methods={"own": Failing, "failing": Failing}))
    keys = {row["reclaim"]: row["key"] for row in other}
    assert keys["own"] != rows["own"]["key"] and keys["lru"] == rows["lru"]["key"]
    with pytest.raises(ValueError, match="line 3: .*no reclaim method"):
        forerun.sweep(plan)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('workload = "synth"\npresett = "none"\n', "line 2: presett: no flag"),
        ('workload = "synth"\npreset = "none"\ncache-blocks = [0]\n', "line 3: "),
        ('workload = "synth"\n', "no preset"),
    ],
)
def test_a_plan_with_a_mistake_is_refused_with_its_line(tmp_path, text, message):
    plan = tmp_path / "plan.toml"
    plan.write_text(text)
    rows = tmp_path / "rows.jsonl"
    with pytest.raises(ValueError, match=message):
        forerun.sweep(plan, rows=rows)
    assert not rows.exists()


def test_a_plan_that_is_missing_is_an_error_of_the_system(tmp_path):
    missing = tmp_path / "missing.toml"
    with pytest.raises(FileNotFoundError) as raised:
        forerun.sweep(missing, rows=tmp_path / "rows.jsonl")
    assert raised.value.filename == str(missing)
    assert not (tmp_path / "rows.jsonl").exists()


def test_a_worker_of_another_version_says_so(plan):
    stamp, cells = _forerun.planned(str(plan), _forerun.__file__, {})
    row = json.loads(_sweep.run("0.0.1", cells[0][1], stamp, {}))
    assert row["error"] == f"the worker has forerun {forerun.__version__}, the sweep 0.0.1"
    assert row["key"] == cells[0][0]


def test_a_client_of_dask_makes_the_same_rows_though_a_worker_is_killed(tmp_path):
    distributed = pytest.importorskip(
        "distributed", reason="dask.distributed is not installed; `make libraries` fetches it"
    )
    plan = tmp_path / "plan.toml"
    plan.write_text(PLAN.replace("1048576", "67108864"))
    rows = []
    with (
        distributed.LocalCluster(4, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster) as client,
    ):
        for row in forerun.sweep(plan, executor=client):
            if not rows:
                killed = next(iter(client.run(os.getpid).values()))
                os.kill(killed, signal.SIGKILL)
            rows.append(row)
    good = [row for row in rows if "error" not in row]
    assert len(rows) == 12 and len(good) >= 11
    assert results(good).items() <= results(forerun.sweep(plan)).items()
