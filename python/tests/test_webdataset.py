"""webdataset with one call, and its table of schemes where it is not installed."""

import io
import sys
import types

import pytest

import forerun
import forerun.webdataset


@pytest.fixture
def gopen(monkeypatch):
    module = types.ModuleType("webdataset.gopen")
    module.gopen_schemes = {"file": open, "s3": None}
    monkeypatch.setitem(sys.modules, "webdataset", types.ModuleType("webdataset"))
    monkeypatch.setitem(sys.modules, "webdataset.gopen", module)
    return module.gopen_schemes


def test_shards_of_the_known_schemes_are_opened_by_the_engine(gopen, path, engine, content):
    forerun.webdataset.register(engine=engine)
    assert set(gopen) == {"file", "s3", "gs", "az", "http", "https"}
    assert gopen["file"] is open
    # Called as webdataset calls it.
    with gopen["s3"](str(path), "rb", 8192, handler=None) as shard:
        assert shard.engine is engine and shard.read() == content
    with pytest.raises(io.UnsupportedOperation, match="mode of 'wb'"):
        gopen["s3"](str(path), "wb")


@pytest.mark.parametrize("schemes", [["hf"], "ftp", [5], "file"])
def test_a_scheme_that_is_not_known_is_refused_by_name(gopen, schemes):
    with pytest.raises(ValueError, match="scheme of .*: must be one of s3, gs, az, http, https"):
        forerun.webdataset.register(schemes=schemes)
    assert gopen == {"file": open, "s3": None}
