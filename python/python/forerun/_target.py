"""Methods of a file system that its target answers, by the target's own paths.

`forerun.fsspec.ForerunFileSystem` gets each of them by name: `fs.info("forerun://b/k")` is `fs.fs.info("b/k")`. Those
that write are noted, because times of files tell versions only of a target that is not written to through it.
"""

import functools
import inspect
from collections.abc import Callable, Iterator
from typing import Any

from fsspec.spec import AbstractFileSystem

from ._handles import token, written
from ._turns import turn_of

# By the parameters that are paths.
_READS = {
    ("path",): "checksum created du exists expand_path find glob info isdir lexists ls sign "
    "ukey walk tree",
    ("paths",): "sizes",
}
_WRITES = {
    ("path",): "mkdir makedirs rmdir rm rm_file _rm pipe pipe_file touch",
    ("path1", "path2"): "cp_file copy mv",
    ("rpath",): "put put_file",
}

# The names of those that write nothing.
READS = {name for names in _READS.values() for name in names.split()}


def methods() -> Iterator[tuple[str, Callable[..., Any]]]:
    """The methods with their names. Targets that one of them has written to are noted in `written`."""
    for known, writes in ((_READS, False), (_WRITES, True)):
        for paths, names in known.items():
            for name in names.split():
                yield name, _of_target(name, paths, writes)


def _of_target(name: str, paths: tuple[str, ...], writes: bool) -> Callable[..., Any]:
    known: Any = getattr(AbstractFileSystem, name)
    places = list(inspect.signature(known).parameters)

    @functools.wraps(known)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if writes:
            written.add(token(self.fs))
            self._forget()
        given: list[Any] = list(args)
        for path in paths:
            place = places.index(path) - 1
            if place < len(given):
                given[place] = self._below(given[place])
            elif path in kwargs:
                kwargs[path] = self._below(kwargs[path])
        with turn_of(self.fs):
            told = getattr(self.fs, name)(*given, **kwargs)
        return _in_turns(self.fs, iter(told)) if name == "walk" else told

    return method


def _in_turns(fs: AbstractFileSystem, told: Iterator[Any]) -> Iterator[Any]:
    """The items of an iterator of a target, with a turn for each step."""
    end = object()
    while True:
        with turn_of(fs):
            one = next(told, end)
        if one is end:
            return
        yield one
