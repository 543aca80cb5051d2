"""One run of one client on one case, for `stores.py`, which starts it in a process of its own.

A client is a function from the name of an object to a file with `read` and `seek`. Bytes at both
ends of every 32nd read are compared with those the store is made of. Printed is one line of JSON:
bytes and seconds of the readers, bytes and requests of the store, and how much the process, or the
daemon of a mount, grew.
"""

import http.client
import json
import os
import random
import sys
import threading
import time
import urllib.parse
import urllib.request

MIB = 1 << 20
BUCKET = "bed"


class Checked:
    """The objects' bytes, from the store's own noise."""

    def __init__(self, address):
        self.address = address
        self.noise = urllib.request.urlopen(f"{address}/-/noise").read()
        self.shifts = {}

    def shift(self, key):
        if key not in self.shifts:
            request = urllib.request.Request(f"{self.address}/{BUCKET}/{key}", method="HEAD")
            with urllib.request.urlopen(request) as answer:
                self.shifts[key] = int(answer.headers["x-amz-meta-shift"])
        return self.shifts[key]

    def bytes(self, key, offset, length):
        at = (self.shift(key) + offset) % len(self.noise)
        part = self.noise[at : at + length]
        return part + self.noise[: length - len(part)]

    def check(self, key, offset, part):
        for at in (0, max(len(part) - 64, 0)):
            wanted = self.bytes(key, offset + at, min(64, len(part)))
            if bytes(part[at : at + 64]) != wanted:
                raise SystemExit(f"wrong bytes of {key} at {offset + at}")


class Range:
    """Range requests over one connection, with no cache."""

    def __init__(self, address, key, offset=0):
        self.connection = http.client.HTTPConnection(urllib.parse.urlparse(address).netloc)
        self.path, self.offset = f"/{BUCKET}/{key}", offset

    def seek(self, offset):
        self.offset = offset

    def read(self, length):
        last = self.offset + length - 1
        self.connection.request("GET", self.path, headers={"Range": f"bytes={self.offset}-{last}"})
        part = self.connection.getresponse().read()
        self.offset += len(part)
        return part

    def close(self):
        self.connection.close()


def fsspec_client(job, cache, options, **more):
    import s3fs

    fs = s3fs.S3FileSystem(
        key="test", secret="test", endpoint_url=job["address"], skip_instance_cache=True
    )
    if cache == "forerun":
        import forerun.fsspec  # registers it
    each = job.get("each")
    if each and cache != "forerun":
        # Two blocks are held by these: one that is read, and one that is fetched.
        more["block_size"] = max(each // 2, 64 << 10)
        if cache == "adaptive":
            options = {**options, "max_prefetch_size": max(each, 128 << 10)}
    return lambda key: fs.open(
        f"{BUCKET}/{key}", cache_type=cache, cache_options=options, **more
    )


def client_of(job):
    """The function that opens an object, and the engine if there is one."""
    name, address, memory = job["client"], job["address"], job.get("memory")
    if name == "range requests":
        return lambda key: Range(address, key), None
    if "mountpoint" in job:
        return lambda key: open(f"{job['mountpoint']}/{key}", "rb", buffering=0), None
    if name.startswith("forerun"):
        import forerun

        preset = "linux-2.6.24" if "LRU" in name else "forerun"
        engine = forerun.Engine(memory or 256 * MIB, preset)
        if "fsspec" in name:
            return fsspec_client(job, "forerun", {"engine": engine}), engine
        return lambda key: forerun.open(f"{address}/{BUCKET}/{key}", engine=engine), engine
    if name.startswith("s3fs "):
        return fsspec_client(job, name.removeprefix("s3fs "), {}), None
    if name == "obstore":
        import obstore
        from obstore.store import S3Store

        store = S3Store(
            BUCKET,
            endpoint=address,
            access_key_id="test",
            secret_access_key="test",
            region="us-east-1",
            client_options={"allow_http": True},
            virtual_hosted_style_request=False,
        )
        buffer = {"buffer_size": job["each"]} if job.get("each") else {}
        if job["case"] in ("random", "shuffled"):
            return lambda key: Obstore(store, key), None
        return lambda key: obstore.open_reader(store, key, **buffer), None
    if name == "s3torchconnector":
        from s3torchconnector import S3ClientConfig, S3ReaderConstructor
        from s3torchconnector._s3client import S3Client

        client = S3Client(
            "us-east-1", endpoint=address, s3client_config=S3ClientConfig(force_path_style=True)
        )
        kind = {}
        if job["case"] in ("random", "shuffled"):
            kind = {"reader_constructor": S3ReaderConstructor.range_based(buffer_size=0)}
        return lambda key: client.get_object(BUCKET, key, **kind), None
    raise ValueError(f"{name}: no such client")


class Obstore:
    """Single ranges by obstore."""

    def __init__(self, store, key):
        self.store, self.key, self.offset = store, key, 0

    def seek(self, offset):
        self.offset = offset

    def read(self, length):
        import obstore

        part = obstore.get_range(self.store, self.key, start=self.offset, length=length)
        self.offset += len(part)
        return part

    def close(self):
        pass


def status(pid, name):
    with open(f"/proc/{pid}/status") as lines:
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith(name))


def processor_seconds(pid):
    """User and system time of a process."""
    with open(f"/proc/{pid}/stat") as line:
        fields = line.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


class Run:
    """The reads of one case."""

    def __init__(self, job):
        self.job = job
        self.checked = Checked(job["address"])
        self.opened, self.engine = client_of(job)
        self.until = float("inf")
        self.asked = 0
        self.latencies = []
        self.lock = threading.Lock()

    def sequential(self, key, piece, begin=0, end=None):
        file = self.opened(key)
        if begin:
            file.seek(begin)
        offset, number = begin, 0
        while end is None or offset < end:
            part = memoryview(file.read(piece))
            if not part:
                break
            if number % 32 == 0:
                self.checked.check(key, offset, part)
            number, offset = number + 1, offset + len(part)
            if time.perf_counter() > self.until:
                break
        file.close()
        with self.lock:
            self.asked += offset - begin

    def together(self, calls):
        threads = [threading.Thread(target=call) for call in calls]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def large(self):
        if self.job["client"] == "range requests":
            part = self.job["object_bytes"] // 8
            self.together(
                [lambda n=n: self.stream(n * part, (n + 1) * part) for n in range(8)]
            )
        else:
            self.sequential("large/000000", MIB)

    def stream(self, begin, end):
        connection = http.client.HTTPConnection(urllib.parse.urlparse(self.job["address"]).netloc)
        headers = {"Range": f"bytes={begin}-{end - 1}"}
        connection.request("GET", f"/{BUCKET}/large/000000", headers=headers)
        answer, buffer, done = connection.getresponse(), bytearray(MIB), 0
        while read := answer.readinto(buffer):
            done += read
        with self.lock:
            self.asked += done

    def objects(self, group, piece):
        keys = [f"{group}/{number:06}" for number in range(self.job["objects"])]
        self.together([lambda key=key: self.sequential(key, piece) for key in keys])

    def samples(self, order, length, key):
        file = self.opened(key)
        announcer = None
        name, _, ahead = self.job["client"].partition("announced")
        if name == "forerun, " and "announced" in self.job["client"]:
            from forerun.torch import Announcer

            options = {"ahead": int(ahead.split()[0])} if ahead else {}
            announcer = Announcer(
                self.engine, order, lambda n: (file, n * length, length), **options
            )
        for count, number in enumerate(order):
            if announcer:
                announcer.reading(number)
            began = time.perf_counter()
            file.seek(number * length)
            part = memoryview(file.read(length))
            while len(part) < length:
                more = file.read(length - len(part))
                part = memoryview(bytes(part) + bytes(more))
            self.latencies.append(time.perf_counter() - began)
            self.asked += len(part)
            if count % 32 == 0:
                self.checked.check(key, number * length, part)
            if began > self.until:
                break
        file.close()

    def run(self):
        case, job = self.job["case"], self.job
        draws = random.Random(job["seed"])
        key = "samples/000000" if case == "shuffled" else "large/000000"
        self.checked.shift(key)
        pids = job.get("pids") or [os.getpid()]
        counters = f"{job['address']}/-/counters"
        for pid in pids:
            with open(f"/proc/{pid}/clear_refs", "w") as reset:
                reset.write("5")
        resident = sum(status(pid, "VmRSS") for pid in pids)
        busy = {pid: processor_seconds(pid) for pid in {os.getpid(), *pids}}
        before = json.load(urllib.request.urlopen(counters))
        began = time.perf_counter()
        self.until = began + job["seconds_max"]
        if case == "large":
            self.large()
        elif case in ("16", "256"):
            self.objects({"16": "some", "256": "many"}[case], 256 << 10 if case == "16" else 64 << 10)
        elif case == "random":
            places = job["object_bytes"] // (16 << 10)
            self.samples([draws.randrange(places) for _ in range(200)], 16 << 10, key)
        else:
            places, order = job["sample_bytes"] // (128 << 10), []
            for _ in range(3):
                order += draws.sample(range(places), places)
            self.samples(order, 128 << 10, key)
        seconds = time.perf_counter() - began
        after = json.load(urllib.request.urlopen(counters))
        latencies = sorted(self.latencies)
        return {
            "bytes": self.asked,
            "seconds": seconds,
            "fetched": after["body_bytes"] - before["body_bytes"],
            "requests": after["requests"] - before["requests"],
            "in_flight_most": after["in_flight_most"],
            "late_ns": after["late_ns"] - before["late_ns"],
            "grown": sum(status(pid, "VmHWM") for pid in pids) - resident,
            "processor": sum(processor_seconds(pid) - before for pid, before in busy.items()),
            "latency": sum(latencies) / len(latencies) if latencies else None,
            "ledger": self.engine.ledger() if self.engine else None,
        }


if __name__ == "__main__":
    print(json.dumps(Run(json.loads(sys.argv[1])).run()))
    sys.stdout.flush()
    # Threads of some clients outlive their use.
    os._exit(0)
