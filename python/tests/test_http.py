"""Objects of an HTTP server, by their address."""

import hashlib
import io
import pickle
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import forerun


class Ranges(BaseHTTPRequestHandler):
    """Answers ranges of one object, if they name its version."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        content = self.server.content
        tag = '"' + hashlib.sha256(content).hexdigest() + '"'
        first, last = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers["Range"]).groups()
        body, status = content[int(first) : int(last) + 1], 206
        if self.headers.get("If-Match", tag) != tag or int(last) >= self.server.fault:
            body, status = b"", 412
        if self.path != "/object":
            body, status = b"", 404
        self.send_response(status)
        self.send_header("ETag", tag)
        self.send_header("Content-Length", str(len(body)))
        end = int(first) + len(body) - 1
        self.send_header("Content-Range", f"bytes {first}-{end}/{len(content)}")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_):
        pass


@pytest.fixture
def server(content):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Ranges)
    server.content, server.fault = content, len(content)
    server.address = f"http://127.0.0.1:{server.server_port}"
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    yield server
    server.shutdown()
    serving.join()
    server.server_close()


def test_an_object_is_read_as_a_file(server, engine, content):
    with forerun.open(server.address + "/object", engine=engine) as file:
        assert file.size == len(content)
        assert file.read() == content
        file.seek(9)
        assert pickle.loads(pickle.dumps(file)).read(5) == content[9:14]


@pytest.mark.parametrize("fault", [4096, 3 << 20])
@pytest.mark.parametrize(
    "read",
    [
        lambda file, size: file.read(),
        lambda file, size: file.read(size),
        lambda file, size: file.pread(size, 0),
        lambda file, size: file.readinto(bytearray(size)),
        lambda file, size: file.readinto_at(bytearray(size), 0),
        lambda file, size: io.BufferedReader(file).read(size),
        lambda file, size: list(file),
    ],
)
def test_a_fault_behind_the_first_bytes_is_an_error(server, content, read, fault):
    small = forerun.Engine(memory=1 << 20)
    with forerun.open(server.address + "/object", engine=small) as file:
        server.fault = fault
        with pytest.raises(OSError):
            read(file, len(content))


def test_a_scheme_is_one_in_any_case(server, engine, content):
    address = server.address + "/object"
    with forerun.open("HTTP" + address[4:], engine=engine) as file:
        assert file.read(10) == content[:10]


def test_a_missing_object_is_an_error_with_its_address(server, engine):
    with pytest.raises(OSError) as raised:
        forerun.open(server.address + "/missing", engine=engine)
    assert raised.value.filename == server.address + "/missing"


def test_an_object_replaced_while_it_is_open_is_an_error_and_no_mixture(server, content):
    small = forerun.Engine(memory=1 << 20)
    with forerun.open(server.address + "/object", engine=small) as file:
        assert file.pread(10, 0) == content[:10]
        server.content = content[::-1]
        with pytest.raises(OSError):
            file.pread(10, len(content) - 10)
    with forerun.open(server.address + "/object", engine=small) as file:
        assert file.pread(10, 0) == content[::-1][:10]
