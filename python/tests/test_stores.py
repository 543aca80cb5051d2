"""Objects of a store by their addresses: an S3 server of these tests' own, without credentials."""

import errno
import hashlib
import io
import multiprocessing
import pickle
import random
import re
import sys
import tarfile
import threading
import time
import urllib.parse
import warnings
import xml.sax.saxutils
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import forerun
import forerun.torch
import forerun.webdataset

REPLACED = "it was replaced or removed after it was opened or listed; open it again"
SETTINGS = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_PROFILE")


def tag_of(content):
    return '"' + hashlib.sha256(content).hexdigest() + '"'


class Bucket(BaseHTTPRequestHandler):
    """Answers HEAD and ranges of objects, in the way of S3."""

    protocol_version = "HTTP/1.1"

    def do_HEAD(self):
        with self.server.lock:
            self.server.heads.append(self.path)
        # Answered once as many questions are under way as a test expects.
        if self.server.together:
            self.server.together.wait(timeout=600)
        self.answer(is_head=True)

    def do_GET(self):
        path, _, query = self.path.partition("?")
        if "list-type=2" in query:
            return self.list(path, urllib.parse.parse_qs(query))
        self.answer(is_head=False)

    def list(self, bucket, query):
        begin = f"{bucket.rstrip('/')}/{query.get('prefix', [''])[0]}"
        below = {name: len(begin) for name in self.server.objects if name.startswith(begin)}
        if "delimiter" not in query:
            below = {name: len(name) for name in below}
        folders = {name[: name.index("/", at) + 1] for name, at in below.items() if "/" in name[at:]}
        key = lambda name: xml.sax.saxutils.escape(name.split("/", 2)[2])  # noqa: E731
        rows = [f"<CommonPrefixes><Prefix>{key(name)}</Prefix></CommonPrefixes>" for name in sorted(folders)]
        for name in sorted(name for name, at in below.items() if "/" not in name[at:]):
            content = self.server.objects[name]
            rows.append(
                f"<Contents><Key>{key(name)}</Key><Size>{len(content)}</Size><ETag>{tag_of(content)}</ETag>"
                "<LastModified>2024-01-01T00:00:00.000Z</LastModified></Contents>"
            )
        truncated = "<IsTruncated>false</IsTruncated>"
        body = f"<ListBucketResult>{truncated}{''.join(rows)}</ListBucketResult>".encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def answer(self, is_head):
        if self.server.code:
            return self.refuse(403, f"<Error><Code>{self.server.code}</Code></Error>".encode())
        content = self.server.objects.get(self.path)
        if content is None:
            return self.refuse(404)
        tag = tag_of(content)
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

    def refuse(self, status, body=b""):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(body)

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    request_queue_size = 128


@pytest.fixture
def server(content, monkeypatch, tmp_path):
    server = Server(("127.0.0.1", 0), Bucket)
    server.objects = {"/bucket/folder/key": content}
    server.heads, server.together, server.lock = [], None, threading.Lock()
    server.code = None
    for name in SETTINGS:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    serving = threading.Thread(target=server.serve_forever)
    serving.start()
    yield server
    server.shutdown()
    serving.join()
    server.server_close()


@pytest.fixture
def objects(server):
    return server.objects


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


@pytest.mark.parametrize("code", ["AccessDenied", "InvalidAccessKeyId", "RequestTimeTooSkewed"])
def test_a_refusal_has_the_code_of_the_store_and_the_remedy(server, engine, code):
    server.code = code
    with pytest.raises(PermissionError, match=code) as raised:
        forerun.open("s3://bucket/folder/key", engine=engine)
    assert raised.value.filename == "s3://bucket/folder/key"
    assert "AWS_ACCESS_KEY_ID" in raised.value.strerror


def test_a_store_that_is_not_there_is_named(engine, objects, monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    with pytest.raises(ConnectionRefusedError, match="http://127.0.0.1:1") as raised:
        forerun.open("s3://bucket/folder/key", engine=engine)
    assert raised.value.errno == errno.ECONNREFUSED


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
    assert raised.value.errno == errno.ESTALE and REPLACED in str(raised.value)
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


@pytest.fixture
def samples(server, content):
    """Addresses of 64 objects, each a sample."""
    for number in range(64):
        server.objects[f"/bucket/samples/{number}"] = content[number * 1000 :][: 20_000 + number]
    return [f"s3://bucket/samples/{number}" for number in range(64)]


def sample(server, address):
    return server.objects[address.removeprefix("s3:/")]


@pytest.mark.parametrize(("address", "number"), [("s3://bucket/none", errno.ENOENT), ("s3://bucket/folder/key", errno.ENOTDIR)])
def test_what_is_no_folder_of_objects_is_an_error_of_the_system(server, engine, address, number):
    for listing in (forerun.listed, forerun.torch.Folder):
        with pytest.raises(OSError) as raised:
            listing(address, engine=engine)
        assert (raised.value.errno, raised.value.filename) == (number, address)


def test_announced_objects_are_asked_for_side_by_side_and_once(server, samples, engine):
    server.together = threading.Barrier(64)
    assert engine.hint([(address, 0, None) for address in samples]) == 64
    server.together = None
    for address in samples:
        with forerun.open(address, engine=engine) as file:
            assert file.read() == sample(server, address)
    assert len(server.heads) == 64
    ledger = engine.ledger()
    assert (ledger["misses"], ledger["hints_dropped"], ledger["hints_open"]) == (0, 0, 0)
    # Once they were read, another one to open it sees a version that is new.
    server.objects["/bucket/samples/0"] = b"new"
    with forerun.open(samples[0], engine=engine) as file:
        assert file.read() == b"new"


def test_an_object_replaced_after_its_announcement_is_an_error_and_then_the_new_one(server, samples):
    engine = forerun.Engine(memory=1 << 20)
    engine.hint([("s3://bucket/folder/key", 0, None), (samples[0], 0, None)])
    server.objects["/bucket/folder/key"] = server.objects["/bucket/folder/key"][::-1]
    with forerun.open("s3://bucket/folder/key", engine=engine) as file:
        with pytest.raises(OSError) as raised:
            file.read()
    assert raised.value.errno == errno.ESTALE and REPLACED in str(raised.value)
    with forerun.open("s3://bucket/folder/key", engine=engine) as file:
        assert file.read() == server.objects["/bucket/folder/key"]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("how", ["unread", "whole", "in part"])
def test_an_object_replaced_behind_its_announced_reads_is_opened_anew(server, engine, content, how, pieces):
    address = "s3://bucket/folder/key"
    step = len(content) // pieces
    engine.hint([(address, at * step, step) for at in range(pieces)])
    while engine.ledger()["requests"] == 0:
        time.sleep(0.001)
    for _ in range(pieces):
        with forerun.open(address, engine=engine) as file:
            if how != "unread":
                file.read(100 if how == "in part" else -1)
    new = content[::-1]
    server.objects["/bucket/folder/key"] = new
    for is_announced in (False, True, False):
        if is_announced:
            with warnings.catch_warnings():
                # Of pieces of the old version, which are dropped.
                warnings.simplefilter("ignore")
                engine.hint([(address, 0, step)])
        with forerun.open(address, engine=engine) as file:
            assert file.read() == new


def test_samples_of_many_objects_are_announced_while_others_are_read(server, samples, engine):
    class Objects:
        def __len__(self):
            return len(samples)

        def __getitem__(self, index):
            with forerun.open(samples[index], engine=engine) as file:
                return file.read()

    plan = forerun.torch.Plan(len(samples), seed=2)
    hinted = forerun.torch.HintedDataset(
        Objects(), plan, lambda index: (samples[index], 0, None), engine=engine, ahead=32
    )
    for epoch in range(3):
        hinted.epoch = epoch
        for index in plan.order(epoch):
            assert hinted[index] == sample(server, samples[index])
    announcer = hinted.announcer()
    assert announcer.unexpected == 0
    for thread in threading.enumerate():
        if thread.name == "forerun-hint":
            thread.join()
    assert engine.ledger()["hints_dropped"] == 0


def test_an_order_that_is_wrong_is_told_to_the_reader_of_samples(samples, engine):
    plan = forerun.torch.Plan(len(samples), seed=2)
    hinted = forerun.torch.HintedDataset(
        samples, plan, lambda index: (samples[index], -1, None), engine=engine
    )
    with pytest.raises(ValueError, match="offset of -1: must lie from 0"):
        while True:
            hinted[0]


def test_a_data_set_with_an_object_that_is_missing_is_read_up_to_it(server, samples, engine):
    del server.objects["/bucket/samples/9"]
    with pytest.warns(RuntimeWarning, match="cannot be opened: FileNotFoundError.*samples/9"):
        assert engine.hint([(address, 0, None) for address in samples]) == 64
    with pytest.raises(FileNotFoundError):
        forerun.open(samples[9], engine=engine)
    with forerun.open(samples[10], engine=engine) as file:
        assert file.read() == sample(server, samples[10])


def test_objects_of_a_listing_are_opened_without_a_question(server, samples, engine):
    listed = forerun.listed("s3://bucket/samples", engine=engine)
    assert sorted(samples) == listed
    assert [one.size for one in listed] == [len(sample(server, one)) for one in listed]
    assert engine.hint([(one, 0, None) for one in listed]) == 64
    for one in listed:
        with forerun.open(one, engine=engine) as file:
            copy = pickle.loads(pickle.dumps(file))
            assert (file.size, file.read()) == (one.size, sample(server, one))
            assert copy.read(5) == sample(server, one)[:5]
    assert server.heads == [] and engine.ledger()["misses"] == 0
    # That version alone.
    server.objects["/bucket/samples/0"] = b"new"
    again = pickle.loads(pickle.dumps(listed[0]))
    assert (again, again.size, again.version) == (listed[0], listed[0].size, listed[0].version)
    with forerun.open(again, engine=forerun.Engine(memory=4 << 20)) as file:
        with pytest.raises(OSError) as raised:
            file.read()
    assert raised.value.errno == errno.ESTALE and REPLACED in str(raised.value)


def test_a_folder_of_objects_is_a_data_set(server, engine, content):
    names = [f"{kind}/{deep}{number}" for kind in "ab" for deep in ("", "x/") for number in range(5)]
    for name in names:
        server.objects[f"/bucket/set/{name}"] = name.encode() * 100
    dataset = forerun.torch.Folder("s3://bucket/set/", engine=engine)
    assert dataset.classes == ["a", "b"]
    assert [path for path, _ in dataset.samples] == [f"s3://bucket/set/{name}" for name in sorted(names)]
    assert [dataset[index][0] for index in range(20)] == [name.encode() * 100 for name in sorted(names)]
    assert server.heads == []


@pytest.mark.parametrize("address", ["s3://bucket/nothing", "http://127.0.0.1:1/", "/a/path", "s3:///x"])
def test_what_cannot_be_listed_is_refused_with_its_address(server, engine, address):
    with pytest.raises((ValueError, OSError), match=re.escape(address.rstrip("/"))):
        forerun.listed(address, engine=engine)


def test_webdataset_itself_reads_its_shards_through_the_engine(server, engine, content, monkeypatch):
    webdataset = pytest.importorskip("webdataset", reason="webdataset is not installed")
    for shard in range(3):
        made = io.BytesIO()
        with tarfile.open(fileobj=made, mode="w") as tar:
            for sample in range(20):
                for kind, data in (("bin", content[sample * 1000 :][:9000]), ("cls", b"%d" % sample)):
                    entry = tarfile.TarInfo(f"{shard}{sample:03}.{kind}")
                    entry.size = len(data)
                    tar.addfile(entry, io.BytesIO(data))
        server.objects[f"/bucket/shards/{shard}.tar"] = made.getvalue()
    schemes = sys.modules["webdataset.gopen"].gopen_schemes
    for scheme in ("s3", "gs", "az", "http", "https"):
        monkeypatch.setitem(schemes, scheme, schemes.get(scheme))
    forerun.webdataset.register(engine=engine)
    shards = webdataset.WebDataset("s3://bucket/shards/{0..2}.tar", shardshuffle=False)
    read = [sample["bin"] for sample in shards]
    assert read == [content[n * 1000 :][:9000] for n in range(20)] * 3
    assert engine.ledger()["reads"] > 0
