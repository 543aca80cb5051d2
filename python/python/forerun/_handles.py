"""Handles of objects that a file system of fsspec names.

Problem: a target reads in Python, one event loop for all, where the engine has connections of its own; but the target
alone knows what its options mean. Mechanism: a handle by the engine's own client where `forerun.native` finds the way
(`native_handle`), without a question to the store where the details of the object are known (`known_handle`), and one
that reads with a function of the target everywhere else (`target_handle`).

Called by `forerun.fsspec` and its cache.
"""

import contextlib
import errno
import itertools
import logging
import math
import os
import time
from typing import Any

from fsspec.archive import AbstractArchiveFileSystem
from fsspec.spec import AbstractFileSystem
from fsspec.utils import tokenize

from . import native
from ._forerun import Engine, Handle
from ._turns import Fetch, attributes, bears_calls, below, in_turn, keeps_copies, of_each

# Names of an object's version in the details of file systems, the strongest first.
_VERSIONS = ("ETag", "etag", "generation", "version_id", "md5Hash", "content_md5", "checksum")
# A time names a version where nothing is written through this module: two writes may have one time.
_TIMES = ("mtime", "LastModified", "last_modified", "updated")

_logger = logging.getLogger("forerun")
_devices: dict[str, int] = {}
_numbers = itertools.count(1)
# File systems that something was written to, by their tokens.
written: set[str] = set()
_told: set[str] = set()
# Buckets whose objects the engine's own client has opened.
proved: set[tuple[str, int]] = set()
_Folder = tuple[str, str, int]
# Folders in which an object had no version, each with its file system, and when: the target reads, without a question.
untagged: dict[_Folder, float] = {}
# A server that is set up anew is met within this time; a walk through folders takes no more memory than this number.
_UNTAGGED_SECONDS, _UNTAGGED_MAX = 60.0, 1024
# When objects were first opened by a listing, by address; -inf by a question. A listing of s3fs has no end, and bytes that
# are in memory are read without a request, which would tell that their object was replaced.
_opened: dict[str, float] = {}
# A version is believed again for as long as a program takes that opens a file some times; one of more objects than this
# number opens the first of them as if for the first time.
LISTED_SECONDS, _OPENED_MAX = 5.0, 16_384
_unshared = itertools.count()


@of_each
def token(fs: AbstractFileSystem) -> str:
    """The name of a file system: the same for all instances with the same options, which fsspec makes for each thread."""
    kind, own = type(fs), attributes(fs)
    is_usual = kind._fs_token is AbstractFileSystem._fs_token or fs._fs_token == own.get("_fs_token_")
    if not is_usual or "storage_options" not in own:
        return str(fs._fs_token)
    extra = (getattr(kind, name, None) for name in kind._extra_tokenize_attributes)
    return str(tokenize(kind, *own["storage_args"], *extra, **own["storage_options"]))


def _device(fs: AbstractFileSystem) -> int:
    """A number for each file system: requests to one are measured together."""
    return _devices.setdefault(token(fs), next(_numbers))


@of_each
def _archives(fs: AbstractFileSystem) -> tuple[int, ...]:
    """A number for each archive that a file system reads, as it is open: one that is written anew may have the same times."""
    own = attributes(fs)
    is_one = isinstance(fs, AbstractArchiveFileSystem) or "fo" in (own.get("storage_options") or {})
    return (*([next(_unshared)] if is_one else []), *itertools.chain(*map(_archives, below(fs))))


def _version(fs: AbstractFileSystem | None, details: dict[str, Any]) -> str:
    """The version of an object, or one that no other file has."""
    has_times = fs is None or token(fs) not in written
    for key in (*_VERSIONS, *(_TIMES if has_times else ())):
        if details.get(key):
            of = "" if fs is None else ",".join(map(str, _archives(fs)))
            return f"{of} {key}={details[key]},size={details.get('size')}"
    return f"unknown-{os.getpid()}-{next(_unshared)}"


def target_handle(
    engine: Engine,
    fetch: Fetch,
    fs: AbstractFileSystem | None,
    path: str,
    size: int,
    details: dict[str, Any],
) -> Handle:
    """An object that a function of its target reads: in turn, if the target bears one call at a time."""
    device = 0 if fs is None else _device(fs)
    # A path is one object in its file system alone.
    version = f"{device} {_version(fs, details)}"
    if fs is not None and (bears_calls(fs) or keeps_copies(fs)):
        return Handle.fetched(engine, fetch, path, version, size, device=device)
    return Handle.fetched(engine, in_turn(fs, fetch), path, version, size, device=device, requests=1)


def native_handle(
    engine: Engine,
    fs: AbstractFileSystem,
    path: str,
    details: dict[str, Any] | None = None,
    part: dict[str, Any] | None = None,
) -> Handle | None:
    """An object by the engine's own connections; None where the target reads it.

    `details` are those of now; a `part` comes with the answer to the opening, if there is one. Raises `FileNotFoundError`
    where the store says that there is no such object: zarr looks for three of which two are never there.
    """
    known = None
    try:
        known = native.reached(fs, path)
        if known is None or _is_untagged(_folder(fs, known)):
            return None
        # The first object of a bucket is asked for in any case: the target reads where that fails.
        if known.bucket in proved:
            for one in [details] if details else fs._ls_from_cache(path) or []:
                if one["name"] == path and (handle := known_handle(engine, known, one)):
                    return handle
                if one["name"] == path and known.knows_tags and one.get("ETag"):
                    # It was opened before: where its version is the same, its bytes may be in memory.
                    part = None
        handle = Handle.stored(engine, known.url, known.variables, **(part or {}))
        _opened_at(known.url, -math.inf)
        proved.add(known.bucket)
        return handle
    except native.UnknownOptionError as option:
        tell(fs, "option", str(option))
    except FileNotFoundError as error:
        # Of a missing bucket the target tells in its own words.
        if error.strerror == os.strerror(errno.ENOENT):
            raise FileNotFoundError(errno.ENOENT, error.strerror, path) from None
    except (OSError, ValueError) as error:
        # A server that has versions of other objects is asked for the next one.
        if known is not None and known.bucket not in proved and _NO_VERSION in str(error):
            _note_untagged(_folder(fs, known))
        tell(fs, "error", str(error))
    return None


# Of the engine's client.
_NO_VERSION = "neither a strong ETag nor a version"


def _opened_at(url: str, now: float) -> float:
    while len(_opened) >= _OPENED_MAX and url not in _opened:
        # Other threads do so, too.
        with contextlib.suppress(KeyError, RuntimeError, StopIteration):
            del _opened[next(iter(_opened))]
    return _opened.setdefault(url, now)


def _folder(fs: AbstractFileSystem, known: native.Reached) -> _Folder:
    return token(fs), known.url.rsplit("/", 1)[0], known.bucket[1]


def _is_untagged(folder: _Folder) -> bool:
    noted = untagged.get(folder)
    return noted is not None and time.monotonic() - noted < _UNTAGGED_SECONDS


def _note_untagged(folder: _Folder) -> None:
    # Of a copy: other threads change it meanwhile.
    for before in list(untagged)[: 1 - _UNTAGGED_MAX]:
        untagged.pop(before, None)
    untagged.pop(folder, None)
    untagged[folder] = time.monotonic()


def known_handle(
    engine: Engine, known: native.Reached, details: dict[str, Any], is_ahead: bool = False
) -> Handle | None:
    """An object of which the details are known, opened without a question to its store; None where one is needed."""
    if not known.knows_tags or details.get("type", "file") != "file" or not details.get("ETag"):
        return None
    now = time.monotonic()
    if now - _opened_at(known.url, now) >= LISTED_SECONDS and not is_ahead:
        return None
    return Handle.stored(engine, known.url, known.variables, size=details["size"], e_tag=details["ETag"])


def listed_handle(engine: Engine, fs: AbstractFileSystem, details: dict[str, Any]) -> Handle | None:
    """An object of a listing, opened without a question to its store; None where one would be needed."""
    try:
        known = native.reached(fs, details["name"])
        return known and known_handle(engine, known, details, is_ahead=True)
    except (native.UnknownOptionError, OSError, ValueError):
        # The opening of that file tells why.
        return None


def tell(fs: AbstractFileSystem, kind: str, why: str) -> None:
    """Tells once that a file system reads objects by itself."""
    if (key := f"{token(fs)} {kind}") not in _told:
        _told.add(key)
        _logger.warning("%s reads by itself: %s: %s", type(fs).__name__, kind, why)
