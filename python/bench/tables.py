"""Tables, lines and files of fsspec beside forerun, by the same one-line change, on `forerun-bed store`.

    python bench/tables.py ../target/release/forerun-bed

Each run is a process of its own, whose modules are imported before the clock starts; sides take turns, and medians are
printed, with the bytes and requests that the store counted. Programs that are not installed are left out by name. Four
Parquet files of 32 MB have ten row groups of three columns, 16 of 8 MB four and 64 of 2 MB one; the lines are 25 MB, the array has
1,000 chunks of 1 MB without compression, the HDF5 file 100 data sets of 250 kB.

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
# By folder: how many files, rows of each, row groups.
TABLES = {"": (FILES, 1_333_333, 10), "some/": (16, 333_333, 4), "many/": (64, 83_333, 1)}
CHUNKS, ROW = 1000, 1 << 17
SETS = 100
PANDAS = "import pandas"
DATASET = "import fsspec, pyarrow.dataset, pyarrow.fs"
PATHS = f'["bed/p%d.parquet" % i for i in range({FILES})]'
PLAIN = 'fsspec.filesystem("s3")'
OURS = 'fsspec.filesystem("forerun", target_protocol="s3")'
ARROW = "pyarrow.fs.S3FileSystem(endpoint_override=ADDRESS, scheme='http', force_virtual_addressing=False)"
SCAN = "pyarrow.dataset.dataset({paths}, filesystem={fs}).to_table({more})"
DUCK = 'import duckdb, fsspec\nconnection = duckdb.connect()\nconnection.register_filesystem({fs})'
QUERY = "connection.sql(\"select sum(a), max(c) from '{scheme}://bed/{files}p*.parquet'\").fetchall()"
FOLDER = "pyarrow.dataset.dataset({path}, filesystem={fs}).to_table()"
ARRAY = "zarr.open_array('{address}', mode='r')[{part}]"
HDF5 = "import fsspec, h5py"
SETS_OF = "with fsspec.open('{address}') as file, h5py.File(file) as sets: [sets[name][:] for name in sets]"
STREAM = "datasets.load_dataset('parquet', data_files='{address}', split='train', streaming=True)"
STREAMED = f"sum(len(part['a']) for part in {STREAM}.with_format('arrow').iter(100_000))"
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


def duck(files):
    """DuckDB over all tables of a folder."""
    sides = {"s3fs": (PLAIN, "s3"), "forerun": (OURS, "forerun")}
    found = {side: (DUCK.format(fs=fs), QUERY.format(scheme=scheme, files=files)) for side, (fs, scheme) in sides.items()}
    local = QUERY.format(scheme="", files=files).replace("://bed/", "")
    return found | {"local": (DUCK.format(fs=PLAIN), local)}


def by_address(setup, call, name, **more):
    """One call with the address of a file."""
    places = {"s3fs": f"s3://bed/{name}", "forerun": f"forerun::s3://bed/{name}", "local": name}
    return {side: (setup, call.format(address=address, **more)) for side, address in places.items()}


CASES = {
    "pandas.read_parquet, all columns": parquet(None),
    "pandas.read_parquet, one column of three": parquet(["c"]),
    "pyarrow.dataset, 4 files": scan(""),
    "pyarrow.dataset, 4 files, one column": scan('columns=["c"]'),
    "pyarrow.dataset, 64 files of a folder": {
        "s3fs": (DATASET, FOLDER.format(path="'bed/many/'", fs=PLAIN)),
        "pyarrow": (DATASET, FOLDER.format(path="'bed/many/'", fs=ARROW)),
        "forerun": (DATASET, FOLDER.format(path="'bed/many/'", fs=OURS)),
        "local": (DATASET, FOLDER.format(path="'many/'", fs=None)),
    },
    "DuckDB, 4 files, two columns": duck(""),
    "DuckDB, 16 files, two columns": duck("some/"),
    "lines of 25 MB": by_address("import fsspec", LINES, "lines.csv"),
    "pandas.read_csv, 25 MB": by_address(PANDAS, "pandas.read_csv('{address}')", "lines.csv"),
    "zarr, 1000 chunks of 1 MB": by_address("import zarr", ARRAY, "array.zarr", part=":"),
    "zarr, a slice of 50 chunks": by_address("import zarr", ARRAY, "array.zarr", part="400:450"),
    "HDF5, 100 data sets": by_address(HDF5, SETS_OF, "sets.h5"),
    "datasets, streaming of 4 files": {
        "s3fs": ("import datasets", STREAMED.format(address="s3://bed/p*.parquet")),
        "forerun": ("import datasets", STREAMED.format(address="forerun://bed/p*.parquet::s3://")),
        "local": ("import datasets", STREAMED.format(address="p*.parquet")),
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
    """Tables, lines, the array and the data sets."""
    import numpy
    import pyarrow
    import pyarrow.parquet
    import zarr

    draws = numpy.random.default_rng(1)
    path = os.path.join(folder, "array.zarr")
    array = zarr.create_array(path, shape=(CHUNKS, ROW), dtype="f8", chunks=(1, ROW), compressors=None)
    for first in range(0, CHUNKS, 50):
        array[first : first + 50] = draws.random((50, ROW))
    for below, (files, rows, groups) in TABLES.items():
        os.makedirs(os.path.join(folder, below), exist_ok=True)
        for number in range(files):
            columns = {name: draws.random(rows) for name in "abc"}
            path = os.path.join(folder, below, f"p{number}.parquet")
            made = pyarrow.table(columns)
            pyarrow.parquet.write_table(made, path, row_group_size=-(-rows // groups), use_dictionary=False, compression="none")
    if is_installed("h5py"):
        import h5py

        with h5py.File(os.path.join(folder, "sets.h5"), "w") as sets:
            for number in range(SETS):
                sets[f"set{number:03}"] = draws.random(31_250)
    with open(os.path.join(folder, "lines.csv"), "w") as file:
        file.write("a,b\n")
        file.writelines(f"{number},{number * 7919 % 99_991:012}\n" for number in range(1_250_000))


def is_installed(name):
    return importlib.util.find_spec(name) is not None


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
    if missing := [name for name in ("s3fs", "pandas", "pyarrow", "duckdb", "zarr") if not is_installed(name)]:
        raise SystemExit(f"not installed: {', '.join(missing)}")
    with tempfile.TemporaryDirectory() as folder:
        write_files(folder)
        stores = {True: Store(options.program, ["--files", folder], options, folder)}
        stores[False] = Store(options.program, ["--objects", OBJECTS], options)
        try:
            print("| work | side | s | least to most | MB fetched | requests | speed, of s3fs | of the ceiling |")
            print("| --- | --- | --- | --- | --- | --- | --- | --- |")
            for case, sides in CASES.items():
                needs = {"HDF5": "h5py", "datasets": "datasets"}.get(case.partition(",")[0])
                if needs and not is_installed(needs):
                    print(f"| {case} | {needs} is not installed | | | | | | |")
                elif any(part in case for part in parts):
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
