"""Reads announced by file and by name: they outlive the file, and none is dropped in silence."""

import gc
import os
import warnings

import pytest

import forerun
import forerun.torch

SAMPLES = 40


@pytest.fixture
def paths(tmp_path, content):
    paths = [tmp_path / f"sample{number:02}" for number in range(SAMPLES)]
    for number, path in enumerate(paths):
        path.write_bytes(content[number : number + 20_000 + 1000 * number])
    return paths


@pytest.fixture(autouse=True)
def strict():
    """A warning that a test does not expect fails it."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        yield


def read(path, engine):
    with forerun.open(path, engine=engine) as file:
        return file.read()


def ended(engine):
    ledger = engine.ledger()
    assert ledger["hints_open"] == 0
    return ledger["hints_read"], ledger["hints_missed"], ledger["hints_dropped"]


@pytest.mark.parametrize("name", [str, os.fsencode, lambda path: path, lambda path: path.as_uri()])
def test_a_file_is_announced_by_its_path(paths, engine, name):
    assert engine.hint([(name(path), 0, None) for path in paths]) == SAMPLES
    for path in paths:
        assert read(path, engine) == path.read_bytes()
    ledger = engine.ledger()
    assert ledger["hints"] == ledger["hints_read"] and ledger["misses"] == 0


def test_places_of_one_path_are_announced_in_their_order(path, engine, content):
    order = [(path, offset, 65536) for offset in range(0, 1 << 20, 65536)][::-1]
    assert engine.hint(order) == len(order)
    with forerun.open(path, engine=engine) as file:
        for _, offset, length in order:
            assert file.pread(length, offset) == content[offset : offset + length]
    assert engine.ledger()["misses"] == 0


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_hint_outlives_the_file_that_nothing_has_any_more(paths, engine, buffering):
    engine.hint([(forerun.open(path, "rb", buffering, engine=engine), 0, None) for path in paths])
    gc.collect()
    assert engine.ledger()["hints_dropped"] == 0
    for path in paths:
        read(path, engine)
    read_, missed, dropped = ended(engine)
    assert (missed, dropped) == (0, 0) and read_ >= SAMPLES


@pytest.mark.parametrize("buffering", [0, -1])
def test_a_closed_file_drops_its_hints_which_is_said_once_with_the_reason(paths, engine, buffering):
    for turn in range(3):
        file = forerun.open(paths[-1], "rb", buffering, engine=engine)
        engine.hint([(file, 0, None)]) if turn == 0 else None
        if turn == 1:
            with pytest.warns(RuntimeWarning, match=r"dropped: a file was closed before.*said once"):
                engine.hint([(file, 0, None)])
        if turn == 2:
            engine.hint([(file, 0, None)])
        file.close()
    assert engine.ledger()["hints_dropped"] > 0


def test_a_file_that_changed_drops_its_hints_with_the_reason(paths, engine):
    engine.hint([(paths[0], 0, None), (paths[1], 0, None)])
    paths[0].write_bytes(b"other")
    read(paths[0], engine)
    with pytest.warns(RuntimeWarning, match="dropped: a file changed, or the memory was needed"):
        engine.hint([(paths[2], 0, None)])


def test_a_file_that_cannot_be_opened_is_said_once_and_the_others_are_announced(paths, engine):
    paths[3].unlink()
    paths[4].unlink()
    order = [(path, 0, None) for path in paths]
    with pytest.warns(RuntimeWarning, match=r"cannot be opened: FileNotFoundError.*sample03"):
        assert engine.hint(order) == SAMPLES
    for path in paths[:3] + paths[5:]:
        read(path, engine)
    assert engine.ledger()["misses"] == 0
    assert engine.hint(order) == SAMPLES


def test_a_hint_behind_the_end_is_said_once(paths, engine):
    size = paths[0].stat().st_size
    with pytest.warns(RuntimeWarning, match=f"offset {size} in a file of {size} bytes"):
        assert engine.hint([(paths[0], size, 1), (paths[1], 0, 1)]) == 2
    assert engine.hint([(paths[0], 1 << 40, 1)]) == 1


def descriptors():
    return len(os.listdir("/proc/self/fd"))


def test_announced_files_are_let_go_once_they_were_read(paths, engine):
    read(paths[0], engine)
    before = descriptors()
    engine.hint([(path, 0, None) for path in paths])
    assert descriptors() >= before + SAMPLES
    for path in paths:
        read(path, engine)
    engine.ledger()
    assert descriptors() == before


def test_more_files_than_are_kept_are_announced_once_others_were_read(tmp_path, content):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [tmp_path / str(number) for number in range(300)]
    for path in paths:
        path.write_bytes(content[:4096])
    engine = forerun.Engine(memory=64 << 20)
    engine.ledger()
    try:
        # A quarter of them are for announced files.
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
        rest = list(paths)
        while rest:
            taken = engine.hint([(path, 0, None) for path in rest])
            assert 0 < taken <= 100
            for path in rest[:taken]:
                assert read(path, engine) == content[:4096]
            del rest[:taken]
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert engine.ledger()["misses"] == 0


class Folder:
    """Samples of files, each opened where it is read."""

    def __init__(self, paths, engine):
        self.paths, self.engine = paths, engine

    def __len__(self):
        return len(self.paths)

    def __getitem__(self, index):
        return read(self.paths[index], self.engine)


LOCATIONS = {
    "path": lambda path, _: (path, 0, None),
    "opened": lambda path, engine: (forerun.open(path, engine=engine), 0, None),
    "two places": lambda path, _: [(path, 0, 8192), (str(path), 8192, None)],
}


@pytest.mark.parametrize("location", LOCATIONS)
@pytest.mark.parametrize("ahead", [1, 7, 1024])
def test_samples_in_many_files_are_read_as_announced(paths, engine, location, ahead):
    dataset = Folder(paths, engine)
    plan = forerun.torch.Plan(len(paths), seed=1)
    locate = lambda index: LOCATIONS[location](paths[index], engine)  # noqa: E731
    hinted = forerun.torch.HintedDataset(dataset, plan, locate, engine=engine, ahead=ahead)
    for epoch in range(3):
        hinted.epoch = epoch
        for index in plan.order(epoch):
            assert hinted[index] == paths[index].read_bytes()
    assert hinted.announcer().unexpected == 0
    ledger = engine.ledger()
    assert ledger["hints_dropped"] == 0
    assert ledger["hints"] >= 3 * SAMPLES
