"""Costs of the Python layer: hits beside `os.preadv` on the page cache, threads, import, size.

Reads take turns, five times, and medians are printed, because machines are noisy and a comparison
within one run is not. Threads are compared by elapsed time, which needs an idle machine of two or
more processors; everything else by processor time.

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
LARGE = 1 << 20
BYTES = 1 << 30
TURNS = 5


def microseconds_each(read, piece=PIECE):
    reads = BYTES // piece
    # Processor time: nothing here waits, and other programs do not count.
    start = time.thread_time()
    for number in range(reads):
        read(number * piece % FILE_BYTES)
    return (time.thread_time() - start) / reads * 1e6


def seconds(reads, piece):
    """How long it takes that each of several threads reads everything."""
    threads = [threading.Thread(target=microseconds_each, args=(read, piece)) for read in reads]
    start = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return time.perf_counter() - start


def scaling(reader, piece):
    """How many times as much two threads read in a time as one does."""
    one = seconds([reader(0, piece)], piece)
    return 2 * one / seconds([reader(0, piece), reader(1, piece)], piece)


def import_milliseconds():
    code = "import time; s = time.process_time(); import forerun; print(time.process_time() - s)"
    return float(subprocess.check_output([sys.executable, "-c", code])) * 1e3


def main():
    with tempfile.NamedTemporaryFile() as data:
        data.write(os.urandom(FILE_BYTES))
        data.flush()
        engine = forerun.Engine(memory=4 * FILE_BYTES)
        descriptor = os.open(data.name, os.O_RDONLY)
        files = [forerun.open(data.name, engine=engine) for _ in range(2)]

        def hits_by(number, piece):
            file, buffer = files[number], bytearray(piece)
            return lambda offset: file.readinto_at(buffer, offset)

        def system_by(_number, piece):
            buffers = [bytearray(piece)]
            return lambda offset: os.preadv(descriptor, buffers, offset)

        for file in files:
            file.read()
        microseconds_each(system_by(0, PIECE))
        hits, systems, over = [], [], []
        ratios = {(name, piece): [] for name in ("hits", "preadv") for piece in (PIECE, LARGE)}
        for _ in range(TURNS):
            hits.append(microseconds_each(hits_by(0, PIECE)))
            systems.append(microseconds_each(system_by(0, PIECE)))
            over.append(hits[-1] - systems[-1])
            for (name, piece), values in ratios.items():
                values.append(scaling(hits_by if name == "hits" else system_by, piece))
    imports = [import_milliseconds() for _ in range(TURNS)]
    for name, values, unit in (
        ("readinto of 64 KiB, resident", hits, "us"),
        ("preadv of 64 KiB, page cache", systems, "us"),
        ("readinto above preadv", over, "us"),
        *(
            (f"two threads against one, {name}, {piece >> 10} KiB", values, "times")
            for (name, piece), values in ratios.items()
        ),
        ("import", imports, "ms"),
    ):
        least, most = min(values), max(values)
        print(f"{name:44}{statistics.median(values):8.2f} {unit} ({least:.2f} to {most:.2f})")
    for wheel in sys.argv[1:]:
        print(f"{'wheel':44}{os.path.getsize(wheel) / 1e6:8.2f} MB")


if __name__ == "__main__":
    main()
