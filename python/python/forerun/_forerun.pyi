"""The compiled part of the package."""

from collections.abc import Callable, Iterable
from datetime import datetime
from io import TextIOWrapper
from os import PathLike
from typing import Any, final

from typing_extensions import Buffer

from ._file import File
from ._open import BufferedFile

__all__ = [
    "Call",
    "CallQueue",
    "Engine",
    "Handle",
    "__version__",
    "collecting",
    "finish_engines",
    "forked",
    "listed",
    "log",
    "reproduce",
    "simulate",
]

__version__: str

@final
class Engine:
    """One memory limit and one set of decisions for all files opened with it.

    `memory` is in bytes or a size as "1GiB", 256 MiB if not given. `preset` is a name of `forerun list presets`.
    `profile` has the costs of a device, as `tomllib` reads them from a file of `forerun profile`;
    they are estimated from reads if not given. `emulate` puts a slow device in front of the real one, as
    (nanoseconds for a switch, bytes per second).
    """

    def __new__(
        cls,
        memory: int | str | None = None,
        preset: str = "forerun",
        *,
        profile: dict[str, Any] | None = None,
        emulate: tuple[int, int] | None = None,
    ) -> Engine: ...
    @property
    def memory(self) -> int: ...
    @property
    def memory_limit(self) -> int: ...
    @property
    def preset(self) -> str: ...
    @property
    def profile(self) -> dict[str, Any] | None: ...
    @property
    def emulate(self) -> tuple[int, int] | None: ...
    def limit_memory(self, memory: int | str) -> None:
        """Lowers the memory limit, in bytes or as "1GiB", or raises it up to that of the construction."""

    def hint(self, order: Iterable[tuple[_Announced, int, int | None]]) -> int:
        """Announces reads as (file, offset, length), in the order in which they will come.

        `file` is one of `forerun.open`, a path or an address, and a length of None is all the rest of it. Files of
        names are opened side by side. Returns how many were taken. The rest can be announced once half of them has been
        read. A file that was announced is kept open until then, unless it is closed; an object that was announced by its
        address is opened in the version that it had then, once for each announced read. Announced reads that come to
        nothing are warned of once, with the reason.
        """

    def ledger(self) -> dict[str, int]:
        """The counters, as of now."""

@final
class Handle:
    """An open file with a position, which `forerun.File` has."""

    def __new__(
        cls, engine: Engine, path: str | PathLike[str], version: tuple[int, str] | None = None
    ) -> Handle: ...
    @staticmethod
    def fetched(
        engine: Engine,
        function: Callable[[int, int], Buffer],
        name: str,
        version: str,
        size: int,
        *,
        device: int = 0,
        requests: int = 16,
    ) -> Handle: ...
    @staticmethod
    def stored(
        engine: Engine,
        url: str,
        variables: dict[str, str],
        *,
        size: int | None = None,
        e_tag: str | None = None,
        first: int = 0,
        last: int = 0,
    ) -> Handle: ...
    @property
    def name(self) -> str: ...
    @property
    def engine(self) -> Engine: ...
    @property
    def modified(self) -> datetime | None: ...
    def announce(self, ranges: list[tuple[int, int]]) -> int: ...
    def readinto(self, buffer: Buffer) -> int: ...
    def readinto_at(self, buffer: Buffer, offset: int) -> int: ...
    def read(self, length: int) -> bytes: ...
    def readline(self, length: int | None = None) -> bytes: ...
    def pread(self, length: int, offset: int) -> bytes: ...
    def tell(self) -> int: ...
    def seek(self, offset: int, whence: int = 0) -> int: ...
    def size(self) -> int: ...
    def close(self, keeps_hints: bool = False) -> None: ...

_Announced = (
    File | BufferedFile | TextIOWrapper | Handle | str | bytes | PathLike[str] | PathLike[bytes]
)

@final
class CallQueue:
    def take(
        self, is_new: bool
    ) -> tuple[Call, Callable[[int, int], Buffer], int, int] | None: ...
    def lacking(self) -> int: ...
    def not_started(self, threads: int) -> None: ...

@final
class Call:
    def answer(self, answer: Buffer) -> None: ...
    def fail(self, error: BaseException) -> None: ...

def collecting(phase: str, _info: dict[str, int], /) -> None: ...
def finish_engines() -> None: ...
def forked() -> None: ...
def listed(engine: Engine, address: str) -> list[tuple[str, int, str | None]]:
    """The objects below an address, in the order of their names, as (address, size, version)."""

def log(levels: str) -> None: ...
def simulate(
    *,
    workload: str | None = None,
    trace: str | PathLike[str] | None = None,
    presets: str | Iterable[str] | None = None,
    device: str = "hdd",
    cache_blocks: int | Iterable[int] | None = None,
    block_bytes: int | None = None,
    disks: int | None = None,
    place: str = "address",
    regions: str | None = None,
    readers_by: str = "one",
    loop: str | None = None,
    arrivals: str | None = None,
) -> list[dict[str, Any]]:
    """Presets over a trace or a workload, on modelled disks, in virtual time.

    A dictionary for each preset and cache size, which `pandas.DataFrame` takes; each is one or a sequence of them. If not
    given, presets are demand-lru and forestall, with 1280 cache blocks, as large as most requests of the trace, else of 8192
    bytes, on one disk, or on as many as the trace has. Defaults, `place` (address, packed or dense), `regions`
    (concatenated or striped), `readers_by` (one or device), `loop` (closed, open or paced) and `arrivals` (recorded, or
    as "2x") are those of `forerun simulate`. Times are in nanoseconds.
    """

def reproduce(
    paper: str, *, only: str | Iterable[str] | None = None, sample: bool = False
) -> list[dict[str, Any]]:
    """The claims of a paper (li04, li05, wu10, kimbrel96, baek09), measured again on modelled disks.

    A dictionary for each claim: paper, id, claim, published and measured figures, verdict (met; met,
    fitted; differs), the fit, and a note. `only` names a claim or several. A `sample` has fewer and shorter runs
    and the same verdicts. All processors work; a whole paper takes minutes.
    """
