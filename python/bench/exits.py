"""Exits of processes that read: how they end, in six ways, and how long the end takes.

Each process ends at another moment of its reads. A way is right if all exits have its status, nothing hangs
and nothing is printed to stderr.

    python bench/exits.py [EXITS] [WAY ...]
"""

import collections
import http.server
import re
import statistics
import subprocess
import sys
import threading
import time

# No process takes as long, and a hang takes no longer.
HANG_S = 60

BEGIN = """
import asyncio, os, signal, sys, threading, time
import fsspec, forerun, forerun.fsspec
from fsspec.asyn import AsyncFileSystem
from fsspec.spec import AbstractBufferedFile
engine = forerun.Engine(memory=16 << 20)
forerun.set_default_engine(engine)
delay, address = float(sys.argv[1]), sys.argv[2]
SIZE = 1 << 26

class Slow(AsyncFileSystem):
    "A store whose ranges take two milliseconds, by a loop of events as s3fs has one."
    protocol = "slow"
    cachable = False
    async def _info(self, path, **_):
        return {"name": path, "size": SIZE, "type": "file", "ETag": "1"}
    async def _cat_file(self, path, start=None, end=None, **_):
        await asyncio.sleep(0.002)
        return bytes(end - start)
    def _open(self, path, mode="rb", **kwargs):
        return SlowFile(self, path, mode, **kwargs)

class SlowFile(AbstractBufferedFile):
    def _fetch_range(self, start, end):
        return self.fs.cat_file(self.path, start, end)

def read(file):
    while True:
        file.seek(0)
        while file.read(1 << 16):
            pass

def daemon(file):
    threading.Thread(target=read, args=(file,), daemon=True).start()
    time.sleep(delay)
"""

WAYS = {
    "a daemon reads by the cache": (0, 'daemon(Slow().open("o", cache_type="forerun"))'),
    "a daemon reads forerun::": (0, 'daemon(forerun.fsspec.ForerunFileSystem(fs=Slow()).open("o"))'),
    "a daemon reads http": (0, "daemon(forerun.open(address))"),
    "a fetch hangs": (
        0,
        """
def hang(*_):
    threading.Event().wait()
from forerun._forerun import Handle
engine.hint([(Handle.fetched(engine, hang, "hang", "1", SIZE), 0, 1 << 20)])
time.sleep(delay)
""",
    ),
    "an interrupt in a read": (
        -2,
        """
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.excepthook = lambda *_: None
signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGINT))
signal.setitimer(signal.ITIMER_REAL, max(delay, 0.001))
read(forerun.fsspec.ForerunFileSystem(fs=Slow()).open("o"))
""",
    ),
    "forks while threads read": (
        0,
        """
file = forerun.fsspec.ForerunFileSystem(fs=Slow()).open("o")
daemon(forerun.open(address))
path = forerun.open(__file__) if "__file__" in globals() else forerun.open(sys.executable)
child = os.fork()
if child == 0:
    assert len(path.pread(1000, 0)) == 1000
    sys.exit(0)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
""",
    ),
}


class Zeros(http.server.BaseHTTPRequestHandler):
    """An object of zeros, in ranges."""

    protocol_version = "HTTP/1.1"
    size = 1 << 26

    def do_GET(self):
        first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups())
        body = bytes(min(last + 1, self.size) - first)
        self.send_response(206)
        self.send_header("ETag", '"1"')
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{self.size}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, *_):
        """Clients that end leave their connections."""


def exits(way, count, address):
    """How so many processes ended, and how long each took."""
    _, program = WAYS[way]
    ended, seconds = collections.Counter(), []
    for number in range(count):
        delay = number * 0.3 / count
        command = [sys.executable, "-c", BEGIN + program, str(delay), address]
        begin = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=HANG_S, check=False
            )
        except subprocess.TimeoutExpired:
            ended["hang"] += 1
            continue
        seconds.append(time.monotonic() - begin - delay)
        ended[done.returncode] += 1
        if done.stderr:
            ended["stderr"] += 1
            print(done.stderr, file=sys.stderr)
    return ended, seconds


def main():
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    server = Server(("127.0.0.1", 0), Zeros)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://127.0.0.1:{server.server_port}/o"
    print("| way | exits | right | hangs | others | median s | most s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    wrong = 0
    for way in sys.argv[2:] or WAYS:
        ended, seconds = exits(way, count, address)
        right = ended.pop(WAYS[way][0], 0)
        hangs = ended.pop("hang", 0)
        others = ", ".join(f"{kind}: {times}" for kind, times in ended.items()) or "-"
        wrong += count - right + ended["stderr"]
        times = f"{statistics.median(seconds or [0]):.2f} | {max(seconds or [0]):.2f}"
        print(f"| {way} | {count} | {right} | {hangs} | {others} | {times} |", flush=True)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
