"""Reads of objects that are replaced, from a server with faults: how many answers are wrong, short or foreign.

Each word of an object names its object, its version and its place, so each read proves itself: all its words are
of one version, of the object that was opened, in their places, and it ends where that version ends. An answer may
also be an error; a read that looks like an end before the end is wrong.

    python bench/faults.py [SECONDS] [--forerun BINARY] [--mount FOLDER] [--seed SEED]

Ways: `forerun.open` of s3://, gs://, az:// and http:// addresses, whole and in parts; fsspec with the cache and the
file system of forerun; with a binary `forerun read`, and with a folder a mount of the bucket, too. The file system of
fsspec below names no version and does not compare ranges: its objects stay as they are, and its ranges where they are.
"""

import argparse
import array
import collections
import errno
import http.server
import os
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse

OBJECTS = 16
# The last of them are never replaced.
STILL = 4
WORD = 8
WORDS_MAX = 1 << 17

# One answer in so many has a fault, on average.
FAULTY = 20
FAULTS = ["refused", "cut", "short", "shifted", "whole", "gone", "late"]

REPLACED_EVERY_S = 0.02


def content(number, version, words):
    first = (number << 56) | (version << 24)
    return array.array("Q", range(first, first + words)).tobytes()


class Objects:
    """Objects and their versions. A version is never taken back, so that each is found again by its number."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.sizes = [[] for _ in range(OBJECTS)]
        self.now = [None] * OBJECTS
        for number in range(OBJECTS):
            self.replace(number)

    def replace(self, number):
        words = self.random.randint(1, WORDS_MAX)
        self.sizes[number].append(words)
        version = len(self.sizes[number])
        self.now[number] = (f"{number}-{version}", content(number, version, words))

    def run(self, stopped):
        while not stopped.wait(REPLACED_EVERY_S):
            self.replace(self.random.randrange(OBJECTS - STILL))

    def is_right(self, number, asked, at, read, versions):
        """Whether bytes are of a version of this object, the one that its reads had before."""
        if not read:
            # An end: of a version that this file may have.
            known = versions or range(1, len(self.sizes[number]) + 1)
            return any(self.sizes[number][v - 1] * WORD <= at for v in known)
        skip = -at % WORD
        words = array.array("Q", read[skip : skip + (len(read) - skip) // WORD * WORD])
        if not words:
            return True
        owner, version = words[0] >> 56, words[0] >> 24 & 0xFFFFFFFF
        first = (number << 56) | (version << 24) | (at + skip) // WORD
        if owner != number or words != array.array("Q", range(first, first + len(words))):
            return False
        versions.add(version)
        if not 1 <= version <= len(self.sizes[number]) or len(versions) > 1:
            return False
        end = self.sizes[number][version - 1] * WORD
        return len(read) == min(asked, end - at)


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(True)

    def do_GET(self):
        self.answer(False)

    def answer(self, is_head):
        path = urllib.parse.urlsplit(self.path)
        if "list-type=2" in path.query:
            return self.list(urllib.parse.parse_qs(path.query).get("prefix", [""])[0])
        found = re.search(r"/k(\d+)$", path.path)
        if not found or int(found[1]) >= OBJECTS:
            return self.refuse(404)
        tag, body = self.server.objects.now[int(found[1])]
        tag = f'"{tag}"'
        if self.headers.get("If-Match", tag).strip('"') != tag.strip('"'):
            return self.refuse(412)
        draw = self.server.objects.random
        fault = draw.choice(FAULTS) if draw.randrange(FAULTY) == 0 else None
        if fault == "refused":
            return self.refuse(503)
        if fault == "gone":
            self.close_connection = True
            return None
        whole = len(body)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        headers = [("ETag", tag), ("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT"), ("Accept-Ranges", "bytes")]
        if asked and not (fault == "whole" and not is_head):
            first, last = (int(place) for place in asked.groups())
            if first >= whole:
                return self.refuse(416)
            if fault == "shifted" and "aiohttp" not in self.headers.get("User-Agent", ""):
                first = max(first - WORD, 0)
            body = body[first : last + 1]
            headers.append(("Content-Range", f"bytes {first}-{first + len(body) - 1}/{whole}"))
        self.send_response(206 if len(headers) > 3 else 200)
        for name, value in headers:
            self.send_header(name, value)
        length = len(body)
        if fault == "short":
            length = len(body) // 2
            body = body[:length]
        self.send_header("Content-Length", str(whole if is_head else length))
        self.end_headers()
        if is_head:
            return None
        if fault == "late":
            time.sleep(0.3)
        if fault == "cut":
            body = body[: draw.randint(0, len(body))]
            self.close_connection = True
        self.wfile.write(body)
        return None

    def list(self, prefix):
        now = [(number, now) for number, now in enumerate(self.server.objects.now) if f"k{number}".startswith(prefix)]
        entries = "".join(
            f"<Contents><Key>k{number}</Key><LastModified>2024-01-01T00:00:00.000Z</LastModified>"
            f"<ETag>{tag}</ETag><Size>{len(body)}</Size></Contents>"
            for number, (tag, body) in now
        )
        page = f"<ListBucketResult><IsTruncated>false</IsTruncated>{entries}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(page)))
        self.end_headers()
        self.wfile.write(page)

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


class Servers(http.server.ThreadingHTTPServer):
    def handle_error(self, *_):
        """A client that ended is none."""


class Counted:
    def __init__(self):
        self.lock = threading.Lock()
        self.all = collections.defaultdict(collections.Counter)

    def add(self, way, kind, count=1):
        with self.lock:
            self.all[way][kind] += count


def errors(way):
    """Errors that a read may end with: of fsspec's file systems, those of their libraries, too."""
    return Exception if way.startswith("fsspec") else OSError


def in_parts(objects, counted, way, number, opened, draw):
    """Reads of one open file at drawn places."""
    versions = set()
    for _ in range(draw.randint(1, 200)):
        at = draw.randrange(WORDS_MAX) * WORD
        asked = draw.choice([1, 8, 4096, 4096, 16384, 65536, 300_000])
        try:
            read = opened(asked, at)
        except errors(way) as error:
            counted.add(way, "errors")
            if getattr(error, "errno", None) == errno.ESTALE:
                return
            continue
        right = objects.is_right(number, asked, at, read, versions)
        counted.add(way, "right" if right else "WRONG")
        if not right:
            print(f"{way}: k{number} at {at}, asked for {asked}: {len(read)} bytes", file=sys.stderr)


def whole(objects, counted, way, number, read):
    try:
        all_bytes = read()
    except errors(way):
        return counted.add(way, "errors")
    right = bool(all_bytes) and objects.is_right(number, 1 << 60, 0, all_bytes, set())
    if not right:
        print(f"{way}: k{number} as a whole: {len(all_bytes)} bytes", file=sys.stderr)
    return counted.add(way, "right" if right else "WRONG")


def ways(arguments, base, engine):
    """Names of ways, and for each the function that opens an object: a read at a place, a whole read, a close."""
    from fsspec.implementations.http import HTTPFileSystem

    import forerun
    import forerun.fsspec

    def by(address):
        def opened(number):
            file = forerun.open(f"{address}/k{number}", engine=engine)
            return file.pread, file.read, file.close

        return opened

    def of_fsspec(make):
        def opened(number):
            file = make(f"{base}/b/k{number}")

            def read(asked, at):
                file.seek(at)
                return file.read(asked)

            return read, file.read, file.close

        return opened

    def as_file(path):
        def opened(number):
            file = open(f"{path}/k{number}", "rb", buffering=0)

            def read(asked, at):
                # The system gives the bytes before an error, and the error to the next read.
                parts = []
                while asked and (part := os.pread(file.fileno(), asked, at)):
                    parts.append(part)
                    asked, at = asked - len(part), at + len(part)
                return b"".join(parts)

            return read, file.read, file.close

        return opened

    direct = HTTPFileSystem(skip_instance_cache=True)
    through = forerun.fsspec.ForerunFileSystem(fs=direct, engine=engine)
    found = {scheme: by(f"{scheme}://b") for scheme in ("s3", "gs", "az")}
    found["http"] = by(f"{base}/b")
    found["fsspec cache"] = of_fsspec(
        lambda url: direct.open(url, cache_type="forerun", cache_options={"engine": engine})
    )
    found["fsspec forerun"] = of_fsspec(through.open)
    if arguments.mount:
        found["mount"] = as_file(arguments.mount)
    if arguments.forerun:

        def command(number):
            def read(*_):
                done = subprocess.run(
                    [arguments.forerun, "read", f"s3://b/k{number}"], capture_output=True, check=False
                )
                if done.returncode:
                    raise OSError(errno.EIO, done.stderr.decode())
                return done.stdout

            return None, read, lambda: None

        found["forerun read"] = command
    return found


def reads(objects, counted, way, opened, seed, stopped):
    draw = random.Random(seed)
    while not stopped.is_set():
        number = draw.randrange(OBJECTS - STILL if way.startswith("fsspec") else 0, OBJECTS)
        try:
            read, read_all, close = opened(number)
        except errors(way):
            counted.add(way, "errors")
            continue
        if read is None or draw.randrange(10) == 0:
            whole(objects, counted, way, number, read_all)
        else:
            in_parts(objects, counted, way, number, read, draw)
        close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seconds", type=float, nargs="?", default=60)
    parser.add_argument("--forerun", help="a binary with object stores, for `forerun read` and the mount")
    parser.add_argument("--mount", help="an empty folder for a mount of the bucket")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    print(f"seed {arguments.seed}")
    objects, counted, stopped = Objects(arguments.seed), Counted(), threading.Event()
    server = Servers(("127.0.0.1", 0), Server)
    server.objects = objects
    base = f"http://127.0.0.1:{server.server_port}"
    for name in [name for name in os.environ if name.startswith(("AWS_", "GOOGLE_", "AZURE_"))]:
        del os.environ[name]
    os.environ |= {
        "HOME": tempfile.mkdtemp(),
        "AWS_ENDPOINT_URL": base,
        "AWS_REGION": "us-east-1",
        "GOOGLE_BASE_URL": base,
        "AZURE_STORAGE_ACCOUNT_NAME": "account",
        "AZURE_STORAGE_ENDPOINT": base,
    }
    threading.Thread(target=server.serve_forever, daemon=True).start()
    threading.Thread(target=objects.run, args=(stopped,), daemon=True).start()
    import forerun

    mounted = None
    if arguments.mount:
        command = [arguments.forerun, "mount", "s3://b", arguments.mount, "--memory", "16MiB", "--foreground"]
        mounted = subprocess.Popen(command)
        while not os.path.ismount(arguments.mount) and mounted.poll() is None:
            time.sleep(0.05)
    engine = forerun.Engine(memory=8 << 20)
    threads = [
        threading.Thread(target=reads, args=(objects, counted, way, opened, arguments.seed + index, stopped))
        for index, (way, opened) in enumerate(ways(arguments, base, engine).items())
    ]
    for thread in threads:
        thread.start()
    time.sleep(arguments.seconds)
    stopped.set()
    for thread in threads:
        thread.join()
    if mounted:
        mounted.terminate()
        mounted.wait()
    for way, kinds in counted.all.items():
        print(f"{way:16}{kinds['right']:9} right{kinds['errors']:8} errors{kinds['WRONG']:6} wrong")
    total = sum(counted.all.values(), collections.Counter())
    print(f"{'all':16}{total['right']:9} right{total['errors']:8} errors{total['WRONG']:6} wrong")
    return 1 if total["WRONG"] else 0


if __name__ == "__main__":
    sys.exit(main())
