"""What the Python layer costs: hits beside `os.preadv` on the page cache, threads, import, size.

Reads take turns, five times, and medians are printed, because machines are noisy and a comparison
within one run is not.

    python bench/hits.py [WHEEL]
"""

import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time

import forerun

FILE_BYTES = 16 << 20
PIECE = 64 << 10
READS = 20_000
TURNS = 5
PIECES = FILE_BYTES // PIECE


def microseconds_each(read):
    start = time.perf_counter()
    for number in range(READS):
        read(number % PIECES * PIECE)
    return (time.perf_counter() - start) / READS * 1e6


def of_threads(reads):
    """How many reads per second several threads make together."""
    threads = [threading.Thread(target=microseconds_each, args=(read,)) for read in reads]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return READS * len(reads) / (time.perf_counter() - start)


def import_milliseconds():
    code = "import time; s = time.perf_counter(); import forerun; print(time.perf_counter() - s)"
    return float(subprocess.check_output([sys.executable, "-c", code])) * 1e3


def main():
    with tempfile.NamedTemporaryFile() as data:
        data.write(os.urandom(FILE_BYTES))
        data.flush()
        engine = forerun.Engine(memory=4 * FILE_BYTES)
        descriptor = os.open(data.name, os.O_RDONLY)
        files = [forerun.open(data.name, engine=engine) for _ in range(2)]
        buffers = [bytearray(PIECE) for _ in files]

        def hit_by(number):
            file, buffer = files[number], buffers[number]
            return lambda offset: file.readinto_at(buffer, offset)

        def system_by(number):
            buffer = [buffers[number]]
            return lambda offset: os.preadv(descriptor, buffer, offset)

        for file in files:
            file.read()
        microseconds_each(system_by(0))
        hits, systems, over, scaling, system_scaling = [], [], [], [], []
        for _ in range(TURNS):
            hits.append(microseconds_each(hit_by(0)))
            systems.append(microseconds_each(system_by(0)))
            over.append(hits[-1] - systems[-1])
            scaling.append(of_threads([hit_by(0), hit_by(1)]) / of_threads([hit_by(0)]))
            one = of_threads([system_by(0)])
            system_scaling.append(of_threads([system_by(0), system_by(1)]) / one)
    imports = [import_milliseconds() for _ in range(TURNS)]
    for name, values, unit in (
        ("readinto of 64 KiB, resident", hits, "us"),
        ("preadv of 64 KiB, page cache", systems, "us"),
        ("readinto above preadv", over, "us"),
        ("two threads against one", scaling, "times"),
        ("two threads against one, preadv", system_scaling, "times"),
        ("import", imports, "ms"),
    ):
        least, most = min(values), max(values)
        print(f"{name:34}{statistics.median(values):8.2f} {unit} ({least:.2f} to {most:.2f})")
    for wheel in sys.argv[1:]:
        print(f"{'wheel':34}{os.path.getsize(wheel) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
