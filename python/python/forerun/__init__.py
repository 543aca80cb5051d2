"""Files read through one prefetching and caching engine.

All files of a process share one memory limit and one set of decisions: how far ahead each is
fetched, and which block is given up.

>>> import forerun, tempfile
>>> with tempfile.NamedTemporaryFile() as data:
...     _ = data.write(b"hello, world")
...     data.flush()
...     with forerun.open(data.name) as file:
...         file.seek(7), file.read()
(7, b'world')

The order of reads can be announced, and hits and misses are counted:

>>> engine = forerun.Engine(memory=64 << 20)
>>> with tempfile.NamedTemporaryFile() as data:
...     _ = data.write(bytes(1 << 20))
...     data.flush()
...     with forerun.open(data.name, engine=engine) as file:
...         announced = engine.hint([(file, 524288, 65536), (file, 0, 65536)])
...         parts = file.pread(65536, 524288), file.pread(65536, 0)
>>> announced, engine.ledger()["hints_missed"]
(2, 0)
"""

from . import _interpreter  # noqa: F401
from ._default import default_engine, set_default_engine
from ._file import File, Listed, listed
from ._forerun import Engine, __version__, reproduce
from ._open import BufferedFile, open
from ._simulate import Reclaim, count, frame, simulate, simulations
from ._sweep import sweep

__all__ = [
    "BufferedFile",
    "Engine",
    "File",
    "Listed",
    "Reclaim",
    "__version__",
    "count",
    "default_engine",
    "frame",
    "listed",
    "open",
    "reproduce",
    "set_default_engine",
    "simulate",
    "simulations",
    "sweep",
]
