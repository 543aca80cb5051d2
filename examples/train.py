"""Training on shuffled samples of a slow server, with the order announced and without.

    pip install ./python && python examples/train.py

A server on this machine keeps its readers waiting for 10 ms before each range, as one far away
would. 256 samples of 128 KiB, in an order drawn anew for each of three epochs, pass through memory
for a quarter of them. The model is a logistic regression on 16 numbers a sample, so that its time is
spent waiting. All sides see the same samples in the same order, and end with the same weights.

With torch, `forerun.torch.data_loader` is the same in one call, with workers.
"""

import argparse
import math
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import forerun
import forerun.torch

SAMPLE = 128 << 10
FEATURES = 16


def sample(index):
    """Its bytes; the first is its class, which the 16 behind it tell with some noise."""
    kind = index % 2
    noise = [(index * 37 + place * 101) % 64 for place in range(FEATURES)]
    head = bytes([kind, *(96 * kind + 16 + value for value in noise)])
    return head + bytes([index % 251]) * (SAMPLE - len(head))


class Server(ThreadingHTTPServer):
    """All samples as one object, behind a delay."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, samples, delay):
        super().__init__(("127.0.0.1", 0), Handler)
        self.content = b"".join(sample(index) for index in range(samples))
        self.delay = delay
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def handle_error(self, *_):
        """A connection that its client is done with."""

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/samples"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):
        first, last = self.headers["Range"].removeprefix("bytes=").split("-")
        body = self.server.content[int(first) : int(last) + 1]
        time.sleep(self.server.delay)
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        end = int(first) + len(body) - 1
        self.send_header("Content-Range", f"bytes {first}-{end}/{len(self.server.content)}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Requests:
    """A sample is a request."""

    def __init__(self, url, samples):
        self.url, self.samples = url, samples

    def __len__(self):
        return self.samples

    def __getitem__(self, index):
        span = f"bytes={index * SAMPLE}-{(index + 1) * SAMPLE - 1}"
        with urllib.request.urlopen(urllib.request.Request(self.url, headers={"Range": span})) as got:
            return got.read()


class Samples:
    """A sample is a place of a file of forerun."""

    def __init__(self, file):
        self.file = file

    def __len__(self):
        return self.file.seek(0, 2) // SAMPLE

    def __getitem__(self, index):
        return self.file.pread(SAMPLE, index * SAMPLE)

    def locate(self, index):
        return self.file, index * SAMPLE, SAMPLE


class Model:
    """A logistic regression, by stochastic gradient descent."""

    def __init__(self):
        self.weights = [0.0] * (FEATURES + 1)

    def learn(self, data):
        inputs = [1.0, *((value - 96) / 96 for value in data[1 : FEATURES + 1])]
        given = sum(w * x for w, x in zip(self.weights, inputs))
        error = data[0] - 1 / (1 + math.exp(-given))
        self.weights = [w + 0.1 * error * x for w, x in zip(self.weights, inputs)]
        return abs(error)


def train(dataset, plan, epochs):
    """The model, its mean error in the last epoch, and how long it took."""
    model, begun, error = Model(), time.perf_counter(), 0.0
    for epoch in range(epochs):
        if isinstance(dataset, forerun.torch.HintedDataset):
            dataset.epoch = epoch
        error = sum(model.learn(dataset[index]) for index in plan.order(epoch)) / len(plan)
    return model, error, time.perf_counter() - begun


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--samples", type=int, default=256)
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--delay-ms", type=float, default=10)
    given = parser.parse_args()
    server = Server(given.samples, given.delay_ms / 1000)
    plan = forerun.torch.Plan(samples=given.samples, seed=7)
    memory = max(given.samples * SAMPLE // 4, 1 << 20)

    def announced():
        engine = forerun.Engine(memory=memory)
        samples = Samples(forerun.open(server.url, engine=engine))
        return forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine)

    def unannounced():
        engine = forerun.Engine(memory=memory, preset="linux-2.6.24")
        return Samples(forerun.open(server.url, engine=engine))

    sides = {
        "a request a sample": lambda: Requests(server.url, given.samples),
        "LRU and readahead": unannounced,
        "order announced": announced,
    }
    print(f"{given.samples} samples, {given.epochs} epochs, {memory >> 10} KiB of memory\n")
    print(f"{'side':20} {'samples/s':>10} {'s':>6} {'error':>7}")
    weights = []
    for name, make in sides.items():
        model, error, elapsed = train(make(), plan, given.epochs)
        rate = given.samples * given.epochs / elapsed
        print(f"{name:20} {rate:10.0f} {elapsed:6.2f} {error:7.4f}")
        weights.append(model.weights)
    assert weights.count(weights[0]) == len(weights), "the sides read different bytes"


if __name__ == "__main__":
    main()
