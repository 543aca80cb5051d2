"""Docstrings, the README and stubs agree with the package."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest


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
