"""The place within an epoch: a loader that tells it, and goes on from it in another process.

Problem: a job that is stopped in the middle of an epoch has read a part of the order; from the beginning again it would
train on that part twice. Mechanism: `state_dict` has the epoch, the number of batches that the program was given, and
the values that the order follows from. After `load_state_dict` the next iteration over that epoch leaves out so many
batches: they are neither read nor announced, and workers begin with the batch behind them.

    epoch 3, batches  0 1 2 3 4 5     {"epoch": 3, "batches": 2, ..}     the program was given 0 and 1
    worker 0 of 2         2   4
    worker 1 of 2           3   5

Made by `forerun.torch.data_loader`. Batches that workers have read ahead do not count, so that the number of workers may
be another one. All ranks are at the same place, and load the same state. An order that is no function of its epoch (a
`RandomSampler` without a generator of its own) is another one after each start.
"""

import sys
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any


class Resumable:
    """The part of a `DataLoader` that counts batches. Its classes are made by `data_loader`."""

    # It leaves out the first batches; None in a loader that a framework has made of this one, by its class.
    _order: Any = None
    # The sampler with the epoch.
    _epochs: Any = None
    # The values that the order follows from.
    _told: Mapping[str, Any] = MappingProxyType({})
    # Of the iteration that began last.
    _epoch: int | None = None
    _given: int = 0
    # Of a state that was loaded, until an iteration begins.
    _resumes: dict[str, Any] | None = None

    def __iter__(self) -> Iterator[Any]:
        state, self._resumes = self._resumes, None
        self._epoch = _epoch(self._epochs)
        first = state["batches"] if state is not None and state["epoch"] == self._epoch else 0
        self._given = first
        if self._order is not None:
            self._order.leave_out(first)
        return _Counted(self, super().__iter__())  # type: ignore[misc]

    def state_dict(self) -> dict[str, Any]:
        """The place: the epoch, the number of its batches that were given out, and the values of the order."""
        if self._resumes is not None:
            return dict(self._resumes)
        epoch = self._epoch if self._epoch is not None else _epoch(self._epochs)
        return {"epoch": epoch, "batches": self._given, **self._told}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Has the next iteration go on from a place, unless `set_epoch` names another epoch before it.

        Of an epoch that was at its end, no batch is left. Raises `ValueError` for the state of another order.
        """
        if self._order is None:
            raise TypeError("loader: must be one of forerun.torch.data_loader, to go on from a place")
        for name in ("epoch", "batches", *self._told):
            if name not in state:
                raise ValueError(f"state {state!r}: must have {name!r}, as state_dict() gives it")
        for name, value in self._told.items():
            if state[name] != value:
                raise ValueError(f"{name} of {state[name]!r} in the state: must be {value!r}, as of this loader")
        epoch, batches = state["epoch"], state["batches"]
        try:
            most = len(self)  # type: ignore[arg-type]
        except TypeError:
            # A sampler without an end.
            most = sys.maxsize
        if not isinstance(batches, int) or not 0 <= batches <= most:
            raise ValueError(f"batches of {batches!r} in the state: must lie from 0 to {most}")
        if epoch is not None:
            if not isinstance(epoch, int) or epoch < 0:
                raise ValueError(f"epoch of {epoch!r} in the state: must be at least 0")
            if not hasattr(self._epochs, "set_epoch"):
                raise ValueError(f"epoch of {epoch!r} in the state: must be None, as this sampler has none")
            self._epochs.set_epoch(epoch)
        self._resumes = {name: state[name] for name in ("epoch", "batches", *self._told)}
        # Workers that live on announced another order.
        if getattr(self, "persistent_workers", False):
            self._iterator = None


class _Counted:
    """The iterator of a loader, of which the batches that the program takes are counted."""

    def __init__(self, loader: Resumable, batches: Iterator[Any]) -> None:
        self._loader, self._batches = loader, batches

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        batch = next(self._batches)
        self._loader._given += 1
        return batch

    def __len__(self) -> int:
        return len(self._batches)  # type: ignore[arg-type]


def _epoch(sampler: Any) -> int | None:
    """The epoch of a sampler that has `set_epoch`, as `DistributedSampler` of torch."""
    epoch = getattr(sampler, "epoch", None)
    return epoch if isinstance(epoch, int) and hasattr(sampler, "set_epoch") else None
