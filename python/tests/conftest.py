"""Fixtures: a file of seeded bytes, and the seed in the report."""

import random

import pytest

import forerun

SEED = 20260


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
