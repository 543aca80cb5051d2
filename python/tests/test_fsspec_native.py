"""Targets that the engine reads by itself: with their credentials and options, or not at all."""

import errno
import logging
import os
import pickle
import threading
from functools import partial
from http.server import ThreadingHTTPServer

import fsspec
import pytest

import forerun.fsspec
from forerun import _handles, native
from targets import Ranges, http, s3, s3_options  # noqa: F401

SIZE = 300_000


@pytest.fixture
def reset(monkeypatch):
    # No listing becomes old on a busy machine.
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 3600.0)
    monkeypatch.setattr(_handles, "_opened", {})
    _handles.proved.clear()
    _handles.untagged.clear()
    _handles._told.clear()


@pytest.fixture
def requests(caplog):
    """The methods of the requests so far, and the programs that sent them."""
    caplog.set_level(logging.INFO, logger="werkzeug")

    def sent():
        return [record.getMessage().split('"')[1].split()[0].split("m")[-1] for record in caplog.records if record.name == "werkzeug"]

    return sent


def put(fs, path, byte):
    fs.pipe_file(path, bytes([byte]) * SIZE)


def test_objects_of_s3_are_read_by_the_engine_and_listed_ones_without_a_question(s3, requests, reset):
    target, folder = s3
    for number in range(4):
        put(target, f"{folder}/{number}", number)
    fs = fsspec.filesystem("forerun", fs=target)
    names = fs.ls(folder, detail=False)
    before = len(requests())
    for number, name in enumerate(names):
        with fs.open(name) as file:
            assert file._handle.name == f"s3://{name}"
            assert file.read() == bytes([number]) * SIZE
    # The first object of a bucket is asked for: the target reads where that fails.
    assert requests()[before:].count("HEAD") == 1


@pytest.mark.parametrize("name", ["not-there", "not-there.parquet", "not-there.h5", "folder/.zattrs"])
def test_an_object_that_is_not_there_costs_one_request(s3, requests, name, reset):
    target, folder = s3
    fs = fsspec.filesystem("forerun", fs=target)
    for read in (fs.open, fs.cat_file):
        before = len(requests())
        with pytest.raises(FileNotFoundError) as raised:
            read(f"{folder}/{name}")
        assert raised.value.filename == f"{folder}/{name}"
        assert len(requests()) == before + 1
    assert not fs.isfile(f"{folder}/{name}")


def test_the_opening_of_an_object_tells_its_size_and_time_once(s3, requests, reset):
    target, folder = s3
    put(target, f"{folder}/a", 1)
    put(target, f"{folder}/b", 1)
    fs = fsspec.filesystem("forerun", fs=target)
    for _ in range(2):
        with fs.open(f"{folder}/a"):
            before = len(requests())
            told = fs.size(f"forerun://{folder}/a"), fs.modified(f"{folder}/a")
            assert len(requests()) == before
            assert told == (SIZE, target.modified(f"{folder}/a"))
            before = len(requests())
            assert (fs.size(f"{folder}/a"), fs.modified(f"{folder}/a")) == told
            assert fs.size(f"{folder}/b") == SIZE
            assert len(requests()) == before + 3


@pytest.mark.parametrize("by", ["pipe", "open", "invalidate", "thread"])
def test_what_an_opening_told_is_not_believed_once_something_is_written(s3, s3_options, by, reset):
    target, folder = s3
    path = f"{folder}/a"
    put(target, path, 1)
    fs = fsspec.filesystem("forerun", fs=target)
    fs.open(path).close()
    if by == "pipe":
        fs.pipe_file(path, b"four")
    elif by == "open":
        with fs.open(path, "wb") as file:
            file.write(b"four")
    else:
        fsspec.filesystem("s3", **s3_options, skip_instance_cache=True).pipe_file(path, b"four")
    if by == "invalidate":
        fs.invalidate_cache()
    sizes = []
    thread = threading.Thread(target=lambda: sizes.append(fs.size(path)))
    if by == "thread":
        thread.start()
        thread.join()
    else:
        sizes.append(fs.size(path))
    assert sizes == [4]


def test_of_a_bucket_that_is_not_there_the_target_tells(s3, reset):
    fs = fsspec.filesystem("forerun", fs=s3[0])
    with pytest.raises(FileNotFoundError, match="bucket"):
        fs.cat_file("forerun-no-such-bucket/a")


def test_a_small_object_and_a_footer_come_with_the_opening(s3, requests, reset):
    target, folder = s3
    put(target, f"{folder}/small", 5)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
    before = len(requests())
    assert fs.cat_file(f"{folder}/small") == b"\5" * SIZE
    assert requests()[before:] == ["GET"]
    table = bytes(SIZE) + b"footer".ljust(1000) + (1000).to_bytes(4, "little") + b"PAR1"
    target.pipe_file(f"{folder}/table.parquet", table)
    before = len(requests())
    with fs.open(f"{folder}/table.parquet") as file:
        file.seek(len(table) - 65_536)
        assert file.read(65_536) == table[-65_536:]
        assert requests()[before:] == ["GET"]
    # Its footer is known now.
    with fs.open(f"{folder}/table.parquet") as file:
        assert file.read() == table
    assert requests()[before + 1 :][0] == "HEAD"


@pytest.mark.parametrize("memory", ["8MiB", "256MiB"])
def test_several_objects_in_one_call_are_one_request_each(s3, requests, reset, memory):
    target, folder = s3
    contents = {f"{folder}/{number:02}": bytes([number]) * (SIZE + number) for number in range(20)}
    contents[f"{folder}/empty"] = b""
    for path, content in contents.items():
        target.pipe_file(path, content)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine(memory))
    target.invalidate_cache()
    before = len(requests())
    assert fs.cat(list(contents)) == contents
    # Of an empty object there is no range: it is asked for.
    assert sorted(requests()[before:])[:20] == ["GET"] * 20 and len(requests()[before:]) <= 20 + 3
    ends = {path: content[:-5] for path, content in contents.items()}
    assert fs.cat(list(contents), end=-5) == ends
    # One that is not there, and one that is longer than what comes with the opening.
    target.pipe_file(f"{folder}/long", os.urandom(6 << 20))
    target.invalidate_cache()
    read = fs.cat_ranges([f"{folder}/absent", f"{folder}/long", f"{folder}/01"], [0, 5, None], None)
    assert isinstance(read[0], FileNotFoundError)
    assert read[1:] == [target.cat_file(f"{folder}/long", start=5), contents[f"{folder}/01"]]


def test_the_first_lines_come_with_the_opening(s3, requests, reset):
    target, folder = s3
    put(target, f"{folder}/lines.csv", 10)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
    before = len(requests())
    with fs.open(f"{folder}/lines.csv") as file:
        assert file.read(100_000) == b"\n" * 100_000
        assert requests()[before:][0] == "GET" and "HEAD" not in requests()[before:]
        file.seek(0)
        assert file.read() == b"\n" * SIZE


def test_a_parquet_file_that_is_looked_for_and_opened_is_one_request(s3, s3_options, requests, reset, monkeypatch):
    target, folder = s3
    path = f"{folder}/table.parquet"
    put(target, path, 1)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
    before = len(requests())
    # As pyarrow does for each file of a data set.
    assert fs.isfile(f"forerun://{path}")
    with fs.open(path) as file:
        assert file.seek(SIZE - 65_536) and file.read(65_536) == b"\1" * 65_536
    assert requests()[before:] == ["GET"]
    assert not fs.isfile(f"{folder}/none.parquet") and not fs.isfile(folder)
    with pytest.raises(FileNotFoundError):
        fs.open(f"{folder}/none.parquet")
    # Later, it is opened in the version that it has then.
    monkeypatch.setattr(forerun.fsspec, "_FOUND_SECONDS", 0)
    assert fs.isfile(path)
    put(fsspec.filesystem("s3", **s3_options, skip_instance_cache=True), path, 2)
    with fs.open(path) as file:
        assert file.read() == b"\2" * SIZE
    for number in range(100):
        fs._found[f"{number}.parquet"] = 0.0, None
    assert fs.isfile(path) and len(fs._found) <= forerun.fsspec._FOUND_MAX


@pytest.mark.parametrize("size", [0, 1, 5_000_000])
def test_an_object_of_any_size_is_read_whole_by_one_call(s3, size):
    target, folder = s3
    content = bytes(range(256)) * (size // 256) + bytes(size % 256)
    for name in ("any", "any.parquet"):
        target.pipe_file(f"{folder}/{name}", content)
        fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
        assert fs.cat_file(f"{folder}/{name}") == content
        assert fs.cat_file(f"{folder}/{name}", 0, 10) == content[:10]
        assert fs.cat_file(f"{folder}/{name}", 10) == content[10:]
        with fs.open(f"{folder}/{name}") as file:
            assert file.read() == content


def test_a_listed_object_that_was_replaced_is_an_error_and_never_other_bytes(s3, s3_options, reset):
    target, folder = s3
    put(target, f"{folder}/a", 1)
    put(target, f"{folder}/b", 1)
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
    fs.ls(folder)
    assert fs.cat_file(f"{folder}/a") == b"\1" * SIZE
    put(fsspec.filesystem("s3", **s3_options, skip_instance_cache=True), f"{folder}/b", 2)
    with fs.open(f"{folder}/b") as file, pytest.raises(OSError) as raised:
        file.read()
    assert raised.value.errno == errno.ESTALE
    fs.invalidate_cache()
    assert fs.cat_file(f"{folder}/b") == b"\2" * SIZE


def test_the_cache_type_reads_objects_of_s3_by_the_engine_without_a_question(s3, requests, engine, reset):
    target, folder = s3
    for name in ("a", "b"):
        put(target, f"{folder}/{name}", 7)
        before = len(requests())
        with target.open(f"{folder}/{name}", cache_type="forerun", cache_options={"engine": engine}) as file:
            assert file.read(10) == b"\7" * 10
            assert file.cache.handle.name.startswith("s3://")
        # The one of the target's own opening.
        assert requests()[before:].count("HEAD") == 1


def test_the_cache_type_reads_an_object_of_an_old_listing_in_the_version_that_it_has(s3, s3_options, engine, reset, monkeypatch):
    target, folder = s3
    put(target, f"{folder}/a", 1)
    options = {"cache_type": "forerun", "cache_options": {"engine": engine}}
    target.ls(folder)
    with target.open(f"{folder}/a", **options) as file:
        assert file.read() == b"\1" * SIZE
    put(fsspec.filesystem("s3", **s3_options, skip_instance_cache=True), f"{folder}/a", 2)
    monkeypatch.setattr(_handles, "LISTED_SECONDS", 0.0)
    with target.open(f"{folder}/a", **options) as file:
        assert file.read() == b"\2" * SIZE


@pytest.mark.parametrize("why", ["refused", "unreachable", "missing"])
def test_the_target_reads_for_the_cache_type_where_the_engine_is_refused(s3, engine, why, reset, monkeypatch, caplog):
    target, folder = s3
    put(target, f"{folder}/a", 7)
    known = native.reached(target, f"{folder}/a")
    closed = {**known.variables, "AWS_ENDPOINT_URL": "http://127.0.0.1:1"}
    other = {
        "refused": known._replace(url="s3://forerun-no-such-bucket/a"),
        "unreachable": known._replace(variables=closed),
        "missing": known._replace(url=f"{known.url}-not-there"),
    }[why]
    monkeypatch.setattr(native, "reached", lambda fs, path: other)
    with target.open(f"{folder}/a", cache_type="forerun", cache_options={"engine": engine}) as file:
        assert file.read() == b"\7" * SIZE
        assert not file.cache.handle.name.startswith("s3://")
    assert not _handles.proved
    assert ("reads by itself" in caplog.text) == (why == "unreachable")


def test_an_object_that_was_replaced_since_the_cache_type_opened_it_is_an_error(s3, s3_options, engine, reset):
    target, folder = s3
    put(target, f"{folder}/a", 1)
    with target.open(f"{folder}/a", cache_type="forerun", cache_options={"engine": engine}) as file:
        put(fsspec.filesystem("s3", **s3_options, skip_instance_cache=True), f"{folder}/a", 2)
        with pytest.raises(OSError) as raised:
            file.read()
    assert raised.value.errno == errno.ESTALE


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"version_aware": True}, "version_aware"),
        ({"s3_additional_kwargs": {"SSECustomerAlgorithm": "AES256"}}, "s3_additional_kwargs"),
        ({"client_kwargs": {"verify": False}}, "client_kwargs: verify"),
        ({"config_kwargs": {"proxies": {"http": "http://127.0.0.1:1"}}}, "config_kwargs: proxies"),
        ({"config_kwargs": {"s3": {"addressing_style": "virtual"}}}, "config_kwargs: s3"),
    ],
)
def test_an_option_without_a_counterpart_leaves_reading_to_the_target_and_is_named(s3_options, options, named, reset, caplog):
    target = fsspec.filesystem("s3", **(s3_options | options), skip_instance_cache=True)
    with pytest.raises(native.UnknownOptionError, match=named):
        native.reached(target, "bucket/key")
    assert _handles.native_handle(forerun.default_engine(), target, "bucket/key") is None
    assert named in caplog.text
    caplog.clear()
    assert _handles.native_handle(forerun.default_engine(), target, "bucket/key") is None
    assert caplog.text == ""


def test_keys_endpoint_and_region_are_those_that_the_target_found(s3_options, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "other")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "other")
    options = {**s3_options, "token": "t", "client_kwargs": {"region_name": "eu-west-3"}, "requester_pays": True}
    known = native.reached(fsspec.filesystem("s3", **options, skip_instance_cache=True), "bucket/key")
    assert known.url == "s3://bucket/key"
    wanted = {
        "AWS_ACCESS_KEY_ID": "testing",
        "AWS_SECRET_ACCESS_KEY": "testing",
        "AWS_SESSION_TOKEN": "t",
        "AWS_ENDPOINT_URL": s3_options["endpoint_url"],
        "AWS_REGION": "eu-west-3",
        "AWS_REQUEST_PAYER": "true",
    }
    assert {name: known.variables.get(name) for name in wanted} == wanted
    anonymous = {"anon": True, "endpoint_url": s3_options["endpoint_url"]}
    known = native.reached(fsspec.filesystem("s3", **anonymous, skip_instance_cache=True), "bucket/key")
    assert not any("KEY" in name for name in known.variables)


@pytest.fixture
def keyless(s3, s3_options, monkeypatch, tmp_path):
    """No keys anywhere; an object of a server, which takes requests that are not signed."""
    for name in list(os.environ):
        if name.startswith("AWS_"):
            monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    monkeypatch.setenv("AWS_ENDPOINT_URL", s3_options["endpoint_url"])
    target, folder = s3
    target.pipe_file(f"{folder}/lines.csv", b"a,b\n1,2\n")
    for public in ("bucket", f"{folder}/lines.csv"):
        target.chmod(public, "public-read")
    target.clear_instance_cache()
    yield f"{folder}/lines.csv"
    target.chmod("bucket", "private")


def test_without_keys_an_address_is_read_unsigned_as_by_forerun_open(keyless, reset):
    exceptions = pytest.importorskip("botocore.exceptions")
    content = b"a,b\n1,2\n"
    with pytest.raises(exceptions.NoCredentialsError):
        fsspec.filesystem("s3").cat_file(keyless)
    with forerun.open(f"s3://{keyless}") as file:
        assert file.read() == content
    with fsspec.open(f"forerun::s3://{keyless}") as file:
        assert file.read() == content
    for fs in (fsspec.filesystem("forerun", target_protocol="s3"), fsspec.filesystem("forerun", target_protocol="s3", anon=True)):
        assert fs.cat_file(keyless) == content and fs.ls(keyless, detail=False) == [keyless]
        assert fs.fs.anon and fs.open(keyless)._handle.name == f"s3://{keyless}"
        assert pickle.loads(pickle.dumps(fs)).cat_file(keyless) == content
    # A file system that the program has made is left as it is.
    with pytest.raises(exceptions.NoCredentialsError):
        fsspec.filesystem("forerun", fs=fsspec.filesystem("s3")).info(keyless)


def test_keys_that_are_there_sign_and_pandas_may_ask_for_none(keyless, s3_options, reset, monkeypatch):
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "testing")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "testing")
    fs = fsspec.filesystem("forerun", target_protocol="s3", target_options={"skip_instance_cache": True})
    assert not fs.fs.anon
    assert native.reached(fs.fs, keyless).variables["AWS_ACCESS_KEY_ID"] == "testing"
    # As pandas does where a store has refused.
    asked = fsspec.open(f"forerun::s3://{keyless}", anon=True)
    assert asked.fs.fs.anon
    with asked as file:
        assert file.read(3) == b"a,b"


class Stand:
    """Attributes of a file system that is not installed."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __getattr__(self, _):
        return None


def test_tokens_and_keys_of_gcsfs_and_adlfs_are_taken_over_or_left_to_them(tmp_path):
    key = tmp_path / "key.json"
    key.write_text("{}")

    def google(token, found=True, **attributes):
        credentials = Stand(token=token, credentials=found or None)
        return Stand(**{"credentials": credentials, "_location": "https://storage.googleapis.com", **attributes})

    home = {"HOME": os.devnull}
    assert native._gs(google(str(key)), "b/k").variables == home | {"GOOGLE_APPLICATION_CREDENTIALS": str(key)}
    assert native._gs(google("ya29.token"), "b/k").variables == home | {"GOOGLE_BEARER_TOKEN": "ya29.token"}
    # Of a search that found nothing, too.
    for token in ("anon", None):
        assert native._gs(google(token, found=False), "b/k") == ("gs://b/k", home, False)
    emulated = google("anon", found=False, _location="http://127.0.0.1:4443/")
    assert native._gs(emulated, "b/k").variables == home | {"GOOGLE_BASE_URL": "http://127.0.0.1:4443"}
    for left, named in (
        (google(None), "token"),
        (google("cloud"), "token"),
        (google("google_default"), "token"),
        (google("anon", found=False, requester_pays=True), "requester_pays"),
        (google("anon", found=False, session_kwargs={"trust_env": True}), "session_kwargs"),
        (google("anon", found=False, version_aware=True), "version_aware"),
        (google("anon", found=False, _use_client_cert=True), "_use_client_cert"),
    ):
        with pytest.raises(native.UnknownOptionError, match=named):
            native._gs(left, "b/k")
    account = {"account_name": "a"}
    assert native._az(Stand(**account, anon=True, account_host="h.net"), "c/k").variables["AZURE_STORAGE_ENDPOINT"] == "https://h.net"
    string = "AccountName=n;AccountKey=a2V5;EndpointSuffix=core.windows.net"
    assert native._az(Stand(**account, account_key="k", connection_string=string), "c/k").variables == {
        **home,
        "AZURE_STORAGE_ACCOUNT_NAME": "n",
        "AZURE_STORAGE_ACCOUNT_KEY": "a2V5",
        "AZURE_STORAGE_ENDPOINT": "https://n.blob.core.windows.net",
    }
    assert native._az(Stand(**account, account_key="k"), "c/k").variables["AZURE_STORAGE_ACCOUNT_KEY"] == "k"
    assert native._az(Stand(**account, sas_token="s"), "c/k").variables["AZURE_STORAGE_SAS_TOKEN"] == "s"
    assert native._az(Stand(**account, anon=True), "c/k").url == "az://c/k"
    for left, named in (
        (Stand(**account), "credentials of the environment"),
        (Stand(**account, connection_string="UseDevelopmentStorage=true"), "connection_string: usedevelopmentstorage"),
        (Stand(**account, connection_string="AccountKey=k"), "account_name"),
        (Stand(account_key="k"), "account_name"),
        (Stand(**account, account_key="k", client_id="i"), "client_id"),
        # With the credential that adlfs makes of a service principal.
        (Stand(**account, client_id="i", credential=object()), "client_id"),
        (Stand(**account, credential=object()), "credential"),
        (Stand(**account, account_key="k", request_session=object()), "request_session"),
        (Stand(**account, account_key="k", location_mode="secondary"), "location_mode"),
        (Stand(**account, account_key="k", version_aware=True), "version_aware"),
    ):
        with pytest.raises(native.UnknownOptionError, match=named):
            native._az(left, "c/k")


@pytest.fixture
def recorded(tmp_path):
    """A server of a folder with ranges; its address, and the path and the authorization of each request."""
    requests = []

    class Recording(Ranges):
        def answer(self, is_head):
            requests.append((self.path, self.headers.get("Authorization", "")))
            super().answer(is_head)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Recording, directory=tmp_path))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", requests
    server.shutdown()
    server.server_close()


def read_by_the_engine(target, path, content):
    fs = fsspec.filesystem("forerun", fs=target, engine=forerun.Engine())
    with fs.open(path) as file:
        assert file._handle.name.split("://")[1] == path
        assert file.read() == content
    assert fs.cat_file(path, 5, 10) == content[5:10]


@pytest.mark.parametrize("given", ["key", "token", "nothing"])
def test_an_account_of_adlfs_is_read_by_the_engine_with_its_own_rights(recorded, tmp_path, given, reset):
    pytest.importorskip("adlfs", reason="adlfs is not installed; `make libraries` fetches it")
    address, requests = recorded
    content = bytes(range(256)) * 2000
    (tmp_path / "account" / "container").mkdir(parents=True)
    (tmp_path / "account" / "container" / "key").write_bytes(content)
    right = {"key": "AccountKey=a2V5;", "token": "SharedAccessSignature=sv=2024&sig=abc%3D;", "nothing": ""}[given]
    string = f"AccountName=account;{right}BlobEndpoint={address}/account;"
    target = fsspec.filesystem("az", connection_string=string, skip_instance_cache=True)
    read_by_the_engine(target, "container/key", content)
    assert requests
    for path, authorization in requests:
        assert authorization.startswith("SharedKey account:") == (given == "key")
        assert ("sig=abc%3D" in path) == (given == "token")


@pytest.mark.parametrize("way", ["option", "variable"])
def test_an_endpoint_of_gcsfs_is_that_of_the_engine(recorded, tmp_path, way, monkeypatch, reset):
    pytest.importorskip("gcsfs", reason="gcsfs is not installed; `make libraries` fetches it")
    address, requests = recorded
    content = bytes(range(256)) * 2000
    (tmp_path / "bucket").mkdir()
    (tmp_path / "bucket" / "key").write_bytes(content)
    if way == "variable":
        monkeypatch.setenv("STORAGE_EMULATOR_HOST", address)
    options = {"endpoint_url": address} if way == "option" else {}
    target = fsspec.filesystem("gs", token="anon", **options, skip_instance_cache=True)
    read_by_the_engine(target, "bucket/key", content)
    assert {authorization for _, authorization in requests} == {""}
    # As gcsfs has it of a text that is no file.
    target.credentials.token, target.credentials.credentials = "ya29.token", object()
    read_by_the_engine(target, "bucket/key", content)
    assert requests[-1][1] == "Bearer ya29.token"


def test_an_object_of_http_without_a_strong_etag_is_read_by_the_target(http, tmp_path, reset):
    target, address = http
    for name in ("tagged", "untagged"):
        (tmp_path / "folder").mkdir(exist_ok=True)
        (tmp_path / "folder" / name).write_bytes(name.encode() * 1000)
        fs = fsspec.filesystem("forerun", fs=target)
        with fs.open(f"{address}/{name}") as file:
            assert file.read() == name.encode() * 1000
            assert file._handle.engine is fs.engine
    target = fsspec.filesystem("http", headers={"x": "y"}, skip_instance_cache=True)
    with pytest.raises(native.UnknownOptionError, match="kwargs"):
        native.reached(target, address)


CONFIG = """
[default]
region = eu-north-1
[profile one]
region = eu-west-3
endpoint_url = http://127.0.0.1:9/one
[profile two]
services = local
s3 =
    addressing_style = path
[services local]
s3 =
    endpoint_url = http://127.0.0.1:9/two
[profile three]
s3 =
    addressing_style = virtual
"""

KEYS = """
[one]
aws_access_key_id = of-one
aws_secret_access_key = secret-of-one
[two]
aws_access_key_id = of-two
aws_secret_access_key = secret-of-two
aws_session_token = token-of-two
[three]
aws_access_key_id = of-three
aws_secret_access_key = secret-of-three
"""

ENDPOINT = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("variables", "options"),
    [
        ({"AWS_ENDPOINT_URL": ENDPOINT}, {"key": "k", "secret": "s"}),
        ({"AWS_ENDPOINT_URL": "http://other", "AWS_ENDPOINT_URL_S3": ENDPOINT}, {"key": "k", "secret": "s", "token": "t"}),
        ({"AWS_ENDPOINT_URL": "http://other"}, {"endpoint_url": ENDPOINT, "key": "k", "secret": "s"}),
        ({"AWS_ENDPOINT_URL": ENDPOINT, "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"}, {"key": "k", "secret": "s"}),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}, {"endpoint_url": ENDPOINT}),
        ({"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b", "AWS_SESSION_TOKEN": "c"}, {"endpoint_url": ENDPOINT}),
        ({"AWS_DEFAULT_REGION": "us-west-2"}, {"endpoint_url": ENDPOINT, "key": "k", "secret": "s"}),
        ({}, {"client_kwargs": {"endpoint_url": ENDPOINT, "region_name": "ap-south-1"}, "key": "k", "secret": "s"}),
        ({}, {"client_kwargs": {"aws_access_key_id": "k", "aws_secret_access_key": "s"}, "endpoint_url": ENDPOINT}),
        ({}, {"endpoint_url": ENDPOINT, "anon": True}),
        ({}, {"profile": "one"}),
        ({}, {"profile": "two"}),
        ({}, {"profile": "three", "endpoint_url": ENDPOINT}),
        ({"AWS_PROFILE": "one"}, {"endpoint_url": ENDPOINT, "requester_pays": True}),
        ({}, {"profile": "one", "config_kwargs": {"s3": {"addressing_style": "path"}}}),
        ({}, {"endpoint_url": ENDPOINT, "key": "k", "secret": "s", "config_kwargs": {"s3": {"use_accelerate_endpoint": True}}}),
        ({}, {"key": "k", "secret": "s"}),
    ],
)
def test_what_is_taken_over_from_s3fs_is_the_same_without_its_client(monkeypatch, tmp_path, variables, options):
    s3fs = pytest.importorskip("s3fs")
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    (tmp_path / "config").write_text(CONFIG)
    (tmp_path / "keys").write_text(KEYS)
    monkeypatch.setenv("AWS_CONFIG_FILE", str(tmp_path / "config"))
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", str(tmp_path / "keys"))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in variables.items():
        monkeypatch.setenv(name, value)

    def taken(has_client):
        fs = s3fs.S3FileSystem(skip_instance_cache=True, **options)
        if has_client:
            fs.connect()
        try:
            return native.reached(fs, "bucket/key"), native._has_client(fs)
        except native.UnknownOptionError as error:
            return str(error), native._has_client(fs)

    without, made = taken(False)
    assert without == taken(True)[0]
    # Amazon's own endpoint is a matter of botocore's tables.
    is_given = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS" not in variables and (variables or options.keys() != {"key", "secret"})
    assert made != bool(is_given)
