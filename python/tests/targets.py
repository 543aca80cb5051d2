"""Fixtures: targets of fsspec, each with a folder of its own."""

import hashlib
import os
import re
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem


@pytest.fixture(scope="module")
def s3_options():
    """A server of S3, of moto."""
    server = pytest.importorskip("moto.server")
    pytest.importorskip("s3fs")
    running = server.ThreadedMotoServer(ip_address="127.0.0.1", port=0)
    running.start()
    host, port = running.get_host_and_port()
    options = {"key": "testing", "secret": "testing", "endpoint_url": f"http://{host}:{port}"}
    fs = fsspec.filesystem("s3", **options)
    # The objects of moto are those of the process.
    if not fs.exists("bucket"):
        fs.mkdir("bucket")
    yield options
    fs.clear_instance_cache()
    running.stop()


@pytest.fixture
def s3(s3_options):
    fs = fsspec.filesystem("s3", **s3_options)
    fs.invalidate_cache()
    yield fs, "bucket/folder"
    fs.rm("bucket/folder", recursive=True) if fs.exists("bucket/folder") else None


@pytest.fixture
def local(tmp_path):
    return fsspec.filesystem("file", auto_mkdir=True), str(tmp_path / "folder")


@pytest.fixture
def memory():
    MemoryFileSystem.store.clear()
    MemoryFileSystem.pseudo_dirs[:] = [""]
    return MemoryFileSystem(), "/folder"


class Ranges(SimpleHTTPRequestHandler):
    """Files with ranges and a strong ETag; those below `untagged` without one."""

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.answer(is_head=True)

    def do_GET(self):
        self.answer(is_head=False)

    def answer(self, is_head):
        path = self.translate_path(self.path)
        if not os.path.isfile(path):
            return super().do_HEAD() if is_head else super().do_GET()
        with open(path, "rb") as file:
            content = file.read()
        asked = re.fullmatch(r"bytes=(\d*)-(\d*)", self.headers.get("Range", ""))
        first, last = 0, len(content) - 1
        if asked and asked[1]:
            first, last = int(asked[1]), int(asked[2] or last)
        elif asked:
            first = len(content) - int(asked[2])
        part = content[first : last + 1]
        self.send_response(206 if asked else 200)
        if asked:
            self.send_header("Content-Range", f"bytes {first}-{first + len(part) - 1}/{len(content)}")
        if "untagged" not in path:
            self.send_header("ETag", f'"{hashlib.sha256(content).hexdigest()}"')
        self.send_header("Accept-Ranges", "bytes")
        # Azure's client reads no answer without one.
        self.send_header("Last-Modified", self.date_time_string(os.path.getmtime(path)))
        self.send_header("Content-Length", str(len(part)))
        self.end_headers()
        if not is_head:
            self.wfile.write(part)


@pytest.fixture
def http(tmp_path):
    pytest.importorskip("aiohttp")

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Ranges, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield fsspec.filesystem("http"), f"http://127.0.0.1:{server.server_port}/folder"
    server.shutdown()
    server.server_close()
