"""A folder of small objects, shuffled: one epoch of samples, by each way of reading them.

    python bench/folder.py ../target/release/forerun-bed --objects 5000 --workers 4

The store is `forerun-bed store`: 30 ms to the first byte, 80 MB/s a connection, 400 MB/s. Objects have 20 to 200 kB. Ways
take turns, each in processes of its own, and medians of --turns are printed. Beside forerun's loader:

    forerun           objects that were listed once: `forerun.torch.Folder` of a prefix
    by addresses      the same, and the store is asked for each object before it is read
    s3fs in order     `cat_file` of one object after the other, in each worker
    by hand           64 requests at once in all workers together, as one connection each that is kept

An epoch ends after --seconds-max; rates are of the part that was read. Bytes are those that the store sent.
"""

import argparse
import http.client
import json
import os
import random
import statistics
import subprocess
import sys
import time
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

BUCKET = "bed"
SETTINGS = {
    "AWS_ACCESS_KEY_ID": "test",
    "AWS_SECRET_ACCESS_KEY": "test",
    "AWS_REGION": "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
}


def sizes(count):
    """Ten sizes from 20 to 200 kB."""
    return [20_000 + 20_000 * number for number in range(10)], count // 10


class Store:
    def __init__(self, bed, count, options):
        each, number = sizes(count)
        groups = ",".join(f"s{size}={number}x{size}B" for size in each)
        command = [bed, "store", "--bucket", BUCKET, "--objects", groups, *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        self.keys = [f"s{size}/{n:06}" for size in each for n in range(number)]

    def counters(self):
        return json.load(urllib.request.urlopen(f"{self.address}/-/counters"))

    def end(self):
        self.process.terminate()
        self.process.wait()


class Folder:
    def __init__(self, keys, engine):
        self.paths, self.engine = [f"s3://{BUCKET}/{key}" for key in keys], engine

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        import forerun

        with forerun.open(self.paths[index], engine=self.engine) as file:
            return len(file.read())

    def locate(self, index):
        return self.paths[index], 0, None


def by_forerun(job, is_listed=True):
    import forerun
    import forerun.torch

    engine = forerun.Engine(memory=job["memory"] // job["workers"])
    dataset = Folder(job["keys"], engine)
    if is_listed:
        dataset.paths = forerun.listed(f"s3://{BUCKET}", engine=engine)
    plan = forerun.torch.Plan(len(dataset), seed=1, batch_size=32)
    worker = job["worker"], job["workers"]
    yield 0
    hinted = forerun.torch.HintedDataset(
        dataset, plan, dataset.locate, engine=engine, worker=lambda: worker
    )
    for epoch in range(job["epochs"]):
        hinted.epoch = epoch
        for index in plan.order_of_worker(epoch, *worker):
            yield hinted[index]
    job["ledger"] = {k: v for k, v in engine.ledger().items() if v}


def by_s3fs(job):
    import s3fs

    fs = s3fs.S3FileSystem()
    yield 0
    for key in mine(job):
        yield len(fs.cat_file(f"{BUCKET}/{key}"))


def by_hand(job):
    host = urllib.parse.urlparse(job["address"]).netloc
    most = 64 // job["workers"]
    connections = [http.client.HTTPConnection(host) for _ in range(most)]

    def get(key):
        connection = connections.pop()
        connection.request("GET", f"/{BUCKET}/{key}")
        body = connection.getresponse().read()
        connections.append(connection)
        return len(body)

    yield 0
    with ThreadPoolExecutor(most) as pool:
        yield from pool.map(get, mine(job))


def mine(job):
    order = list(job["keys"])
    for epoch in range(job["epochs"]):
        random.Random(epoch).shuffle(order)
        yield from order[job["worker"] :: job["workers"]]


def by_addresses(job):
    return by_forerun(job, is_listed=False)


WAYS = {"forerun": by_forerun, "by addresses": by_addresses, "s3fs in order": by_s3fs, "by hand": by_hand}


def work(job):
    samples = total = 0
    ways = WAYS[job["way"]](job)
    # What it imports is not measured.
    next(ways)
    began, until = time.monotonic(), time.monotonic() + job["seconds_max"]
    marks = []
    for length in ways:
        samples, total = samples + 1, total + length
        if samples % (len(job["keys"]) // job["workers"]) == 0:
            marks.append(time.monotonic() - began)
        if time.monotonic() > until:
            break
    seconds = time.monotonic() - began
    processor = time.process_time()
    print(json.dumps({"samples": samples, "bytes": total, "seconds": seconds, "epochs": marks,
                      "processor": processor, "ledger": job.get("ledger")}), flush=True)
    os._exit(0)


def run(way, store, arguments):
    environ = {**os.environ, **SETTINGS, "AWS_ENDPOINT_URL": store.address}
    before = store.counters()
    workers = []
    for worker in range(arguments.workers):
        job = {"way": way, "worker": worker, "workers": arguments.workers, "keys": store.keys,
               "address": store.address, "epochs": arguments.epochs, "memory": arguments.memory << 20,
               "seconds_max": arguments.seconds_max}
        process = subprocess.Popen([sys.executable, __file__, "--job"], env=environ, text=True,
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.stdin.write(json.dumps(job))
        workers.append(process)
    # All at once, when all have started.
    for process in workers:
        process.stdin.close()
    ended = [json.loads(process.stdout.read()) for process in workers]
    after = store.counters()
    seconds = max(one["seconds"] for one in ended)
    return {
        "rate": sum(one["samples"] / one["seconds"] for one in ended),
        "seconds": seconds,
        "processor": sum(one["processor"] for one in ended),
        "fetched": (after["body_bytes"] - before["body_bytes"]) / max(sum(one["bytes"] for one in ended), 1),
        "requests": (after["requests"] - before["requests"]) / max(sum(one["samples"] for one in ended), 1),
        "in_flight": after["in_flight_most"],
        "epochs": [round(max(one["epochs"][epoch] for one in ended), 2)
                   for epoch in range(min(len(one["epochs"]) for one in ended))],
        "ledger": ended[0]["ledger"],
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("bed")
    parser.add_argument("--objects", type=int, default=5000)
    parser.add_argument("--workers", type=int, default=4)
    parser.add_argument("--memory", type=int, default=256, help="MiB of all engines together")
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--seconds-max", type=float, default=30)
    parser.add_argument("--ways", default=",".join(WAYS))
    parser.add_argument("--store", nargs="*", default=[], help="options of the store")
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    store = Store(arguments.bed, arguments.objects, arguments.store)
    try:
        results = {way: [] for way in arguments.ways.split(",")}
        for _ in range(arguments.turns):
            for way, rows in results.items():
                rows.append(run(way, store, arguments))
                if arguments.verbose:
                    print(way, rows[-1], flush=True)
        for way, rows in results.items():
            median = {name: statistics.median(row[name] for row in rows)
                      for name in ("rate", "fetched", "requests", "processor")}
            low, high = min(row["rate"] for row in rows), max(row["rate"] for row in rows)
            print(f"{way:14} {median['rate']:7.0f} samples/s ({low:.0f} to {high:.0f}), "
                  f"{median['requests']:.2f} requests and {median['fetched']:.2f} times the bytes a sample, "
                  f"{median['processor']:.1f} s of processor time")
    finally:
        store.end()


if __name__ == "__main__":
    if sys.argv[1:] == ["--job"]:
        work(json.load(sys.stdin))
    main()
