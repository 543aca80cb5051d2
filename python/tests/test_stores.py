"""Objects of a store by their addresses: an S3 server of these tests' own, without credentials."""

import errno
import hashlib
import multiprocessing
import pickle
import random
import re
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import forerun

SETTINGS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


class Bucket(BaseHTTPRequestHandler):
    """Answers HEAD and ranges of objects, in the way of S3."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        self.answer(is_head=True)

    def do_GET(self):
        self.answer(is_head=False)

    def answer(self, is_head):
        content = self.server.objects.get(self.path)
        if content is None:
            return self.refuse(404)
        tag = '"' + hashlib.sha256(content).hexdigest() + '"'
        if self.headers.get("If-Match", tag) != tag:
            return self.refuse(412)
        asked = re.fullmatch(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
        body = content
        if asked:
            first, last = (int(number) for number in asked.groups())
            body = content[first : last + 1]
            self.send_response(206)
            end = first + len(body) - 1
            self.send_header("Content-Range", f"bytes {first}-{end}/{len(content)}")
        else:
            self.send_response(200)
        self.send_header("ETag", tag)
        self.send_header("Last-Modified", "Mon, 01 Jan 2024 00:00:00 GMT")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if not is_head:
            self.wfile.write(body)

    def refuse(self, status):
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def objects(content, monkeypatch, tmp_path):
    server = ThreadingHTTPServer(("127.0.0.1", 0), Bucket)
    server.objects = {"/bucket/folder/key": content}
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server.objects
    server.shutdown()
    serving.join()
    server.server_close()


def test_an_object_is_read_as_a_file(objects, engine, content):
    with forerun.open("s3://bucket/folder/key", engine=engine) as file:
        assert file.name == "s3://bucket/folder/key"
        assert file.size == len(content)
        assert file.read() == content
        file.seek(9)
        assert pickle.loads(pickle.dumps(file)).read(5) == content[9:14]


def test_an_announced_order_is_read_right_in_little_memory(objects, content):
    engine = forerun.Engine(memory=1 << 20)
    offsets = list(range(0, len(content) - 65536, 65536))
    random.Random(7).shuffle(offsets)
    with forerun.open("s3://bucket/folder/key", engine=engine) as file:
        engine.hint([(file, offset, 65536) for offset in offsets])
        for offset in offsets:
            assert file.pread(65536, offset) == content[offset : offset + 65536]


def test_a_missing_object_is_an_error_with_its_address(objects, engine):
    with pytest.raises(FileNotFoundError) as raised:
        forerun.open("s3://bucket/missing", engine=engine)
    assert raised.value.filename == "s3://bucket/missing"


@pytest.mark.parametrize("address", ["s3://", "s3://bucket", "s3://bucket/", "gs://b//k", "s3://b/../k"])
def test_an_address_that_names_no_object_is_a_value_error_with_it(engine, address):
    with pytest.raises(ValueError, match=re.escape(address)):
        forerun.open(address, engine=engine)


def test_a_replaced_object_is_an_error_and_no_mixture(objects, content):
    small = forerun.Engine(memory=1 << 20)
    with forerun.open("s3://bucket/folder/key", engine=small) as file:
        assert file.pread(10, 0) == content[:10]
        objects["/bucket/folder/key"] = content[::-1]
        with pytest.raises(OSError) as raised:
            file.pread(10, len(content) - 10)
    assert raised.value.errno == errno.ESTALE
    with forerun.open("s3://bucket/folder/key", engine=small) as file:
        assert file.pread(10, 0) == content[::-1][:10]


def begin(file, there):
    there.put(file.pread(10, 70_000))


def test_a_forked_child_opens_the_object_again(objects, engine, content):
    context = multiprocessing.get_context("fork")
    with forerun.open("s3://bucket/folder/key", engine=engine) as file:
        assert file.pread(10, 0) == content[:10]
        there = context.Queue()
        child = context.Process(target=begin, args=(file, there))
        child.start()
        assert there.get(timeout=600) == content[70_000:70_010]
        child.join()
        assert child.exitcode == 0
