"""Datasets of files: a folder or the objects below an address, and where the samples of others lie."""

import errno
import os
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from ._announce import Place
from ._file import absolute, listed
from ._forerun import Engine
from ._open import open as _open


def image(path: str | os.PathLike[str], *, engine: Engine | None = None) -> Any:
    """An image of a path or an address by Pillow, in RGB: the `loader` of an `ImageFolder`."""
    from PIL import Image

    with _open(path, engine=engine) as file, Image.open(cast(Any, file)) as opened:
        return opened.convert("RGB")


class Folder:
    """Files of a folder, or objects below an address, as samples: (the result of `loader`, the number of its class).

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


def _files(root: str, engine: Engine | None) -> Iterator[tuple[str, str]]:
    """Names below a folder or an address, and paths."""
    root = absolute(root)
    if "://" in root:
        for address in listed(root, engine=engine):
            yield address.removeprefix(root.rstrip("/") + "/"), address
        return
    for path in _below(root, frozenset()):
        yield os.path.relpath(path, root), path


def _below(folder: str, above: frozenset[tuple[int, int]]) -> Iterator[str]:
    """Files below a folder, also behind links; nothing of a folder that is linked from below itself."""
    status = os.stat(folder)
    key = status.st_dev, status.st_ino
    if key in above:
        return
    with os.scandir(folder) as entries:
        found = list(entries)
    for entry in found:
        if os.path.isdir(entry.path) if entry.is_symlink() else entry.is_dir():
            yield from _below(entry.path, above | {key})
        else:
            yield entry.path


def place_of(dataset: Any, index: int) -> Place | Sequence[Place]:
    """Where a sample lies, by the attributes of its dataset.

    The dataset has `locate(index)`, or lists of paths (`samples` or `imgs`, as `ImageFolder` of torchvision), or it is a
    subset or a concatenation of datasets that have.
    """
    if locate := getattr(dataset, "locate", None):
        return cast(Place, locate(index))
    if hasattr(dataset, "indices") and hasattr(dataset, "dataset"):
        return place_of(dataset.dataset, dataset.indices[index])
    if hasattr(dataset, "cumulative_sizes") and hasattr(dataset, "datasets"):
        part = bisect_right(dataset.cumulative_sizes, index)
        return place_of(dataset.datasets[part], index - (dataset.cumulative_sizes[part - 1] if part else 0))
    known = (getattr(dataset, name, None) for name in ("samples", "imgs"))
    # An array has no truth.
    samples = next((one for one in known if one is not None), None)
    if samples is None:
        kind = type(dataset).__name__
        raise TypeError(f"dataset of type {kind}: has none of locate, samples and imgs; give locate")
    sample = samples[index]
    return (sample if isinstance(sample, (str, os.PathLike)) else sample[0]), 0, None
