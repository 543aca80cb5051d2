"""Clients of object stores beside forerun, on `forerun-bed store`: a store behind a network.

    python bench/stores.py ../target/release/forerun-bed

Each run is a process of its own with a new client; clients take turns, and medians are printed.
Clients that are not installed are named and left out. Beside the clients a case has:

    large      one object in reads of 1 MiB, no setting of any client; the ceiling is 8 ranges at once
    16, 256    so many objects at once, one thread each, in 64 MiB: a client that has a size for each
               file gets its share, of which those with two blocks a file get half for a block
    random     200 reads of 16 KiB: how much is fetched for them, and how long one takes
    shuffled   samples of 128 KiB, each once an epoch, three epochs, memory a quarter of them

A run ends after --seconds-max; rates are then of the part that was read. `--first-byte`,
`--connection-rate` and `--rate` go to the store. Mounts need root or fusermount3.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time

MIB = 1 << 20
CEILING = "range requests"
MODULES = {"s3fs ": "s3fs", "forerun": "forerun", "obstore": "obstore"}
PEERS = [
    "s3fs readahead",
    "s3fs background",
    "s3fs adaptive",
    "obstore",
    "s3torchconnector",
    "rclone mount",
    "s3fs-fuse",
]
OURS = ["forerun", "forerun fsspec", "forerun mount"]
MOUNTS = {
    "rclone mount": "rclone",
    "s3fs-fuse": "s3fs",
    "forerun mount": "forerun",
    "forerun mount, unchanging": "forerun",
}
CASES = {
    "large": [CEILING, *PEERS, *OURS],
    "16": [*PEERS, *OURS],
    "256": [*PEERS, *OURS],
    "random": [CEILING, *PEERS, *OURS],
    "shuffled": [
        "s3fs adaptive",
        "forerun, LRU",
        "forerun",
        "forerun, announced",
        "forerun, announced 32 ahead",
    ],
}


def is_there(client, arguments):
    """Whether a client can run here."""
    if client.startswith("forerun mount"):
        return arguments.forerun is not None
    if client in MOUNTS:
        return shutil.which(MOUNTS[client]) is not None
    names = [module for begin, module in MODULES.items() if client.startswith(begin)]
    names += ["s3torchconnector"] if client == "s3torchconnector" else []
    names += ["s3fs"] if "fsspec" in client else []
    return all(importlib.util.find_spec(name) for name in names)


def environment():
    """That of all clients: none may look for credentials at an address outside of this machine."""
    kept = {name: value for name, value in os.environ.items() if name != "AWS_CA_BUNDLE"}
    return {
        **kept,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_DEFAULT_REGION": "us-east-1",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    }


def before_others():
    """Real-time priority, so that programs beside are not measured; below the store's."""
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(10))
    except PermissionError:
        pass


class Mounted:
    """A mount, for the time of one run."""

    def __init__(self, client, store, job, folder, forerun):
        address, each, memory = store.address, job["each"], job["memory"]
        environ = environment()
        self.mountpoint = tempfile.mkdtemp(dir=folder)
        passwords = os.path.join(folder, "passwords")
        with open(os.open(passwords, os.O_CREAT | os.O_WRONLY, 0o600), "w") as file:
            file.write("test:test")
        if client == "rclone mount":
            command = ["rclone", "mount", ":s3:bed", self.mountpoint, "--read-only", "--config", ""]
            command += ["--s3-provider", "Other", "--s3-endpoint", address, "--s3-region", "x"]
            command += ["--s3-access-key-id", "test", "--s3-secret-access-key", "test"]
            command += ["--buffer-size", f"{each}b"] if each else []
        elif client.startswith("forerun"):
            command = [forerun, "mount", "s3://bed", self.mountpoint, "--foreground"]
            command += ["--memory", f"{memory or 256 * MIB}B"]
            command += ["--unchanging"] if client.endswith("unchanging") else []
            environ |= {"AWS_ENDPOINT_URL": address, "FORERUN_RUNTIME_DIR": folder}
        else:
            command = ["s3fs", "bed", self.mountpoint, "-f", "-o", f"ro,url={address}"]
            command += ["-o", f"use_path_request_style,passwd_file={passwords}"]
        self.log = open(os.path.join(folder, "mount.log"), "w+")
        self.process = subprocess.Popen(
            command, stdout=self.log, stderr=self.log, env=environ, preexec_fn=before_others
        )
        for _ in range(1000):
            if os.path.ismount(self.mountpoint):
                return
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        self.log.seek(0)
        raise OSError(f"{client}: {self.log.read()}")

    def end(self):
        unmount = ["fusermount3", "-u"] if shutil.which("fusermount3") else ["umount"]
        subprocess.run([*unmount, self.mountpoint], check=False)
        try:
            self.process.wait(10)
        except subprocess.TimeoutExpired:
            self.process.terminate()
            self.process.wait()
        self.log.close()


class Store:
    """The store of all runs."""

    def __init__(self, arguments):
        large, samples = (int(size * arguments.scale) for size in (10**9, 4 << 30))
        some, many = (int(size * arguments.scale) for size in (100 * 10**6, 4 * 10**6))
        self.object_bytes = large
        self.sample_bytes = int(samples * arguments.sample_scale)
        groups = f"large=1x{large}B,some=16x{some}B,many=256x{many}B,samples=1x{samples}B"
        command = [arguments.bed, "store", "--objects", groups]
        for name in ("first_byte", "connection_rate", "rate", "fault"):
            if getattr(arguments, name):
                command += ["--" + name.replace("_", "-"), getattr(arguments, name)]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise SystemExit(self.process.wait())

    def end(self):
        self.process.send_signal(signal.SIGTERM)
        self.process.wait()


def run(store, case, client, arguments, folder):
    """One run: the line of JSON of `store_clients.py`, or None if it failed."""
    files = int(case) if case.isdigit() else None
    memory = 64 * MIB if files else store.sample_bytes // 4 if case == "shuffled" else None
    job = {
        "case": case,
        "client": client,
        "address": store.address,
        "memory": memory,
        "each": memory // files if files else None,
        "objects": files,
        "object_bytes": store.object_bytes,
        "sample_bytes": store.sample_bytes,
        "seconds_max": arguments.seconds_max,
        "seed": 1,
    }
    mounted = None
    if client in MOUNTS:
        try:
            mounted = Mounted(client, store, job, folder, arguments.forerun)
        except OSError as error:
            return print(error, file=sys.stderr)
        job |= {"mountpoint": mounted.mountpoint, "pids": [mounted.process.pid]}
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "store_clients.py")
    try:
        ended = subprocess.run(
            [sys.executable, program, json.dumps(job)],
            env=environment(),
            preexec_fn=before_others,
            capture_output=True,
            text=True,
            check=False,
            timeout=arguments.seconds_max * 3 + 60,
        )
    except subprocess.TimeoutExpired:
        return print(f"{case}, {client}: no end", file=sys.stderr)
    finally:
        if mounted:
            mounted.end()
    if ended.returncode != 0:
        why = ended.stderr.strip().splitlines()[-1:]
        return print(f"{case}, {client}: failed: {why}", file=sys.stderr)
    return json.loads(ended.stdout.splitlines()[-1])


def row(client, runs):
    """The medians of a client's runs as a row of the table."""

    def median(value):
        return statistics.median(value(run) for run in runs)

    latency = runs[0]["latency"] and median(lambda run: run["latency"]) * 1e3
    cells = [
        client,
        f"{median(lambda run: run['bytes'] / run['seconds']) / 1e6:.1f}",
        f"{min(run['bytes'] / run['seconds'] for run in runs) / 1e6:.1f} to "
        f"{max(run['bytes'] / run['seconds'] for run in runs) / 1e6:.1f}",
        f"{median(lambda run: run['fetched'] / run['bytes']):.2f}",
        f"{median(lambda run: run['requests']):.0f}",
        f"{median(lambda run: run['in_flight_most']):.0f}",
        f"{median(lambda run: run['grown']) / MIB:.0f}",
        f"{median(lambda run: run['processor'] / run['bytes']) * 1e9:.1f}",
        f"{latency:.1f}" if latency else "",
    ]
    return "| " + " | ".join(cells) + " |"


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bed", help="the binary forerun-bed")
    parser.add_argument("--forerun", help="the binary forerun, with object-store: for its mount")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--clients", help="only these, by their names, with semicolons")
    parser.add_argument("--runs", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="of the sizes of all objects")
    parser.add_argument("--sample-scale", type=float, default=1 / 64, help="of the 4 GiB of samples")
    parser.add_argument("--seconds-max", type=float, default=15.0)
    parser.add_argument("--first-byte")
    parser.add_argument("--connection-rate")
    parser.add_argument("--rate")
    parser.add_argument("--fault")
    parser.add_argument("--json", help="a file for all runs")
    return parser.parse_args()


def main():
    arguments = parsed()
    only = arguments.clients.split(";") if arguments.clients else None
    store, everything = Store(arguments), []
    try:
        with tempfile.TemporaryDirectory() as folder:
            for case in arguments.cases.split(","):
                clients = [name for name in CASES[case] if only is None or name in only]
                for name in [name for name in clients if not is_there(name, arguments)]:
                    print(f"{case}: {name} is not installed", file=sys.stderr)
                    clients.remove(name)
                runs = {name: [] for name in clients}
                for _ in range(arguments.runs):
                    for name in clients:
                        one = run(store, case, name, arguments, folder)
                        if one:
                            runs[name].append(one)
                            everything.append({"case": case, "client": name, **one})
                print(f"\n{case}\n\n| client | MB/s | least to most | fetched | requests | at once |", end="")
                print(" MiB grown | s a GB | ms a read |\n| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
                for name in clients:
                    print(row(name, runs[name]) if runs[name] else f"| {name} | failed |", flush=True)
    finally:
        store.end()
        if arguments.json:
            with open(arguments.json, "w") as file:
                json.dump(everything, file, indent=1)


if __name__ == "__main__":
    main()
