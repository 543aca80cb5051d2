"""A mounted folder of small objects, read by programs that know nothing of stores.

    python bench/walks.py ../target/release/forerun-bed --forerun ../target/release/forerun

The store is `forerun-bed store`: `--first-byte`, 80 MB/s a connection, 400 MB/s. Each run mounts anew; mounts take turns, and
medians of --runs are printed, as speed beside 64 parallel requests by hand. Programs:

    cp -r        the folder into memory (/dev/shm), which it lists first
    tar          the folder into a pipe, likewise
    8 threads    of one process that has listed the folder, the next object of the listing each
    8 cp         eight programs, an eighth of the listing each
    4 workers    processes as of a DataLoader: batches of 32 in the order of the listing, in turns
    shuffled     the same in an order drawn anew, which no reader can be ahead of

A run ends after --seconds-max, and its speed is then that of the part that was read. Mounts need root or fusermount3.
"""

import argparse
import http.client
import multiprocessing
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.parse
from concurrent.futures import ThreadPoolExecutor

import stores

CEILING = "by hand"
MOUNTS = [CEILING, "forerun mount", "rclone mount", "s3fs-fuse"]
BATCH = 32


class Store:
    """The store of all runs: one folder of objects of one size."""

    def __init__(self, arguments):
        command = [arguments.bed, "store", "--objects", f"d={arguments.objects}x{arguments.object_bytes}B"]
        command += ["--first-byte", arguments.first_byte]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise SystemExit(self.process.wait())
        self.keys = [f"d/{number:06}" for number in range(arguments.objects)]

    def end(self):
        self.process.terminate()
        self.process.wait()


def length(path):
    with open(path, "rb", buffering=0) as file:
        total = 0
        while part := file.read(128 << 10):
            total += len(part)
        return total


def by_hand(store, until):
    """The bytes of all objects by 64 connections that are kept."""
    host = urllib.parse.urlparse(store.address).netloc
    connections = [http.client.HTTPConnection(host) for _ in range(64)]

    def get(key):
        if time.monotonic() > until:
            return 0
        connection = connections.pop()
        connection.request("GET", f"/bed/{key}")
        body = connection.getresponse().read()
        connections.append(connection)
        return len(body)

    with ThreadPoolExecutor(64) as pool:
        return sum(pool.map(get, store.keys))


def with_threads(paths, until):
    def one(path):
        return length(path) if time.monotonic() < until else 0

    with ThreadPoolExecutor(8) as pool:
        return sum(pool.map(one, paths))


def with_workers(paths, until):
    batches = [paths[at : at + BATCH] for at in range(0, len(paths), BATCH)]
    with multiprocessing.Pool(4) as pool:
        parts = [pool.apply_async(batches_of, (batches[worker::4], until)) for worker in range(4)]
        return sum(part.get() for part in parts)


def batches_of(batches, until):
    return sum(length(path) for batch in batches for path in batch if time.monotonic() < until)


def shuffled(paths, until):
    return with_workers(random.Random(1).sample(paths, len(paths)), until)


def ended(processes, until):
    for process in processes:
        try:
            process.wait(max(until - time.monotonic(), 0))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def copied(commands, until):
    """Bytes that programs copied into memory, each into a folder of its own."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as target:
        ended([subprocess.Popen([*command, target]) for command in commands], until)
        files = (os.path.join(folder, name) for folder, _, names in os.walk(target) for name in names)
        return sum(os.stat(path).st_size for path in files)


def tar(paths, until):
    folder = os.path.dirname(paths[0])
    with subprocess.Popen(["tar", "-cf", "-", "-C", folder, "."], stdout=subprocess.PIPE) as process:
        total = 0
        while part := process.stdout.read(1 << 20):
            total += len(part)
            if time.monotonic() > until:
                process.kill()
                break
        return total


PROGRAMS = {
    "cp -r": lambda paths, until: copied([["cp", "-r", os.path.dirname(paths[0])]], until),
    "tar": tar,
    "8 threads": with_threads,
    "8 cp": lambda paths, until: copied([["cp", *paths[at :: 8]] for at in range(8)], until),
    "4 workers": with_workers,
    "shuffled": shuffled,
}


def rate(store, mount, program, arguments, folder):
    """Bytes a second of one run."""
    if mount == CEILING:
        began = time.monotonic()
        return by_hand(store, began + arguments.seconds_max) / (time.monotonic() - began)
    job = {"each": None, "memory": arguments.memory << 20}
    mounted = stores.Mounted(mount, store, job, folder, arguments.forerun)
    try:
        began = time.monotonic()
        if program not in ("cp -r", "tar"):
            os.listdir(f"{mounted.mountpoint}/d")
        paths = [f"{mounted.mountpoint}/{key}" for key in store.keys]
        total = PROGRAMS[program](paths, began + arguments.seconds_max)
        return total / (time.monotonic() - began)
    finally:
        mounted.end()


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bed", help="the binary forerun-bed")
    parser.add_argument("--forerun", help="the binary forerun, with object stores")
    parser.add_argument("--programs", default=",".join(PROGRAMS))
    parser.add_argument("--mounts", default=",".join(MOUNTS[1:]))
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--object-bytes", type=int, default=100_000)
    parser.add_argument("--memory", type=int, default=256, help="MiB, of forerun")
    parser.add_argument("--first-byte", default="30ms")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--seconds-max", type=float, default=20.0)
    return parser.parse_args()


def main():
    arguments = parsed()
    there = {"forerun mount": arguments.forerun, "rclone mount": shutil.which("rclone"), "s3fs-fuse": shutil.which("s3fs")}
    mounts = [CEILING] + [name for name in arguments.mounts.split(",") if there[name]]
    store = Store(arguments)
    stores.before_others()
    print(f"{arguments.objects} objects of {arguments.object_bytes} bytes, {arguments.first_byte}, "
          f"medians of {arguments.runs}: MB/s, then the part of the requests by hand\n")
    print("| program | " + " | ".join(mounts) + " |\n| --- |" + " --- |" * len(mounts))
    try:
        with tempfile.TemporaryDirectory() as folder:
            for program in arguments.programs.split(","):
                rates = {mount: [] for mount in mounts}
                for _ in range(arguments.runs):
                    for mount in mounts:
                        rates[mount].append(rate(store, mount, program, arguments, folder))
                medians = {mount: statistics.median(of) for mount, of in rates.items()}
                cells = [f"{medians[mount] / 1e6:.1f}, {medians[mount] / medians[CEILING]:.2f}" for mount in mounts]
                print(f"| {program} | " + " | ".join(cells) + " |", flush=True)
    finally:
        store.end()


if __name__ == "__main__":
    sys.exit(main())
