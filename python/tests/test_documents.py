"""Docstrings, the README and stubs agree with the package."""

import ast
import doctest
import importlib
import subprocess
import sys
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
    assert {"Engine", "hint", "ledger", "limit_memory", "simulate", "reproduce"} <= set(compared)


@pytest.mark.parametrize("name", ["forerun", "forerun.torch"])
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
