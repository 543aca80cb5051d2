"""webdataset: shards read through the engine.

    import forerun.webdataset
    forerun.webdataset.register()
    webdataset.WebDataset("s3://bucket/shards/{000..099}.tar")

Shards are tar files that are read from the beginning on, for which the engine reads ahead; workers read other shards.
`forerun.torch.open_shards` opens the next ones before they are asked for.
"""

import importlib
from collections.abc import Iterable
from typing import Any

from ._forerun import Engine
from ._open import open as _open

_SCHEMES = ("s3", "gs", "az", "http", "https")


def register(*, engine: Engine | None = None, schemes: Iterable[str] = _SCHEMES) -> None:
    """Has webdataset open shards of these schemes with `forerun.open`, in this process and in workers that it forks.

    Without an engine each process takes its default one. Paths are webdataset's own to open, whatever is registered.
    """
    opened = {}
    for scheme in [schemes] if isinstance(schemes, str) else schemes:
        if scheme not in _SCHEMES:
            raise ValueError(f"scheme of {scheme!r}: must be one of {', '.join(_SCHEMES)}")
        opened[scheme] = _Opening(engine)
    importlib.import_module("webdataset.gopen").gopen_schemes.update(opened)


class _Opening:
    def __init__(self, engine: Engine | None) -> None:
        self.engine = engine

    def __call__(self, url: str, mode: str = "rb", bufsize: int = 8192, **_: Any) -> Any:
        return _open(url, mode, engine=self.engine)
