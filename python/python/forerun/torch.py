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
made in the process that calls. A worker's engine gets its share of the memory.

Only `data_loader` imports torch; samplers and datasets here are plain classes of its protocol.

Limits: batches of one size, dealt to workers in turn, as `DataLoader` does it by default. A worker
that lives for several epochs (`persistent_workers`) takes the next epoch to be the number after.
"""

import os
import random
import sys
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol, cast

from ._default import default_engine
from ._file import File
from ._forerun import Engine
from ._open import BufferedFile
from ._open import open as _open

Place = tuple[File | BufferedFile | str | bytes | os.PathLike[str] | os.PathLike[bytes], int, int]

_Sample = tuple[int, list[Place]]

_AHEAD = 1024

# Samples of the first lot: as many as are opened at once.
_FIRST = 64


class MapDataset(Protocol):
    """A dataset with numbered samples."""

    def __getitem__(self, index: int, /) -> Any:
        """A sample."""

    def __len__(self) -> int:
        """How many samples there are."""


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

    def order_of_worker(self, epoch: int, worker: int, workers: int) -> list[int]:
        """Those that one worker reads: whole batches, dealt in turn.

        >>> plan = Plan(samples=8, batch_size=2, shuffle=False)
        >>> plan.order_of_worker(0, worker=1, workers=2)
        [2, 3, 6, 7]
        """
        order, size = self.order(epoch), self.batch_size
        if self.drop_last:
            order = order[: len(order) // size * size]
        starts = range(worker * size, len(order), workers * size)
        return [index for start in starts for index in order[start : start + size]]


class Sampler:
    """Gives out the order of a plan; `set_epoch` before each epoch, as for `DistributedSampler`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.epoch = 0
        self._followers: list[HintedDataset] = []

    def set_epoch(self, epoch: int) -> None:
        """The epoch of the next iteration."""
        self.epoch = epoch
        for dataset in self._followers:
            dataset.epoch = epoch

    def follow(self, dataset: "HintedDataset") -> None:
        """Has this dataset, and its copies in workers made from now on, follow the epoch."""
        self._followers.append(dataset)
        dataset.epoch = self.epoch

    def __iter__(self) -> Iterator[int]:
        return iter(self.plan.order(self.epoch))

    def __len__(self) -> int:
        return len(self.plan)


class Announcer:
    """Announces an order to an engine, at most `ahead` samples before the reads.

    Samples that have addresses are announced by a thread, because their store is asked for each object first; at most
    one is at work, and a sample that is read meanwhile is announced no more. The first lot is small, and each has at most as many samples as were
    announced before, so that the first read need not wait for many.
    """

    def __init__(
        self,
        engine: Engine,
        order: Iterable[int],
        locate: Callable[[int], Place | Sequence[Place]],
        ahead: int = _AHEAD,
    ) -> None:
        if ahead < 1:
            raise ValueError(f"ahead of {ahead}: must be at least 1")
        self._engine = engine
        self._order = iter(order)
        self._locate = locate
        self._ahead = ahead
        self._located = 0
        # Samples in the order: announced, being announced, to be announced, each until it is read.
        self._lock = threading.Lock()
        self._announced: deque[int] = deque()
        self._leaving: deque[_Sample] = deque()
        self._waiting: deque[_Sample] = deque()
        self._is_leaving = False
        # The next lot goes once so many are announced and unread.
        self._few = 0
        self._failure: BaseException | None = None
        self.unexpected = 0

    def reading(self, index: int) -> None:
        """This sample is about to be read."""
        with self._lock:
            if self._failure is not None:
                failure, self._failure = self._failure, None
                raise failure
            if next(self._samples(), None) is None:
                self._fill()
            # In lots: a hint takes the engine's lock once for all its places.
            lot = self._next_lot()
        if lot and any(_is_address(place[0]) for _, places in lot for place in places):
            threading.Thread(target=self._leave, args=(lot,), name="forerun-hint", daemon=True).start()
        elif lot:
            self._hand_in(lot)
        with self._lock:
            self._take(index)

    def _samples(self) -> Iterator[int]:
        yield from self._announced
        yield from (index for index, _ in self._leaving)
        yield from (index for index, _ in self._waiting)

    def _take(self, index: int) -> None:
        """Takes a sample out of the order, and those before it that were left out."""
        place = next((at for at, one in enumerate(islice(self._samples(), 64)) if one == index), None)
        if place != 0:
            self.unexpected += 1
        for _ in range(0 if place is None else place + 1):
            for part in (self._announced, self._leaving, self._waiting):
                if part:
                    part.popleft()
                    break

    def _fill(self) -> None:
        """Locates samples up to as many as are known already, or the first of all."""
        known = len(self._announced) + len(self._leaving) + len(self._waiting)
        missing = min(self._ahead - known, max(self._located, _FIRST))
        for index in islice(self._order, max(missing, 0)):
            places = self._locate(index)
            one = isinstance(places, tuple) and len(places) == 3 and isinstance(places[1], int)
            self._waiting.append((index, [places] if one else list(places)))  # type: ignore
            self._located += 1

    def _next_lot(self) -> "list[_Sample]":
        """The next to be announced, unless others are, or more than half of those announced is to be read."""
        if self._is_leaving or len(self._announced) > self._few:
            return []
        self._fill()
        self._leaving, self._waiting = self._waiting, deque()
        self._is_leaving = bool(self._leaving)
        return list(self._leaving)

    def _leave(self, lot: "list[_Sample]") -> None:
        try:
            self._hand_in(lot)
        except BaseException as failure:
            self._failure = failure

    def _hand_in(self, lot: "list[_Sample]") -> None:
        taken = 0
        try:
            taken = self._engine.hint([place for _, places in lot for place in places])
        finally:
            with self._lock:
                # Those that were read meanwhile are the first.
                for index, places in lot[: len(lot) - len(self._leaving)]:
                    taken -= len(places)
                while self._leaving and taken >= len(self._leaving[0][1]):
                    index, places = self._leaving.popleft()
                    taken -= len(places)
                    self._announced.append(index)
                if taken > 0 and self._leaving:
                    # The engine has the first places of a sample that did not fit as a whole.
                    del self._leaving[0][1][:taken]
                self._few = (len(self._announced) if self._leaving else self._ahead) // 2
                self._waiting.extendleft(reversed(self._leaving))
                self._leaving.clear()
                self._is_leaving = False


def _is_address(file: Any) -> bool:
    return isinstance(file, (str, bytes)) and "://" in os.fsdecode(file)


def _worker() -> tuple[int, int]:
    """The number of this worker of a DataLoader, and how many there are; (0, 1) in no worker."""
    data = sys.modules.get("torch.utils.data")
    worker = data.get_worker_info() if data else None
    return (0, 1) if worker is None else (worker.id, worker.num_workers)


class HintedDataset:
    """A map-style dataset whose reads are announced in the process that makes them."""

    def __init__(
        self,
        dataset: MapDataset,
        plan: Plan,
        locate: Callable[[int], Place | Sequence[Place]],
        *,
        engine: Engine | None = None,
        ahead: int = _AHEAD,
        worker: Callable[[], tuple[int, int]] = _worker,
    ) -> None:
        self.dataset = dataset
        self.plan = plan
        self.locate = locate
        self.engine = engine
        self.ahead = ahead
        self.worker = worker
        self.epoch = 0
        self._announcer: Announcer | None = None
        self._made_for: tuple[int, int] | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        self.announcer().reading(index)
        return self.dataset[index]

    def announcer(self) -> Announcer:
        """The announcer of this process, from the present epoch on."""
        now = (os.getpid(), self.epoch)
        if self._announcer is None or self._made_for != now:
            follows = self._made_for == (now[0], self.epoch - 1)
            if self._announcer is None or not follows:
                engine = self.engine if self.engine is not None else default_engine()
                order = self._epochs(self.epoch)
                self._announcer = Announcer(engine, order, self.locate, self.ahead)
            self._made_for = now
        return self._announcer

    def _epochs(self, epoch: int) -> Iterator[int]:
        worker, workers = self.worker()
        while order := self.plan.order_of_worker(epoch, worker, workers):
            yield from order
            epoch += 1

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_announcer": None, "_made_for": None}


def share_memory(engine: Engine, workers: int) -> None:
    """Limits this process's engine to its share of the memory; for `worker_init_fn`."""
    if workers < 1:
        raise ValueError(f"workers of {workers}: must be at least 1")
    engine.limit_memory(engine.memory // workers)


class _Init:
    def __init__(self, engine: Engine | None, workers: int, then: Callable[[int], None] | None):
        self.engine, self.workers, self.then = engine, workers, then

    def __call__(self, worker: int) -> None:
        share_memory(self.engine if self.engine is not None else default_engine(), self.workers)
        if self.then is not None:
            self.then(worker)


def data_loader(
    dataset: MapDataset,
    locate: Callable[[int], Place | Sequence[Place]],
    *,
    batch_size: int = 1,
    seed: int = 0,
    rank: int = 0,
    world_size: int = 1,
    shuffle: bool = True,
    drop_last: bool = False,
    num_workers: int = 0,
    engine: Engine | None = None,
    ahead: int = _AHEAD,
    worker_init_fn: Callable[[int], None] | None = None,
    **kwargs: Any,
) -> Any:
    """A `torch.utils.data.DataLoader` whose order is announced; other arguments go to it."""
    from torch.utils.data import DataLoader

    plan = Plan(len(dataset), seed, rank, world_size, batch_size, shuffle, drop_last)
    hinted = HintedDataset(dataset, plan, locate, engine=engine, ahead=ahead)
    sampler = Sampler(plan)
    sampler.follow(hinted)
    if num_workers > 0:
        worker_init_fn = _Init(engine, num_workers, worker_init_fn)
    # It has the protocol of torch's class, whose subclass it cannot be where there is no torch.
    return DataLoader(
        cast(Any, hinted),
        batch_size=batch_size,
        sampler=sampler,
        drop_last=drop_last,
        num_workers=num_workers,
        worker_init_fn=worker_init_fn,
        **kwargs,
    )


def open_shards(
    paths: Sequence[str | os.PathLike[str]], *, engine: Engine | None = None, ahead: int = 2
) -> Iterator[BufferedFile]:
    """Opens files in turn, for iterable datasets and shards of webdataset, each announced whole.

    `ahead` files are open and announced before the one that is read. Each is closed when the next
    one is asked for.
    """
    if ahead < 0:
        raise ValueError(f"ahead of {ahead}: must be at least 0")
    engine = engine if engine is not None else default_engine()
    opened: deque[BufferedFile] = deque()
    rest = iter(paths)
    try:
        while True:
            for path in islice(rest, ahead + 1 - len(opened)):
                file = _open(path, engine=engine)
                opened.append(file)
                engine.hint([(file, 0, file.size)])
            if not opened:
                return
            yield opened[0]
            opened.popleft().close()
    finally:
        for file in opened:
            file.close()
