"""Clusters of processes on this machine: `dask.distributed`, of whose workers one is killed, and Ray."""

import os
import signal

import pytest

import forerun

PART = 64 << 10
PARTS = 48
MEMORY = "16MiB"


@pytest.fixture
def client(tmp_path):
    """Four worker processes, each with its memory from the environment."""
    distributed = pytest.importorskip("distributed", reason="dask.distributed is not installed; `make libraries` fetches it")
    options = {"processes": True, "threads_per_worker": 1, "dashboard_address": None, "host": "127.0.0.1"}
    options |= {"env": {"FORERUN_MEMORY": MEMORY}, "local_directory": str(tmp_path / "dask")}
    with distributed.LocalCluster(n_workers=4, **options) as cluster, distributed.Client(cluster) as client:
        yield client


def test_dask_goes_on_where_a_worker_is_killed_in_the_middle_of_a_read(client, path, content, tmp_path):
    marker = str(tmp_path / "killed")

    def read(path, number):
        with forerun.open(path) as file:
            forerun.default_engine().hint([(file, number * PART, PART), (file, 0, None)])
            first = file.pread(PART // 2, number * PART)
            if number == PARTS // 2 and not os.path.exists(marker):
                os.mkdir(marker)
                os.kill(os.getpid(), signal.SIGKILL)
            return first + file.pread(PART // 2, number * PART + PART // 2)

    before = client.run(os.getpid)
    assert len(before) == 4
    futures = [client.submit(read, str(path), number, pure=False) for number in range(PARTS)]
    # Of a hang the oldest read is told here.
    parts = [future.result(timeout=600) for future in futures]
    assert parts == [content[number * PART :][:PART] for number in range(PARTS)]
    assert os.path.exists(marker)
    client.wait_for_workers(4, timeout=600)
    after = client.run(os.getpid)
    assert len(set(before.values()) - set(after.values())) == 1
    # Also that of the worker which was started anew.
    memory = client.run(lambda: forerun.default_engine().memory)
    assert set(memory.values()) == {16 << 20}


def test_dask_reads_a_table_in_its_workers(client, tmp_path):
    frame = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    for number in range(4):
        table = pandas.DataFrame({"a": range(10_000), "b": [number] * 10_000})
        table.to_parquet(tmp_path / f"part{number}.parquet")
    read = frame.read_parquet(f"forerun::file://{tmp_path}/part*.parquet")
    total = read["b"].sum() + read["a"].max()
    assert client.compute(total).result(timeout=600) == (0 + 1 + 2 + 3) * 10_000 + 9_999
    reads = client.run(lambda: forerun.default_engine().ledger()["reads"])
    assert sum(reads.values()) > 0


def test_ray_reads_in_its_workers(path, content, tmp_path, monkeypatch):
    ray = pytest.importorskip("ray", reason="Ray is not installed; `make libraries` fetches it")
    # It leaves a token there.
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    variables = {"env_vars": {"FORERUN_MEMORY": MEMORY}}
    options = {"include_dashboard": False, "object_store_memory": 100 << 20, "log_to_driver": False}
    ray.init(num_cpus=2, runtime_env=variables, configure_logging=False, **options)
    try:

        @ray.remote
        def read(path, number):
            with forerun.open(path) as file:
                return file.pread(PART, number * PART), forerun.default_engine().memory

        parts = ray.get([read.remote(str(path), number) for number in range(PARTS)], timeout=600)
    finally:
        ray.shutdown()
    assert parts == [(content[number * PART :][:PART], 16 << 20) for number in range(PARTS)]
