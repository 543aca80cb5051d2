"""Orders announced to an engine some samples ahead, and orders that only the program knows told to its workers."""

import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, islice
from typing import Any, Protocol, cast

from ._default import default_engine
from ._file import File
from ._forerun import Engine
from ._open import BufferedFile

Place = tuple[File | BufferedFile | str | bytes | os.PathLike[str] | os.PathLike[bytes], int, int | None]

_Sample = tuple[int, list[Place]]

AHEAD = 1024

# Samples of the first lot: as many as are opened at once.
_FIRST = 64


class MapDataset(Protocol):
    """A dataset with numbered samples."""

    def __getitem__(self, index: int, /) -> Any:
        """A sample."""

    def __len__(self) -> int:
        """How many samples there are."""


def batched(dataset: Any, reading: Callable[[int], int]) -> Callable[[Sequence[int]], Any]:
    """The method of a dataset that reads a batch at once, told of each sample; `AttributeError` if it has none."""
    read = dataset.__getitems__
    return lambda indices: read([reading(index) for index in indices])


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
        ahead: int = AHEAD,
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
        # By sample, why it has no place: raised once it is read.
        self._refused: dict[int, Exception] = {}
        self.unexpected = 0
        # The same since the last sample that came in its turn.
        self.lost = 0

    @property
    def passed(self) -> int:
        """How many samples of the order are read, or were left out."""
        with self._lock:
            return self._located - self._known()

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
            refused = self._refused.pop(index, None) if self._refused else None
        if refused is not None:
            raise refused

    def _samples(self) -> Iterator[int]:
        yield from self._announced
        yield from (index for index, _ in self._leaving)
        yield from (index for index, _ in self._waiting)

    def _take(self, index: int) -> None:
        """Takes a sample out of the order, and those before it that were left out."""
        place = next((at for at, one in enumerate(islice(self._samples(), 64)) if one == index), None)
        if place != 0:
            self.unexpected += 1
        self.lost = 0 if place == 0 else self.lost + 1
        for _ in range(0 if place is None else place + 1):
            for part in (self._announced, self._leaving, self._waiting):
                if part:
                    part.popleft()
                    break

    def _fill(self) -> None:
        """Locates samples up to as many as are known already, or the first of all."""
        missing = min(self._ahead - self._known(), max(self._located, _FIRST))
        for index in islice(self._order, max(missing, 0)):
            self._refused.pop(index, None)
            try:
                places = _places(self._locate(index), index)
            except Exception as error:
                places, self._refused[index] = [], error
            self._waiting.append((index, places))
            self._located += 1

    def _known(self) -> int:
        return len(self._announced) + len(self._leaving) + len(self._waiting)

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


def _places(told: Any, index: int) -> list[Place]:
    """The places of a sample, of which `locate` has told one or several."""
    is_one = isinstance(told, tuple) and len(told) == 3 and not isinstance(told[1], tuple)
    places = []
    for place in [told] if is_one or not isinstance(told, Iterable) else told:
        try:
            file, offset, length = place if isinstance(place, tuple) else ()
            # Numbers of numpy and torch, too.
            places.append((file, operator.index(offset), None if length is None else operator.index(length)))
        except (TypeError, ValueError):
            why = "must be (file, offset, length) with whole numbers, or several of these"
            raise TypeError(f"locate({index}) of {place!r}: {why}") from None
    return places


def _is_address(file: Any) -> bool:
    return isinstance(file, (str, bytes)) and "://" in os.fsdecode(file)


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
        self._first = 0

    def leave_out(self, batches: int) -> None:
        """Has the next iteration begin behind so many batches."""
        self._first = batches

    def __len__(self) -> int:
        return len(cast(Any, self.batches))

    def __iter__(self) -> Iterator[Any]:
        batches = islice(iter(self.batches), self._first, None)
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
    """A map-style dataset whose indices tell the later ones: see `LookAhead`."""

    def __init__(
        self,
        dataset: MapDataset,
        locate: Callable[[int], Place | Sequence[Place]],
        *,
        engine: Engine | None = None,
        ahead: int = AHEAD,
    ) -> None:
        self.dataset, self.locate = dataset, locate
        self.engine, self.ahead = engine, ahead
        self._told: deque[int] = deque()
        self._announcer: tuple[int, Announcer] | None = None

    def __len__(self) -> int:
        return len(self.dataset)

    def __getitem__(self, index: int) -> Any:
        return self.dataset[self._reading(index)]

    @property
    def __getitems__(self) -> Callable[[Sequence[int]], Any]:
        """A batch at once, where the dataset has this method, which torch looks for."""
        return batched(self.dataset, self._reading)

    def _reading(self, index: int) -> int:
        """The index of a sample that is about to be read."""
        begins = isinstance(index, _Telling) and index.begins
        if self._announcer is None or self._announcer[0] != os.getpid() or begins:
            # The rest of an order that was not read to its end does not come.
            self._told = deque()
            engine = self.engine if self.engine is not None else default_engine()
            announcer = Announcer(engine, _Queue(self._told), self.locate, self.ahead)
            self._announcer = os.getpid(), announcer
        if isinstance(index, _Telling):
            self._told.extend(index.coming)
            index = int(index)
        self._announcer[1].reading(index)
        return index

    def announcer(self) -> Announcer | None:
        """The announcer of this process, once it has read."""
        return self._announcer[1] if self._announcer else None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_announcer": None, "_told": deque()}


class _Queue:
    """Takes out of a queue until it is empty, and goes on once it has more."""

    def __init__(self, queue: deque[int]) -> None:
        self.queue = queue

    def __iter__(self) -> "_Queue":
        return self

    def __next__(self) -> int:
        if not self.queue:
            raise StopIteration
        return self.queue.popleft()
