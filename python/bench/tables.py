"""Tables, lines and files of fsspec beside forerun, by the same one-line change, on `forerun-bed store`.

    python bench/tables.py ../target/release/forerun-bed

Each run is a process of its own, whose modules are imported before the clock starts; sides take turns, and medians are
printed, with the bytes and requests that the store counted. Sides that are not installed are left out by name. Four
Parquet files of 32 MB have ten row groups of three columns; the lines are 25 MB, the array 210 MB without compression.

No side of fsspec can be sooner than the ceiling, of the bytes that forerun fetched:

    making of the client of s3fs + max(the same work on local files, first byte + bytes / rate of the store)
"""

import argparse
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request

from stores import before_others, environment

FILES = 4
PANDAS = "import pandas"
DATASET = "import fsspec, pyarrow.dataset, pyarrow.fs"
PATHS = f'["bed/p%d.parquet" % i for i in range({FILES})]'
PLAIN = 'fsspec.filesystem("s3")'
OURS = 'fsspec.filesystem("forerun", target_protocol="s3")'
ARROW = "pyarrow.fs.S3FileSystem(endpoint_override=ADDRESS, scheme='http', force_virtual_addressing=False)"
SCAN = "pyarrow.dataset.dataset({paths}, filesystem={fs}).to_table({more})"
DUCK = 'import duckdb, fsspec\nconnection = duckdb.connect()\nconnection.register_filesystem({fs})'
QUERY = "connection.sql(\"select sum(a), max(c) from '{scheme}://bed/p*.parquet'\").fetchall()"
LINES = "sum(1 for _ in fsspec.open('{address}', 'rt').open())"
THREADS = """
import fsspec, threading
def read(number):
    with fs.open(f"bed/{name}/{{number:06}}"{cache}) as file:
        while file.read({piece}): pass
def all_of_them():
    threads = [threading.Thread(target=read, args=(n,)) for n in range({count})]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
fs = fsspec.filesystem("s3")
"""


CLIENT = ("import fsspec", PLAIN + ".connect()")


def threads(name, count, piece):
    """Objects at once, a thread each."""
    text = dict(name=name, count=count, piece=piece)
    return {
        "s3fs": (THREADS.format(cache="", **text), "all_of_them()"),
        "forerun": (THREADS.format(cache=', cache_type="forerun"', **text), "all_of_them()"),
    }


def parquet(columns):
    """pandas by address. Without options it takes the S3 client of pyarrow, which is no side of fsspec."""
    read = "pandas.read_parquet('{address}'{more}" + (f", columns={columns})" if columns else ")")
    return {
        "s3fs": (PANDAS, read.format(address="s3://bed/p0.parquet", more=", storage_options={'anon': False}")),
        "pyarrow": (PANDAS, read.format(address="s3://bed/p0.parquet", more="")),
        "forerun": (PANDAS, read.format(address="forerun::s3://bed/p0.parquet", more="")),
        "local": (PANDAS, read.format(address="p0.parquet", more="")),
    }


def scan(more):
    """A dataset of four files."""
    sides = {"s3fs": PLAIN, "pyarrow": ARROW, "forerun": OURS}
    found = {side: (DATASET, SCAN.format(paths=PATHS, fs=fs, more=more)) for side, fs in sides.items()}
    return found | {"local": (DATASET, SCAN.format(paths=PATHS.replace("bed/", ""), fs=None, more=more))}


CASES = {
    "pandas.read_parquet, all columns": parquet(None),
    "pandas.read_parquet, one column of three": parquet(["c"]),
    "pyarrow.dataset, 4 files": scan(""),
    "pyarrow.dataset, 4 files, one column": scan('columns=["c"]'),
    "DuckDB, 4 files, two columns": {
        "s3fs": (DUCK.format(fs=PLAIN), QUERY.format(scheme="s3")),
        "forerun": (DUCK.format(fs=OURS), QUERY.format(scheme="forerun")),
        "local": (DUCK.format(fs=PLAIN), QUERY.format(scheme="").replace("://bed/", "")),
    },
    "lines of 25 MB": {
        "s3fs": ("import fsspec", LINES.format(address="s3://bed/lines.csv")),
        "forerun": ("import fsspec", LINES.format(address="forerun::s3://bed/lines.csv")),
        "local": ("import fsspec", LINES.format(address="lines.csv")),
    },
    "pandas.read_csv, 25 MB": {
        "s3fs": (PANDAS, "pandas.read_csv('s3://bed/lines.csv')"),
        "forerun": (PANDAS, "pandas.read_csv('forerun::s3://bed/lines.csv')"),
        "local": (PANDAS, "pandas.read_csv('lines.csv')"),
    },
    "zarr, 200 chunks of 1 MB": {
        "s3fs": ("import zarr", "zarr.open_array('s3://bed/array.zarr', mode='r')[:]"),
        "forerun": ("import zarr", "zarr.open_array('forerun::s3://bed/array.zarr', mode='r')[:]"),
        "local": ("import zarr", "zarr.open_array('array.zarr', mode='r')[:]"),
    },
    "cat of 64 objects of 1 MB": {
        "s3fs": ("import fsspec", PLAIN + ".cat(['bed/many/%06d' % i for i in range(64)])"),
        "forerun": ("import fsspec", OURS + ".cat(['bed/many/%06d' % i for i in range(64)])"),
    },
    "cat_ranges, 100 of 64 kB": {
        "s3fs": ("import fsspec", PLAIN + ".cat_ranges(*RANGES)"),
        "forerun": ("import fsspec", OURS + ".cat_ranges(*RANGES)"),
    },
    "cache_type, 1 object of 200 MB": threads("one", 1, 1 << 20),
    "cache_type, 16 objects of 16 MB": threads("some", 16, 256 << 10),
    "cache_type, 256 objects of 1 MB": threads("many", 256, 64 << 10),
}
OBJECTS = "one=1x200MB,some=16x16MB,many=256x1MB"
RANGES = "RANGES = (['bed/one/000000'] * 100, [i * 2_000_000 for i in range(100)], [i * 2_000_000 + 65_536 for i in range(100)])"


def write_files(folder):
    """The Parquet files, the lines and the array."""
    import numpy
    import pyarrow
    import pyarrow.parquet
    import zarr

    draws = numpy.random.default_rng(1)
    path, shape = os.path.join(folder, "array.zarr"), (200, 1 << 17)
    array = zarr.create_array(path, shape=shape, dtype="f8", chunks=(1, 1 << 17), compressors=None)
    array[:] = draws.random(shape)
    rows = 1_333_333
    for number in range(FILES):
        columns = {name: draws.random(rows) for name in "abc"}
        path = os.path.join(folder, f"p{number}.parquet")
        group = -(-rows // 10)
        pyarrow.parquet.write_table(pyarrow.table(columns), path, row_group_size=group, use_dictionary=False, compression="none")
    with open(os.path.join(folder, "lines.csv"), "w") as file:
        file.write("a,b\n")
        file.writelines(f"{number},{number * 7919 % 99_991:012}\n" for number in range(1_250_000))


class Store:
    """A running store, and the folder of its files."""

    def __init__(self, program, arguments, options, folder=None):
        self.folder, self.first_byte, self.rate = folder, number(options.first_byte, "ms") / 1e3, number(options.rate, "MB") * 1e6
        command = [program, "store", "--first-byte", options.first_byte, "--connection-rate", options.connection_rate]
        command += ["--rate", options.rate, *arguments]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().split()[-1]

    def counters(self):
        return json.load(urllib.request.urlopen(f"{self.address}/-/counters"))


def number(text, unit):
    """A number with its unit."""
    if not text.endswith(unit):
        raise SystemExit(f"{text}: must be a number and {unit}")
    return float(text.removesuffix(unit))


def run(side, store):
    """Seconds, bytes and requests of one run."""
    setup, call = side
    code = (
        f"import json, time, forerun, forerun.fsspec, s3fs\nADDRESS = {store.address.split('//')[1]!r}\n{RANGES}\n{setup}\n"
        f"begun = time.perf_counter()\n{call}\nprint(time.perf_counter() - begun)\nimport sys, os\nsys.stdout.flush()\nos._exit(0)"
    )
    address = {"AWS_ENDPOINT_URL": store.address, "AWS_REGION": "us-east-1", "PYTHONWARNINGS": "ignore"}
    before = store.counters()
    ended = subprocess.run(
        [sys.executable, "-c", code], env={**environment(), **address}, capture_output=True, text=True, preexec_fn=before_others,
        cwd=store.folder,
    )
    if ended.returncode:
        raise SystemExit(ended.stderr)
    after = store.counters()
    counted = (after[name] - before[name] for name in ("body_bytes", "requests"))
    return float(ended.stdout.split()[-1]), *counted


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", help="forerun-bed")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--cases", default="", help="those whose names have one of these parts, with commas between")
    parser.add_argument("--first-byte", default="30ms")
    parser.add_argument("--connection-rate", default="80MB")
    parser.add_argument("--rate", default="400MB")
    options = parser.parse_args()
    parts = [part.strip() for part in options.cases.split(",")]
    if missing := [name for name in ("s3fs", "pandas", "pyarrow", "duckdb", "zarr") if not importlib.util.find_spec(name)]:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        stores = {True: Store(options.program, ["--files", folder], options, folder)}
        stores[False] = Store(options.program, ["--objects", OBJECTS], options)
        try:
            print("| work | side | s | least to most | MB fetched | requests | speed, of s3fs | of the ceiling |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |")
            for case, sides in CASES.items():
                if any(part in case for part in parts):
                    is_of_files = not case.startswith(("cat", "cache_type"))
                    table(case, sides, stores[is_of_files], options.runs)
        finally:
            for store in stores.values():
                store.process.terminate()


def table(case, sides, store, runs):
    """The rows of a case."""
    sides = {"client": CLIENT, "local": ("pass", "pass"), **sides}
    results = {side: [] for side in sides}
    for _ in range(runs):
        for side in sides:
            results[side].append(run(sides[side], store))
    theirs = statistics.median(seconds for seconds, _, _ in results["s3fs"])
    client, local = (statistics.median(seconds for seconds, _, _ in results.pop(part)) for part in ("client", "local"))
    transfer = store.first_byte + statistics.median(fetched for _, fetched, _ in results["forerun"]) / store.rate
    ceiling = client + max(local, transfer)
    print(f"| {case} | ceiling | {ceiling:.3f} | | | | {theirs / ceiling:.2f} | {client:.3f} + max({local:.3f}, {transfer:.3f}) |")
    for side, rows in results.items():
        seconds, fetched, requests = (sorted(column) for column in zip(*rows))
        median = statistics.median(seconds)
        figures = [f"{median:.3f}", f"{seconds[0]:.3f} to {seconds[-1]:.3f}", f"{statistics.median(fetched) / 1e6:.1f}"]
        figures += [f"{statistics.median(requests):.0f}", f"{theirs / median:.2f}", f"{ceiling / median:.2f}"]
        print(f"| {case} | {side} | {' | '.join(figures)} |", flush=True)


if __name__ == "__main__":
    main()
