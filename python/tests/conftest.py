"""Fixtures: a file of seeded bytes, and the seed in the report."""

import os
import random

import pytest

import forerun

SEED = 20260


def pytest_runtest_logreport(report):
    """A skipped test is a line in the summary of `make test`."""
    summary = os.environ.get("FORERUN_SKIPPED")
    if report.skipped and summary:
        reason = report.longrepr[2].replace("\n", "; ")
        with open(summary, "a") as lines:
            lines.write(f"skipped: python::{report.nodeid}: {reason}\n")


@pytest.fixture
def content():
    print(f"seed {SEED}")
    return random.Random(SEED).randbytes(3 * (1 << 20) + 777)


@pytest.fixture
def path(tmp_path, content):
    path = tmp_path / "data"
    path.write_bytes(content)
    return path


@pytest.fixture
def engine():
    return forerun.Engine(memory=16 << 20)


@pytest.fixture
def file(path, engine):
    with forerun.open(path, engine=engine) as file:
        yield file
