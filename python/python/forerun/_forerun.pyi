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
    "CallThread",
    "Engine",
    "Handle",
    "Rows",
    "Simulation",
    "Turn",
    "__version__",
    "collecting",
    "counted",
    "failed_planned",
    "finish_engines",
    "forked",
    "listed",
    "log",
    "options",
    "planned",
    "reproduce",
    "run_planned",
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
class CallThread:
    def has_deferred(self) -> bool: ...
    def drop_deferred(self) -> None: ...
    def take(self) -> tuple[Call, Callable[[int, int], Buffer], int, int] | None: ...
    def lacking(self) -> list[CallThread]: ...

@final
class Call:
    def answer(self, answer: Buffer) -> None: ...
    def fail(self, error: BaseException) -> None: ...

@final
class Turn:
    """A lock of a target."""

    def __new__(cls, collection_seconds: float) -> Turn: ...
    @property
    def waiting(self) -> int: ...
    def __enter__(self) -> None: ...
    def __exit__(self, *_error: object) -> None: ...

def collecting(phase: str, info: dict[str, int], /) -> None: ...
def finish_engines() -> None: ...
def forked() -> None: ...
def listed(engine: Engine, address: str) -> list[tuple[str, int, str | None]]:
    """The objects below an address, in the order of their names, as (address, size, version)."""

def log(levels: str) -> None: ...
def options(of: str) -> list[tuple[str, str | None, bool, str]]:
    """The options of `simulate`, or of `count`, as (name, default, whether it takes a value, help)."""

@final
class Simulation:
    """A simulation whose runs are checked and none of which has been run. `own` is a reclaim method of the program's."""

    def __new__(cls, values: dict[str, str], own: Callable[[int], Any] | None = None) -> Simulation: ...
    @property
    def runs(self) -> int: ...
    @property
    def threads(self) -> int: ...
    def row(self, at: int) -> str:
        """Runs one; its row."""

def counted(
    values: dict[str, str], policies: list[str], own: dict[str, Callable[[int], Any]]
) -> list[str]:
    """The rows of `forerun trace count`; `own` are policies of the program's, by the names that they have among the others."""

_Methods = dict[str, tuple[Callable[[int], Any], str]]

def planned(
    plan_file: str, program: str, methods: _Methods
) -> tuple[str, list[tuple[str, str]]]:
    """The plan's runs as (key, run), and the stamp of its rows; `program` is the file that runs them."""

def run_planned(cell: str, stamp: str, methods: _Methods) -> str:
    """Runs one; its row. An exception of a method of the program's makes a row with its message."""

def failed_planned(cell: str, stamp: str, why: str) -> str:
    """The row of a run that failed."""

@final
class Rows:
    """A file of rows, which no other sweep writes to meanwhile."""

    def __new__(cls, path: str) -> Rows: ...
    def has(self, key: str) -> bool:
        """Whether it has the result of a run."""

    def append(self, row: str) -> None:
        """Appends a row."""

def reproduce(
    paper: str, *, only: str | Iterable[str] | None = None, sample: bool = False
) -> list[dict[str, Any]]:
    """The claims of a paper (li04, li05, wu10, kimbrel96, baek09), measured again on modelled disks.

    A dictionary for each claim: paper, id, claim, published and measured figures, verdict (met; met,
    fitted; differs), the fit, and a note. `only` names a claim or several. A `sample` has fewer and shorter runs
    and the same verdicts. All processors work; a whole paper takes minutes.
    """
