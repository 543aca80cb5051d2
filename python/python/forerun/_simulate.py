"""Simulations and counts: the options of the command line, rows as dictionaries, and methods of one's own.

Options are those of `forerun simulate` and `forerun trace count`, with `_` for `-`: they are handed on as text and parsed as the
command line's are, so names, defaults and ranges have one description. `Options` repeats the names for type checkers
alone; a test compares them with the command line's.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, TypedDict, Unpack

from . import _forerun

if TYPE_CHECKING:
    import pandas

Row = dict[str, Any]
_Some = str | int | Iterable[str | int]
_Path = str | os.PathLike[str]


class Reclaim(Protocol):
    """A reclaim method: which block is given up.

    `simulate(reclaim=..)`, `count(policy=..)` and `sweep(methods=..)` take a class, or a function, that makes an object with
    the number of blocks that fit (bytes, where `count` is told `sizes`). Blocks are integers, the same for the same block in the
    whole run. An object may have a method `removed(block)` as well, for blocks that go without having been chosen.
    """

    def inserted(self, block: int, /) -> object:
        """A block is resident from now on."""

    def hit(self, block: int, /) -> object:
        """A resident block is used."""

    def evict(self) -> int:
        """The resident block to give up, which is none of the method's from then on."""


Method = Callable[[int], Reclaim]


class _Reading(TypedDict, total=False):
    trace: _Path
    merge: _Path | Iterable[_Path]
    from_: str
    until: str
    only_devices: _Some
    only_op: str
    only_processes: _Some
    trace_format: str
    sort_window: int
    columns: str
    writes: bool
    trace_memory: _Some


class Options(_Reading, total=False):
    """The options of `simulate`: flags of `forerun simulate`."""

    workload: str
    preset: _Some
    device: str
    device_file: _Path
    scheduler: str
    disks: _Some
    cache_blocks: _Some
    block_bytes: _Some
    batch: int
    horizon: int
    driver: str
    think: str
    place: str
    regions: str
    readers_by: str
    loop: str
    arrivals: str
    fetch_units: int
    warm: _Some
    threads: int
    notice: str
    detect: str
    depth: str
    shape: str
    dispatch: str
    longest_wait: str
    reclaim: str | Method
    next_file: str
    measure: str


class CountOptions(_Reading, total=False):
    """The options of `count`: flags of `forerun trace count`."""

    policy: _Some | Method | Iterable[str | Method]
    cache: _Some
    curve: int
    sample: str
    sizes: bool
    warm_up: int
    block_bytes: _Some


def _words(of: str, call: str, options: Any) -> dict[str, str]:
    """Values as the command line has them, by its names."""
    names = {name for name, *_ in _forerun.options(of)}
    values = {}
    for name, value in options.items():
        if name not in names:
            import difflib

            nearest = ", ".join(difflib.get_close_matches(name, names, cutoff=0.0))
            raise TypeError(f"{call}() has no option {name!r}; the nearest are {nearest}")
        if value is None:
            continue
        values[name.rstrip("_").replace("_", "-")] = _word(name, value)
    return values


def _word(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (str, os.PathLike)):
        return os.fspath(value)
    if isinstance(value, Iterable):
        return ",".join(_word(name, one) for one in value)
    if isinstance(value, float):
        # With a point it would be of another meaning: bytes in place of blocks.
        return str(int(value) if value.is_integer() else value)
    if hasattr(value, "__index__"):
        return str(value)
    raise TypeError(f"{name} must be a value as on the command line or several, not {type(value)}")


def simulations(**options: Unpack[Options]) -> Iterator[Row]:
    """The rows of `simulate`, each as soon as its run has ended and those before it have.

    All options are checked before the first run.
    """
    reclaim: Any = options.get("reclaim")
    own = None
    if callable(reclaim):
        own = reclaim
        options = {name: value for name, value in options.items() if name != "reclaim"}  # type: ignore[assignment]
    simulation = _forerun.Simulation(_words("simulate", "simulate", options), own)
    return _rows(simulation)


def _rows(simulation: _forerun.Simulation) -> Iterator[Row]:
    import json

    runs = range(simulation.runs)
    if simulation.threads == 1 or len(runs) == 1:
        for at in runs:
            yield json.loads(simulation.row(at))
        return
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(simulation.threads) as pool:
        ended = [pool.submit(simulation.row, at) for at in runs]
        try:
            for row in ended:
                yield json.loads(row.result())
        finally:
            pool.shutdown(wait=True, cancel_futures=True)


def simulate(**options: Unpack[Options]) -> list[Row]:
    """Presets over a trace or a workload, on modelled disks, in virtual time.

    A row for each preset, number of disks and cache size, with the columns of `forerun simulate --format json`; times
    are in nanoseconds. Options are the flags of `forerun simulate` with `_` for `-`; several values are a list, or one
    string with commas between. `reclaim` may also be a class of the program's: see `Reclaim`.

    Options and defaults:
    """
    return list(simulations(**options))


def count(**options: Unpack[CountOptions]) -> list[Row]:
    """Misses of replacement policies over a trace, without time: a row for each policy and capacity.

    The columns are those of `forerun trace count --format json`. Options are its flags with `_` for `-`. Policies
    may also be classes of the program's, among the others: see `Reclaim`.

    Options and defaults:
    """
    import json

    policy: Any = options.get("policy")
    default = next(one for name, one, *_ in _forerun.options("count") if name == "policy")
    given = [default] if policy is None else [policy] if isinstance(policy, str) or callable(policy) else policy
    given = list(given)
    names: list[str] = []
    own: dict[str, Any] = {}
    named = {name for one in given if not callable(one) for name in _word("policy", one).split(",")}
    for one in given:
        if callable(one):
            name = getattr(one, "__name__", None) or type(one).__name__
            if own.setdefault(name, one) is not one or name in named:
                raise ValueError(f"policy {one!r}: another one has the name {name!r} as well: give it a __name__ of its own")
            names.append(name)
        else:
            names.append(_word("policy", one))
    values = _words("count", "count", {name: value for name, value in options.items() if name != "policy"})
    return [json.loads(row) for row in _forerun.counted(values, names, own)]


def frame(rows: Iterable[Row]) -> pandas.DataFrame:
    """Rows as a `pandas.DataFrame`, which is imported here."""
    import pandas

    return pandas.DataFrame(list(rows))


def _documented(function: Any, of: str) -> None:
    """Lists the options of the command line in a function's documentation."""
    lines = [
        f"    {name}{'' if default is None else f'={default}'}: {line}"
        for name, default, _, line in _forerun.options(of)
    ]
    if function.__doc__:
        function.__doc__ = function.__doc__.rstrip() + "\n" + "\n".join(lines) + "\n"


_documented(simulate, "simulate")
_documented(count, "count")
