"""Targets that the engine reads by itself: with their credentials and options, or not at all."""

import errno
import logging

import fsspec
import pytest

import forerun.fsspec
from forerun import native
from targets import http, s3, s3_options  # noqa: F401

SIZE = 300_000


@pytest.fixture
def reset(monkeypatch):
    for name in ("_proved", "_told"):
        monkeypatch.setattr(forerun.fsspec, name, set())


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


def test_the_cache_type_reads_objects_of_s3_by_the_engine(s3, engine, reset):
    target, folder = s3
    put(target, f"{folder}/a", 7)
    for _ in range(2):
        with target.open(f"{folder}/a", cache_type="forerun", cache_options={"engine": engine}) as file:
            assert file.read(10) == b"\7" * 10
            assert file.cache.handle.name.startswith("s3://")


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
    assert forerun.fsspec._native(forerun.default_engine(), target, "bucket/key") is None
    assert named in caplog.text
    caplog.clear()
    assert forerun.fsspec._native(forerun.default_engine(), target, "bucket/key") is None
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


class Stand:
    """Attributes of a file system that is not installed."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)

    def __getattr__(self, _):
        return None


def test_tokens_and_keys_of_gcsfs_and_adlfs_are_taken_over_or_left_to_them(tmp_path):
    key = tmp_path / "key.json"
    key.write_text("{}")
    assert native._gs(Stand(token=str(key)), "b/k").variables["GOOGLE_APPLICATION_CREDENTIALS"] == str(key)
    assert native._gs(Stand(token="anon"), "b/k").url == "gs://b/k"
    for left in (Stand(token=None), Stand(token="cloud"), Stand(token="anon", requester_pays=True)):
        with pytest.raises(native.UnknownOptionError):
            native._gs(left, "b/k")
    account = {"account_name": "a"}
    assert native._az(Stand(**account, account_key="k"), "c/k").variables["AZURE_STORAGE_ACCOUNT_KEY"] == "k"
    assert native._az(Stand(**account, sas_token="s"), "c/k").variables["AZURE_STORAGE_SAS_TOKEN"] == "s"
    assert native._az(Stand(**account, anon=True), "c/k").url == "az://c/k"
    for left in (Stand(**account), Stand(**account, connection_string="x"), Stand(account_key="k")):
        with pytest.raises(native.UnknownOptionError):
            native._az(left, "c/k")


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
