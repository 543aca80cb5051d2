"""Docstrings, the README and stubs agree with the package."""

import ast
import doctest
import importlib
import itertools
import re
import subprocess
import sys
import types
from pathlib import Path

import pytest

import forerun
from forerun import _forerun


@pytest.mark.parametrize("name", ["forerun", "forerun.fsspec", "forerun.torch"])
def test_examples_in_docstrings_run(name):
    failed, count = doctest.testmod(importlib.import_module(name))
    assert (failed, count > 0) == (0, True)


def test_examples_in_the_readme_run(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.bin").write_bytes(bytes(range(256)) * 4096)
    readme = Path(__file__).parents[1] / "README.md"
    failed, count = doctest.testfile(str(readme), module_relative=False)
    assert (failed, count > 0) == (0, True)


def test_stubs_are_those_of_the_compiled_module(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-m", "mypy.stubtest", "forerun._forerun"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def test_the_python_files_have_correct_types(tmp_path):
    command = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", str(tmp_path)]
    lenient = ["--ignore-missing-imports", "--allow-subclassing-any", "--no-warn-unused-ignores"]
    ended = subprocess.run(
        [*command, *lenient, "-p", "forerun"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr


def words(text):
    return (text or "").split()


def test_help_shows_the_documentation_that_the_stubs_have():
    stubs = ast.parse((Path(forerun.__file__).parent / "_forerun.pyi").read_text())
    compared = []
    for node in stubs.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        found = getattr(_forerun, node.name)
        members = [one for one in getattr(node, "body", []) if isinstance(one, ast.FunctionDef)]
        for one, there in [(node, found), *((one, getattr(found, one.name)) for one in members)]:
            # The module refers to its own header nowhere that a user sees.
            assert "(self)" not in (there.__doc__ or ""), one.name
            if documented := ast.get_docstring(one):
                assert words(there.__doc__) == words(documented), one.name
                compared.append(one.name)
    assert {"Engine", "hint", "ledger", "limit_memory", "planned", "reproduce"} <= set(compared)


@pytest.mark.parametrize("name", ["forerun", "forerun.torch", "forerun.webdataset"])
def test_everything_that_a_user_sees_is_documented(name):
    module = importlib.import_module(name)
    names = getattr(module, "__all__", [n for n in vars(module) if not n.startswith("_")])
    for name in names:
        found = getattr(module, name)
        if not callable(found) or not found.__module__.startswith("forerun"):
            continue
        assert len(words(found.__doc__)) > 2, name
        for member in vars(found) if isinstance(found, type) else ():
            if not member.startswith("_") and callable(getattr(found, member)):
                assert getattr(found, member).__doc__, f"{name}.{member}"


class Loader:
    """`torch.utils.data.DataLoader` without workers."""

    def __init__(self, dataset, *, batch_size=1, sampler=None, batch_sampler=None, **_):
        self.dataset, self.batch_size = dataset, batch_size
        self.sampler, self.batch_sampler = sampler, batch_sampler

    def __iter__(self):
        batches = self.batch_sampler
        if batches is None:
            order = list(self.sampler)
            batches = [order[at : at + self.batch_size] for at in range(0, len(order), self.batch_size)]
        for batch in batches:
            yield [self.dataset[index] for index in batch]


class Pipeline:
    """`tf.data.Dataset` of a generator, one sample after the other."""

    def __init__(self, generator, args, output_signature):
        self.samples, self.parts = generator(*args), len(output_signature)

    from_generator = classmethod(lambda cls, *args, **kwargs: cls(*args, **kwargs))

    def batch(self, size):
        self.size = size
        return self

    def prefetch(self, _):
        return self

    def __iter__(self):
        while batch := list(itertools.islice(self.samples, self.size)):
            assert {len(sample) for sample in batch} == {self.parts}
            yield tuple(zip(*batch))


class Client:
    """A client of workers that are this process."""

    def run(self, function):
        return {"worker": function()}


def blocks(heading):
    """The blocks of Python of a section of the README that are no doctests."""
    readme = (Path(__file__).parents[1] / "README.md").read_text()
    section = readme.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    found = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    return [block for block in found if ">>>" not in block]


@pytest.mark.parametrize("heading", ["Training", "TensorFlow", "webdataset", "Workers and settings"])
def test_programs_of_the_readme_run(tmp_path, monkeypatch, heading):
    for number in range(130):
        path = tmp_path / "images" / str(number % 2) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(bytes([number]) * 5000)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(forerun._default, "_default", None)
    modules = {name: types.ModuleType(name) for name in ("torch", "torch.utils", "torch.utils.data")}
    modules["torch.utils.data"].DataLoader = Loader
    modules["torch.utils.data"].get_worker_info = lambda: None
    modules["webdataset"] = types.ModuleType("webdataset")
    modules["webdataset"].WebDataset = lambda urls: urls
    modules["webdataset.gopen"] = types.ModuleType("webdataset.gopen")
    modules["webdataset.gopen"].gopen_schemes = {}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, name, module)
    names = {
        "forerun": forerun,
        "client": Client(),
        "LocalCluster": lambda **options: None,
        "ray": types.SimpleNamespace(init=lambda **options: None),
        "weights": [1] * 130,
        "WeightedRandomSampler": lambda weights, count: [0, 5, 5, 129],
        "tensorflow": types.SimpleNamespace(
            TensorSpec=lambda shape, kind: kind,
            data=types.SimpleNamespace(Dataset=Pipeline),
            string=bytes,
            int64=int,
        ),
        "paths": sorted(str(path) for path in tmp_path.rglob("*.jpg")),
    }
    found = blocks(heading)
    assert found
    for block in found:
        exec(compile(block, "README.md", "exec"), names)
        if loader := names.get("loader"):
            samples = [sample for batch in loader for sample in batch]
            assert len(samples) in (4, 130)
    if heading == "TensorFlow":
        # The last batch of an epoch has what 64 leave of 130.
        assert (len(names["contents"]), len(names["classes"])) == (2, 2)
        assert names["hinted"].announcer().unexpected == 0
    if heading in ("Training", "TensorFlow"):
        assert forerun.default_engine().ledger()["hints_read"] > 0
    elif heading == "webdataset":
        assert "s3" in modules["webdataset.gopen"].gopen_schemes
    else:
        assert forerun.default_engine().memory_limit == 64 << 20


def test_an_import_loads_no_other_package():
    code = "import sys; before = set(sys.modules); import forerun; print(*(set(sys.modules) - before))"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"asyncio", "fsspec", "importlib.metadata", "numpy", "ssl", "torch", "urllib.parse"}
    loaded = set(ended.stdout.split())
    assert "forerun" in loaded and not loaded & heavy
