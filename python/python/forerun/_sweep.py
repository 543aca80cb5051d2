"""Sweeps on an executor of the program's: the runs of a plan, a future each.

Problem: `forerun sweep` uses one machine; clusters have executors of their own, whose workers die. Mechanism: a run travels as
text, and comes back as its row. So many futures are under way at a time; each row is written and handed out as it ends. A run
whose worker was lost has a row that says so, which the next sweep tries again, and the others go on.

A killed process breaks a whole `ProcessPoolExecutor` with all its futures. The pool is made anew, and the runs that were under way
go one at a time, so that one which kills its worker is known: it alone has the row.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Any

from . import _forerun
from ._simulate import Method, Row

# A run: its key, and itself as text.
_Cell = tuple[str, str]

# Runs under way on an executor that does not say how many workers it has.
UNDER_WAY = 64


def _digest(method: Method) -> str:
    """A digest of a method's source, or where there is none of its name."""
    import hashlib
    import inspect

    try:
        source = inspect.getsource(method)
    except (OSError, TypeError):
        source = f"{method.__module__}.{getattr(method, '__qualname__', method)}"
    return hashlib.sha256(source.encode()).hexdigest()


def run(version: str, cell: str, stamp: str, methods: dict[str, tuple[Method, str]]) -> str:
    """Makes a row; called by workers."""
    if version != _forerun.__version__:
        why = f"the worker has forerun {_forerun.__version__}, the sweep {version}"
        return _forerun.failed_planned(cell, stamp, why)
    return _forerun.run_planned(cell, stamp, methods)


def sweep(
    plan: str | os.PathLike[str],
    *,
    rows: str | os.PathLike[str] | None = None,
    executor: Any = None,
    shard: tuple[int, int] = (1, 1),
    methods: Mapping[str, Method] | None = None,
) -> Iterator[Row]:
    """The rows of a plan of `forerun sweep`, each as its run ends.

    `rows` is a file as of `forerun sweep --output`: rows are appended to it, and runs that it has a result of are left out. Without
    it nothing is written. `executor` runs them: any of `concurrent.futures`, a client of `dask.distributed`, or another with
    its `submit`; by default threads, one for each processor. `shard` is the part of the runs, as (3, 16). `methods` are reclaim
    methods of the program's (see `Reclaim`), by the names that the plan has for them; for other processes they must be
    importable there. A run that failed, or lost its worker, has a row with the column `error`.
    """
    number, of = shard
    if not 1 <= number <= of:
        raise ValueError(f"shard of {shard}: must be a part and the number of parts, as (3, 16)")
    own = {name: (method, _digest(method)) for name, method in (methods or {}).items()}
    stamp, cells = _forerun.planned(os.fspath(plan), _forerun.__file__, own)
    file = None if rows is None else _forerun.Rows(os.fspath(rows))
    mine = [cell for at, cell in enumerate(cells) if at % of == number - 1]
    left = [(key, cell) for key, cell in mine if file is None or not file.has(key)]
    return _rows(_Runs(executor, stamp, own), left, file)


class _Runs:
    """Runs under way on an executor, which is made anew when it is broken."""

    def __init__(self, executor: Any, stamp: str, own: dict[str, tuple[Method, str]]) -> None:
        from concurrent.futures import ThreadPoolExecutor
        from queue import SimpleQueue

        self.executor: Any = executor or ThreadPoolExecutor(os.cpu_count() or 1)
        # Shut down at the end, as it was made here.
        self.is_ours = executor is None
        self.stamp, self.own = stamp, own
        # By future: its run, the executor it is on, and whether no other run is under way.
        self.under_way: dict[Any, tuple[_Cell, Any, bool]] = {}
        self.ended: SimpleQueue[Any] = SimpleQueue()

    def start(self, cell: _Cell, is_alone: bool) -> None:
        from concurrent.futures import BrokenExecutor

        work = (run, _forerun.__version__, cell[1], self.stamp, self.own)
        try:
            future = self.executor.submit(*work)
        except BrokenExecutor:
            self.renew(self.executor)
            future = self.executor.submit(*work)
        self.under_way[future] = (cell, self.executor, is_alone)
        future.add_done_callback(self.ended.put)

    def has_room(self) -> bool:
        """Whether another run may start: so many that no worker waits for its next one, or one that is alone."""
        workers = getattr(self.executor, "_max_workers", None)
        most = UNDER_WAY if workers is None else 2 * int(workers)
        return len(self.under_way) < most and not any(alone for *_, alone in self.under_way.values())

    def renew(self, broken: Any) -> None:
        """Puts an executor like it in the place of one that is broken."""
        if broken is not self.executor:
            return
        names = ("_max_workers", "_mp_context", "_initializer", "_initargs")
        values = {name[1:]: getattr(broken, name) for name in names if hasattr(broken, name)}
        if (most := getattr(broken, "_max_tasks_per_child", None)) is not None:
            values["max_tasks_per_child"] = most
        self.executor = type(broken)(**values)
        if self.is_ours:
            broken.shutdown(wait=False)
        self.is_ours = True

    def end(self) -> None:
        for future in self.under_way:
            future.cancel()
        if self.is_ours:
            self.executor.shutdown(wait=True)


def _rows(runs: _Runs, left: list[_Cell], file: Any) -> Iterator[Row]:
    import json
    from concurrent.futures import BrokenExecutor

    waiting, suspects = deque(left), deque[_Cell]()
    try:
        while waiting or suspects or runs.under_way:
            if suspects and not runs.under_way:
                runs.start(suspects.popleft(), is_alone=True)
            while waiting and not suspects and runs.has_room():
                runs.start(waiting.popleft(), is_alone=False)
            future = runs.ended.get()
            cell, executor, is_alone = runs.under_way.pop(future)
            try:
                row = future.result()
            except Exception as error:
                if isinstance(error, BrokenExecutor):
                    runs.renew(executor)
                    if not is_alone:
                        suspects.append(cell)
                        continue
                why = f"the run was lost: {type(error).__name__}: {error}"
                row = _forerun.failed_planned(cell[1], runs.stamp, why)
            if file is not None:
                file.append(row)
            yield json.loads(row)
    finally:
        runs.end()
