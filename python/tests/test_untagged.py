"""Objects of HTTP without a strong ETag: the target reads them, and their folder is not asked again at once."""

import fsspec

from forerun import _handles
from targets import http  # noqa: F401
from test_fsspec_native import reset  # noqa: F401


def test_a_folder_without_strong_etags_is_asked_for_one_once_in_a_while(http, tmp_path, reset, monkeypatch):
    target, address = http
    asked, stored = [], _handles.Handle.stored

    class Handle:
        fetched = staticmethod(_handles.Handle.fetched)

        @staticmethod
        def stored(engine, url, *arguments, **options):
            asked.append(url.rpartition("/")[2])
            return stored(engine, url, *arguments, **options)

    monkeypatch.setattr(_handles, "Handle", Handle)
    (tmp_path / "folder" / "other").mkdir(parents=True, exist_ok=True)
    for name in ("untagged", "tagged", "other/untagged", "other/tagged"):
        (tmp_path / "folder" / name).write_bytes(name.encode() * 1000)
    for name in ("untagged", "untagged", "tagged"):
        fs = fsspec.filesystem("forerun", fs=target)
        assert fs.cat_file(f"{address}/{name}") == name.encode() * 1000
    assert asked == ["untagged"]
    monkeypatch.setattr(_handles, "_UNTAGGED_SECONDS", 0.0)
    assert fs.cat_file(f"{address}/untagged") == b"untagged" * 1000
    assert asked == ["untagged"] * 2
    # A note of one folder is none of another.
    monkeypatch.setattr(_handles, "_UNTAGGED_SECONDS", float("inf"))
    assert fs.cat_file(f"{address}/other/tagged") == b"other/tagged" * 1000
    assert asked.pop() == "tagged"
    # A server with versions of others is asked for each.
    _handles.untagged.clear()
    asked.clear()
    for name in ("tagged", "untagged", "untagged"):
        assert fs.cat_file(f"{address}/{name}") == name.encode() * 1000
    assert asked == ["tagged", "untagged", "untagged"]


def test_notes_of_folders_without_strong_etags_are_bounded(reset, monkeypatch):
    monkeypatch.setattr(_handles, "_UNTAGGED_MAX", 2)
    for name in "abcab":
        _handles._note_untagged(("", name, 0))
    assert [name for _, name, _ in _handles.untagged] == ["a", "b"]
