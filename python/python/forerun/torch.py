"""torch: the order of an epoch announced to the engine before it is read.

A shuffled epoch looks random to any readahead, and is known beforehand: it follows from the
seed and the epoch alone. Each process that reads (the program, or each worker of a `DataLoader`)
computes its part of the order, and announces it to its own engine, some samples ahead; towards the
end of an epoch that is the beginning of the next one.

    loader = forerun.torch.data_loader(dataset, locate, batch_size=64, seed=7, num_workers=4)
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        for batch in loader: ...

`locate(index)` says where a sample lies, as (file, offset, length), with a file of `forerun.open`
made in the process that calls, a path or an address. A worker's engine gets its share of the memory.

`loader.state_dict()` is the place within an epoch, from which a loader in another process goes on after
`load_state_dict`.

Any other order (`sampler=`, `batch_sampler=`) is announced by the program, which asks the sampler ahead: the indices of a
batch tell its worker the samples of later ones.

Only `data_loader` imports torch; samplers and datasets here are plain classes of its protocol.

Limits: batches dealt to workers in turn, as `DataLoader` does it by default, and of one size unless they come of a
batch sampler. Without a sampler, a worker that lives for several epochs (`persistent_workers`) takes the next epoch to be
the number after.
"""

import copy
import operator
import os
import random
import sys
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from itertools import islice
from typing import Any, cast

from ._announce import AHEAD, Announcer, LookAhead, MapDataset, Place, ToldDataset, batched
from ._default import default_engine
from ._folder import Folder, image, place_of
from ._forerun import Engine
from ._open import BufferedFile
from ._open import open as _open
from ._resume import Resumable
from ._shared import holds

__all__ = [
    "Announcer",
    "Folder",
    "HintedDataset",
    "LookAhead",
    "Plan",
    "Sampler",
    "Shards",
    "ToldDataset",
    "data_loader",
    "image",
    "open_shards",
    "share_memory",
]


@dataclass(frozen=True)
class Plan:
    """The order of every epoch: a pure function of these values, the same in every process.

    Each rank has as many samples as any other: the order is filled up from its beginning.

    >>> plan = Plan(samples=10, seed=7, rank=0, world_size=2)
    >>> other = Plan(samples=10, seed=7, rank=1, world_size=2)
    >>> sorted(plan.order(0) + other.order(0)) == list(range(10))
    True
    >>> plan.order(0) == plan.order(1)
    False
    """

    samples: int
    seed: int = 0
    rank: int = 0
    world_size: int = 1
    batch_size: int = 1
    shuffle: bool = True
    drop_last: bool = False

    def __post_init__(self) -> None:
        for name, least in (("samples", 0), ("world_size", 1), ("batch_size", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} of {getattr(self, name)}: must be at least {least}")
        if not 0 <= self.rank < self.world_size:
            raise ValueError(f"rank of {self.rank}: must lie from 0 to {self.world_size - 1}")

    def __len__(self) -> int:
        return -(-self.samples // self.world_size)

    def order(self, epoch: int) -> list[int]:
        """The samples of this rank in an epoch."""
        order = list(range(self.samples))
        if self.shuffle:
            random.Random(f"forerun {self.seed} {epoch}").shuffle(order)
        missing = len(self) * self.world_size - self.samples
        order += (order * (missing // max(self.samples, 1) + 1))[:missing]
        return order[self.rank :: self.world_size]

    def order_of_worker(self, epoch: int, worker: int, workers: int, first: int = 0) -> list[int]:
        """Those that one worker reads: whole batches, dealt in turn from the first that is not left out.

        >>> plan = Plan(samples=8, batch_size=2, shuffle=False)
        >>> plan.order_of_worker(0, worker=1, workers=2)
        [2, 3, 6, 7]
        """
        order, size = self.order(epoch), self.batch_size
        if self.drop_last:
            order = order[: len(order) // size * size]
        starts = range((first + worker) * size, len(order), workers * size)
        return [index for start in starts for index in order[start : start + size]]


class Sampler:
    """Gives out the order of a plan; `set_epoch` before each epoch, as for `DistributedSampler`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.epoch = 0
        # Batches at the beginning of the next iteration that are left out.
        self.first = 0
        self._followers: list[HintedDataset] = []

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next iteration."""
        self.epoch = epoch
        for dataset in self._followers:
            dataset.epoch = epoch

    def leave_out(self, batches: int) -> None:
        """Has the next iteration begin behind so many batches."""
        self.first = batches
        for dataset in self._followers:
            dataset.leave_out(batches)

    def follow(self, dataset: "HintedDataset") -> None:
        """Has this dataset, and its copies in workers made from now on, follow the epoch."""
        self._followers.append(dataset)
        dataset.epoch = self.epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self.plan.order(self.epoch)[self.first * self.plan.batch_size :])

    def __len__(self) -> int:
        return len(self.plan)


# So many reads that come out of turn are an order that was left: it is looked for, again after twice as many. Reads in
# the order of so many places are found there.
_LOST, _ALIKE = 64, 8
# So many epochs behind the one that was being read are looked through, the next one in any case, of so many samples in
# all: to shuffle an order takes 0.7 us a sample. No search comes later than behind so many reads.
_EPOCHS_MAX, _SAMPLES_MAX, _PATIENCE_MAX = 8, 1_000_000, 512


def _worker() -> tuple[int, int]:
    """The number of this worker of a DataLoader, and how many there are; (0, 1) in no worker."""
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data else None
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


class HintedDataset:
    """A map-style dataset whose reads are announced in the process that makes them.

    Without `locate` the dataset says where its samples lie, as for `data_loader`.
    """

    def __init__(
        self,
        dataset: MapDataset,
        plan: Plan,
        locate: Callable[[int], Place | Sequence[Place]] | None = None,
        *,
        engine: Engine | None = None,
        ahead: int = AHEAD,
        worker: Callable[[], tuple[int, int]] = _worker,
    ) -> None:
        self.dataset = dataset
        self.plan = plan
        self.locate = locate if locate is not None else partial(place_of, dataset)
        self.engine = engine
        self.ahead = ahead
        self.worker = worker
        self.epoch = 0
        # Batches at the beginning of that epoch that are left out.
        self.first = 0
        self._announcer: Announcer | None = None
        self._made_for: tuple[int, int, int] | None = None
        # Epochs in the order of the announcer, each with its end there.
        self._ends: list[tuple[int, int]] = []
        # The step from an epoch to the one after it: 0 where a program reads the same order again.
        self._step = 1
        self._last: deque[int] = deque(maxlen=_ALIKE)
        self._patience = _LOST

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self._reading(index)]

    @property
    def __getitems__(self) -> Callable[[Sequence[int]], Any]:
        """A batch at once, where the dataset has this method, which torch looks for."""
        return batched(self.dataset, self._reading)

    def _reading(self, index: int) -> int:
        announcer = self.announcer()
        self._last.append(index)
        if self._patience <= min(announcer.lost, _PATIENCE_MAX):
            announcer = self._find(announcer)
        announcer.reading(index)
        return index

    def _find(self, lost: Announcer) -> Announcer:
        """The announcer from where the reads are, in the epoch that was being read, the one after it or that of the program.

        An epoch that is not read to its end is followed by another one, of which a worker that lives on hears nothing.
        """
        passed = lost.passed
        was = next((epoch for epoch, end in self._ends if passed <= end), self.epoch)
        last = list(self._last)
        behind = max(min(_EPOCHS_MAX, _SAMPLES_MAX // max(len(self.plan), 1)), 1)
        for epoch in dict.fromkeys((*range(was, was + 1 + behind), self.epoch)):
            first = self.first if epoch == self.epoch else 0
            order = self.plan.order_of_worker(epoch, *self.worker(), first)
            ends = range(len(last), len(order) + 1)
            end = next((end for end in ends if order[end - 1] == last[-1] and order[end - len(last) : end] == last), None)
            if end is not None:
                found = self._begin(epoch, first, end - 1, int(epoch > was))
                found.unexpected = lost.unexpected
                return found
        self._patience *= 2
        return lost

    def leave_out(self, batches: int) -> None:
        """Has the order of the epoch, here and in workers made from now on, begin behind so many batches."""
        self.first = batches
        if batches:
            # It may be the second time from the same place.
            self._made_for = None

    def announcer(self) -> Announcer:
        """The announcer of this process, from the present epoch on."""
        now = (os.getpid(), self.epoch, self.first)
        if self._announcer is None or self._made_for != now:
            before = self._made_for and self._made_for[:2]
            follows = before == (now[0], self.epoch - 1) and self.first == 0 and self._step == 1
            # Of an epoch that was not read to its end the rest does not come.
            if self._announcer is None or not follows or (self.epoch - 1, self._announcer.passed) not in self._ends:
                self._begin(self.epoch, self.first)
            self._made_for = now
        return cast(Announcer, self._announcer)

    def _begin(self, epoch: int, first: int, passed: int = 0, step: int = 1) -> Announcer:
        """Begins in an epoch, behind so many batches of all and so many samples of this worker."""
        engine = self.engine if self.engine is not None else default_engine()
        self._ends, self._step, self._patience = [], step, _LOST
        order = self._epochs(epoch, first, passed, self._ends)
        self._announcer = Announcer(engine, order, self.locate, self.ahead)
        return self._announcer

    def _epochs(self, epoch: int, first: int, passed: int, ends: list[tuple[int, int]]) -> Iterator[int]:
        worker, workers = self.worker()
        end = 0
        while True:
            order = self.plan.order_of_worker(epoch, worker, workers, first)[passed:]
            if not order and not first:
                return
            end += len(order)
            ends.append((epoch, end))
            yield from order
            epoch, first, passed = epoch + self._step, 0, 0

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_announcer": None, "_made_for": None, "_ends": []}


def share_memory(engine: Engine, workers: int) -> None:
    """Limits this process's engine to its share of the memory, unless it is limited to less; for `worker_init_fn`.

    The part of a limit that processes share (`FORERUN_MEMORY_SHARED`) stays as it is.
    """
    if workers < 1:
        raise ValueError(f"workers of {workers}: must be at least 1")
    if holds(engine):
        return
    engine.limit_memory(min(engine.memory // workers, engine.memory_limit))


class _Init:
    def __init__(self, engine: Engine | None, workers: int, then: Callable[[int], None] | None):
        self.engine, self.workers, self.then = engine, workers, then

    def __call__(self, worker: int) -> None:
        share_memory(self.engine if self.engine is not None else default_engine(), self.workers)
        if self.then is not None:
            self.then(worker)


def data_loader(
    dataset: MapDataset,
    locate: Callable[[int], Place | Sequence[Place]] | None = None,
    *,
    batch_size: int | None = 1,
    seed: int = 0,
    rank: int = 0,
    world_size: int = 1,
    shuffle: bool | None = None,
    sampler: Iterable[int] | None = None,
    batch_sampler: Iterable[Sequence[int]] | None = None,
    drop_last: bool = False,
    num_workers: int = 0,
    engine: Engine | None = None,
    ahead: int = AHEAD,
    worker_init_fn: Callable[[int], None] | None = None,
    **kwargs: Any,
) -> Any:
    """A `torch.utils.data.DataLoader` whose order is announced; other arguments go to it.

    Without `locate` a dataset says where its samples lie: by a method `locate`, or by lists of paths (`samples`,
    `imgs`), as `Folder` here and `ImageFolder` of torchvision. Its `loader` has to open them with `forerun.open`, as
    `image` does, which takes the place of torchvision's own.

    The order is that of a `Plan`, shuffled unless `shuffle` is False, or of a sampler or a batch sampler of any
    kind, which is asked for `ahead` samples before they are read. Of those an epoch's first samples are announced when it begins.

    It has `state_dict()` and `load_state_dict(state)`, to go on within an epoch: see `forerun._resume`.
    """
    from torch.utils.data import DataLoader

    def loader(data: Any, order: Any, epochs: Any, told: dict[str, Any], **arguments: Any) -> Any:
        made = _resumable(DataLoader)(data, **arguments)
        made._order, made._epochs, made._told = order, epochs, told
        return made

    if locate is None:
        dataset = _by_engine(dataset, engine)
    where = locate if locate is not None else partial(place_of, dataset)
    if locate is None and len(dataset) > 0:
        # A dataset that does not say is refused here, and not in a worker.
        where(0)
    if num_workers > 0:
        worker_init_fn = _Init(engine, num_workers, worker_init_fn)
    options = {"num_workers": num_workers, "worker_init_fn": worker_init_fn, **kwargs}
    if sampler is None and batch_sampler is None and batch_size is not None:
        shuffles = shuffle is None or shuffle
        plan = Plan(len(dataset), seed, rank, world_size, batch_size, shuffles, drop_last)
        hinted = HintedDataset(dataset, plan, where, engine=engine, ahead=ahead)
        ours = Sampler(plan)
        ours.follow(hinted)
        told = {name: getattr(plan, name) for name in _OF_ORDER}
        # The sampler has the protocol of torch's class, whose subclass it cannot be where there is no torch.
        return loader(
            hinted, ours, ours, told, batch_size=batch_size, sampler=ours, drop_last=drop_last, **options
        )
    given = {"seed": seed, "rank": rank, "world_size": world_size - 1, "shuffle": shuffle}
    for name, value in given.items():
        if value:
            raise ValueError(f"{name} given with an order of its own: a sampler has its own {name}")
    telling = ToldDataset(dataset, where, engine=engine, ahead=ahead)
    told = {"samples": len(dataset), "batch_size": batch_size, "drop_last": drop_last}
    if batch_sampler is not None:
        if sampler is not None or drop_last or batch_size != 1:
            raise ValueError("batch_sampler excludes sampler, batch_size and drop_last")
        batches = LookAhead(batch_sampler, ahead, num_workers)
        epochs = batch_sampler if hasattr(batch_sampler, "set_epoch") else getattr(batch_sampler, "sampler", None)
        return loader(telling, batches, epochs, {"samples": len(dataset)}, batch_sampler=batches, **options)
    if sampler is None:
        raise ValueError("batch_size of None: must be at least 1, or there must be a sampler")
    if batch_size is None:
        singles = LookAhead(sampler, ahead, num_workers, singles=True)
        return loader(telling, singles, sampler, told, batch_size=None, sampler=singles, **options)
    batches = LookAhead(_Batches(sampler, batch_size, drop_last), ahead, num_workers)
    return loader(telling, batches, sampler, told, batch_sampler=batches, **options)


# The fields of a plan that the order of an epoch follows from; the rank is left out, so that all load one state.
_OF_ORDER = ("samples", "seed", "world_size", "batch_size", "shuffle", "drop_last")


@cache
def _resumable(kind: Any) -> Any:
    """torch's `DataLoader` with a place, which cannot be a class of this module where there is no torch."""
    return type(kind.__name__, (Resumable, kind), {})


def _by_engine(dataset: Any, engine: Engine | None) -> Any:
    """A dataset, or a subset or a concatenation, without loaders of torchvision's: they open files past the engine."""
    changed: dict[str, Any] = {}
    if _module(getattr(dataset, "loader", None)) == "torchvision.datasets.folder":
        changed["loader"] = partial(image, engine=engine)
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        changed["dataset"] = _by_engine(dataset.dataset, engine)
        if changed["dataset"] is dataset.dataset:
            return dataset
    elif hasattr(dataset, "cumulative_sizes") and hasattr(dataset, "datasets"):
        changed["datasets"] = [_by_engine(one, engine) for one in dataset.datasets]
        if all(map(operator.is_, changed["datasets"], dataset.datasets)):
            return dataset
    if not changed:
        return dataset
    made = copy.copy(dataset)
    vars(made).update(changed)
    return made


def _module(function: Any) -> str | None:
    return getattr(function, "__module__", None)


class _Batches:
    """Batches of a sampler, as `BatchSampler` of torch."""

    def __init__(self, sampler: Iterable[int], batch_size: int, drop_last: bool) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size of {batch_size}: must be at least 1")
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last

    def __iter__(self) -> Iterator[list[int]]:
        order = iter(self.sampler)
        while batch := list(islice(order, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self) -> int:
        samples = len(cast(Any, self.sampler))
        return samples // self.batch_size if self.drop_last else -(-samples // self.batch_size)


def open_shards(
    paths: Sequence[str | os.PathLike[str]], *, engine: Engine | None = None, ahead: int = 2
) -> "Shards":
    """Opens files in turn, for iterable datasets and shards of webdataset, each announced whole.

    `ahead` files are open and announced before the one that is read. Each is closed when the next
    one is asked for. The error of one that cannot be opened is raised in its turn; the next call goes on behind it.
    """
    if ahead < 0:
        raise ValueError(f"ahead of {ahead}: must be at least 0")
    return Shards(paths, engine, ahead)


class Shards:
    """The files of `open_shards`."""

    def __init__(self, paths: Iterable[str | os.PathLike[str]], engine: Engine | None, ahead: int) -> None:
        self._rest, self._engine, self._ahead = iter(paths), engine, ahead
        # The one that is read, and those behind it or why they cannot be opened.
        self._reading: BufferedFile | None = None
        self._opened: deque[BufferedFile | Exception] = deque()

    def __iter__(self) -> "Shards":
        return self

    def __next__(self) -> BufferedFile:
        self._end_reading()
        for path in islice(self._rest, self._ahead + 1 - len(self._opened)):
            self._opened.append(self._open(path))
        if not self._opened:
            raise StopIteration
        file = self._opened.popleft()
        if isinstance(file, Exception):
            try:
                raise file
            finally:
                # The exception has this frame.
                del file
        self._reading = file
        return file

    def _open(self, path: str | os.PathLike[str]) -> BufferedFile | Exception:
        try:
            file = _open(path, engine=self._engine)
        except Exception as error:
            return error
        file.engine.hint([(file, 0, file.size)])
        return file

    def _end_reading(self) -> None:
        if self._reading is not None:
            self._reading.close()
            self._reading = None

    def close(self) -> None:
        """Closes the files that are open; there are none then."""
        self._end_reading()
        self._rest = iter(())
        while self._opened:
            file = self._opened.popleft()
            if not isinstance(file, Exception):
                file.close()

    def __del__(self) -> None:
        # Without paths there are none.
        if hasattr(self, "_opened"):
            self.close()
