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

Any other order (`sampler=`, `batch_sampler=`) is announced by the program, which asks the sampler ahead: the indices of a
batch tell its worker what it reads later.

Only `data_loader` imports torch; samplers and datasets here are plain classes of its protocol.

Limits: batches dealt to workers in turn, as `DataLoader` does it by default, and of one size unless they come of a
batch sampler. Without a sampler, a worker that lives for several epochs (`persistent_workers`) takes the next epoch to be
the number after.
"""

import copy
import errno
import os
import random
import sys
import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from typing import Any, Protocol, cast

from ._default import default_engine
from ._file import File, absolute, listed
from ._forerun import Engine
from ._open import BufferedFile
from ._open import open as _open

Place = tuple[File | BufferedFile | str | bytes | os.PathLike[str] | os.PathLike[bytes], int, int | None]

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


def _place(dataset: Any, index: int) -> Place | Sequence[Place]:
    """Where a sample lies, by what its dataset says of itself.

    The dataset has `locate(index)`, or lists of paths (`samples` or `imgs`, as `ImageFolder` of torchvision), or it is a
    subset or a concatenation of datasets that have.
    """
    if locate := getattr(dataset, "locate", None):
        return cast(Place, locate(index))
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        return _place(dataset.dataset, dataset.indices[index])
    if hasattr(dataset, "cumulative_sizes") and hasattr(dataset, "datasets"):
        part = bisect_right(dataset.cumulative_sizes, index)
        return _place(dataset.datasets[part], index - (dataset.cumulative_sizes[part - 1] if part else 0))
    samples = getattr(dataset, "samples", None) or getattr(dataset, "imgs", None)
    if samples is None:
        kind = type(dataset).__name__
        raise TypeError(f"dataset of type {kind}: has none of locate, samples and imgs; give locate")
    sample = samples[index]
    return (sample if isinstance(sample, (str, os.PathLike)) else sample[0]), 0, None


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
    ahead: int = _AHEAD,
    worker_init_fn: Callable[[int], None] | None = None,
    **kwargs: Any,
) -> Any:
    """A `torch.utils.data.DataLoader` whose order is announced; other arguments go to it.

    Without `locate` a dataset says where its samples lie: by a method `locate`, or by lists of paths (`samples`,
    `imgs`), as `Folder` here and `ImageFolder` of torchvision. Its `loader` has to open them with `forerun.open`, as
    `image` does, which takes the place of torchvision's own.

    The order is that of a `Plan`, shuffled unless `shuffle` is False, or of a sampler or a batch sampler of any
    kind, which is asked for `ahead` samples before they are read. Of those an epoch's first samples are announced when it begins.
    """
    from torch.utils.data import DataLoader

    if locate is None and _module(getattr(dataset, "loader", None)) == "torchvision.datasets.folder":
        # Its own loader opens files past the engine.
        dataset = copy.copy(dataset)
        cast(Any, dataset).loader = partial(image, engine=engine)
    where = locate if locate is not None else partial(_place, dataset)
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
        # It has the protocol of torch's class, whose subclass it cannot be where there is no torch.
        return DataLoader(
            cast(Any, hinted), batch_size=batch_size, sampler=ours, drop_last=drop_last, **options
        )
    given = {"seed": seed, "rank": rank, "world_size": world_size - 1, "shuffle": shuffle}
    for name, value in given.items():
        if value:
            raise ValueError(f"{name} given with an order of its own: a sampler has its own {name}")
    told = ToldDataset(dataset, where, engine=engine, ahead=ahead)
    if batch_sampler is not None:
        if sampler is not None or drop_last or batch_size != 1:
            raise ValueError("batch_sampler excludes sampler, batch_size and drop_last")
        batches = LookAhead(batch_sampler, ahead, num_workers)
        return DataLoader(cast(Any, told), batch_sampler=cast(Any, batches), **options)
    if sampler is None:
        raise ValueError("batch_size of None: must be at least 1, or there must be a sampler")
    if batch_size is None:
        singles = LookAhead(sampler, ahead, num_workers, singles=True)
        return DataLoader(cast(Any, told), batch_size=None, sampler=cast(Any, singles), **options)
    batches = LookAhead(_Batches(sampler, batch_size, drop_last), ahead, num_workers)
    return DataLoader(cast(Any, told), batch_sampler=cast(Any, batches), **options)


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


class _Telling(int):
    """The index of a sample, with those that its process reads later; after those it was told, or from now on."""

    coming: tuple[int, ...]
    begins: bool

    def __new__(cls, index: int, coming: tuple[int, ...], begins: bool) -> "_Telling":
        telling = super().__new__(cls, index)
        telling.coming, telling.begins = coming, begins
        return telling

    def __reduce__(self) -> tuple[Any, ...]:
        return _Telling, (int(self), self.coming, self.begins)


class LookAhead:
    """Batches of any order, each with the samples that the same worker reads later.

    Batches are dealt to workers in turn, so that the batch a multiple of the workers later is for the same one. The
    first batch of each has all up to there.

        workers 2, three batches ahead of each:   0 tells 0 2 4   1 tells 1 3 5   2 tells 6   3 tells 7
    """

    def __init__(self, batches: Iterable[Any], ahead: int, workers: int, singles: bool = False) -> None:
        if ahead < 1:
            raise ValueError(f"ahead of {ahead}: must be at least 1")
        self.batches, self.ahead = batches, ahead
        self.workers, self.singles = max(workers, 1), singles

    def __len__(self) -> int:
        return len(cast(Any, self.batches))

    def __iter__(self) -> Iterator[Any]:
        batches = iter(self.batches)
        rest = ([int(one)] if self.singles else [int(index) for index in one] for one in batches)
        first = list(islice(rest, self.workers))
        if not first:
            return
        # As many batches of each worker as have so many samples.
        each = -(-self.ahead // max(len(first[0]), 1))
        window = deque([*first, *islice(rest, (each - 1) * self.workers)])
        begun = [
            [index for batch in islice(window, worker, None, self.workers) for index in batch]
            for worker in range(self.workers)
        ]
        for number in count():
            if not window:
                return
            batch: list[int] = window.popleft()
            begins = number < self.workers
            coming = begun[number] if begins else []
            for later in islice(rest, 1):
                window.append(later)
                coming = coming + later
            told = [_Telling(index, tuple(coming), begins) for index in batch[:1]] + batch[1:]
            yield told[0] if self.singles else told

    def __getattr__(self, name: str) -> Any:
        # `set_epoch` and others of the sampler's own.
        if name == "batches":
            raise AttributeError(name)
        return getattr(self.batches, name)


class ToldDataset:
    """A map-style dataset whose indices tell what is read later: see `LookAhead`."""

    def __init__(
        self,
        dataset: MapDataset,
        locate: Callable[[int], Place | Sequence[Place]],
        *,
        engine: Engine | None = None,
        ahead: int = _AHEAD,
    ) -> None:
        self.dataset, self.locate = dataset, locate
        self.engine, self.ahead = engine, ahead
        self._told: deque[int] = deque()
        self._announcer: tuple[int, Announcer] | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        begins = isinstance(index, _Telling) and index.begins
        if self._announcer is None or self._announcer[0] != os.getpid() or begins:
            # What is left of an order that was not read to its end does not come.
            self._told = deque()
            engine = self.engine if self.engine is not None else default_engine()
            announcer = Announcer(engine, _Queue(self._told), self.locate, self.ahead)
            self._announcer = os.getpid(), announcer
        if isinstance(index, _Telling):
            self._told.extend(index.coming)
            index = int(index)
        self._announcer[1].reading(index)
        return self.dataset[index]

    def announcer(self) -> Announcer | None:
        """The announcer of this process, once it has read."""
        return self._announcer[1] if self._announcer else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_announcer": None, "_told": deque()}


class _Queue:
    """What a queue has by now, and later what it has then."""

    def __init__(self, queue: deque[int]) -> None:
        self.queue = queue

    def __iter__(self) -> "_Queue":
        return self

    def __next__(self) -> int:
        if not self.queue:
            raise StopIteration
        return self.queue.popleft()


def image(path: str | os.PathLike[str], *, engine: Engine | None = None) -> Any:
    """An image of a path or an address by Pillow, in RGB: the `loader` of an `ImageFolder`."""
    from PIL import Image

    with _open(path, engine=engine) as file, Image.open(file) as opened:
        return opened.convert("RGB")


class Folder:
    """Files of a folder, or objects below an address, as samples: (what `loader` makes of a path, the number of its class).

    Objects are listed once, and read in the version that they had then.

    Classes are the folders directly below `root`, in the order of their names, as of `ImageFolder`; files that lie in
    `root` itself are of the class ``""``. The loader is called with a path and `engine`, and reads bytes if none is given.
    """

    def __init__(
        self,
        root: str | os.PathLike[str],
        loader: Callable[..., Any] | None = None,
        *,
        transform: Callable[[Any], Any] | None = None,
        target_transform: Callable[[int], Any] | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.root, self.engine = os.fspath(root), engine
        self.loader = loader if loader is not None else _content
        self.transform, self.target_transform = transform, target_transform
        files = sorted(_files(self.root, engine))
        names = [name.partition("/")[0] if "/" in name else "" for name, _ in files]
        self.classes = sorted(set(names))
        self.class_to_idx = {name: number for number, name in enumerate(self.classes)}
        self.samples = [(path, self.class_to_idx[name]) for (_, path), name in zip(files, names)]
        self.targets = [target for _, target in self.samples]
        if not files:
            raise FileNotFoundError(errno.ENOENT, "No files below it", self.root)

    def __len__(self) -> int:
        return len(self.samples)

    def __getitem__(self, index: int) -> tuple[Any, Any]:
        path, target = self.samples[index]
        sample = self.loader(path, engine=self.engine)
        if self.transform is not None:
            sample = self.transform(sample)
        return sample, target if self.target_transform is None else self.target_transform(target)


def _content(path: str, *, engine: Engine | None) -> bytes:
    with _open(path, engine=engine) as file:
        return file.read()


def _raise(error: OSError) -> None:
    raise error


def _files(root: str, engine: Engine | None) -> Iterator[tuple[str, str]]:
    """Names below a folder or an address, and paths."""
    root = absolute(root)
    if "://" in root:
        for address in listed(root, engine=engine):
            yield address.removeprefix(root.rstrip("/") + "/"), address
        return
    for folder, _, names in os.walk(root, onerror=_raise):
        for name in names:
            path = os.path.join(folder, name)
            yield os.path.relpath(path, root), path


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
