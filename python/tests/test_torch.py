"""torch: plans, announcements and shards, with a stand-in for `DataLoader`.

The stand-in deals batches to workers in turn and pickles the dataset for each, as torch does with
spawned workers; the workers are read one after the other, each with its own engine.
"""

import pickle
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st

import forerun
import forerun.torch
from forerun._folder import place_of

SAMPLE = 4096


class Samples:
    """Fixed-size samples of one file, opened where they are read."""

    def __init__(self, path, engine):
        self.path, self.engine, self.file = path, engine, None

    def opened(self):
        if self.file is None:
            self.file = forerun.open(self.path, engine=self.engine)
        return self.file

    def __len__(self):
        return self.path.stat().st_size // SAMPLE

    def __getitem__(self, index):
        return self.opened().pread(SAMPLE, index * SAMPLE)

    def locate(self, index):
        return self.opened(), index * SAMPLE, SAMPLE

    def __getstate__(self):
        return {**self.__dict__, "file": None}


@dataclass
class Worker:
    """A number and a count of workers; replaces `torch.utils.data.get_worker_info`."""

    id: int = 0
    count: int = 1

    def __call__(self):
        return self.id, self.count


class StandIn:
    """`torch.utils.data.DataLoader` with batches of lists."""

    def __init__(
        self, dataset, *, num_workers, worker_init_fn, batch_size=1, sampler=None, drop_last=False, batch_sampler=None
    ):
        self.dataset, self.sampler, self.batch_size = dataset, sampler, batch_size
        self.drop_last, self.workers, self.batch_sampler = drop_last, num_workers, batch_sampler
        assert (worker_init_fn is None) == (num_workers == 0)

    def __iter__(self):
        if self.batch_sampler is not None:
            yield from ([self.dataset[index] for index in batch] for batch in self.batch_sampler)
            return
        order, size = list(self.sampler), self.batch_size
        batches = [order[i : i + size] for i in range(0, len(order), size)]
        if self.drop_last:
            batches = [batch for batch in batches if len(batch) == size]
        datasets = []
        for worker in range(max(self.workers, 1)):
            copy = pickle.loads(pickle.dumps(self.dataset)) if self.workers else self.dataset
            copy.worker = Worker(worker, max(self.workers, 1))
            datasets.append(copy)
        for number, batch in enumerate(batches):
            dataset = datasets[number % len(datasets)]
            yield [dataset[index] for index in batch]
        self.unexpected = [dataset.announcer().unexpected for dataset in datasets]


@pytest.fixture
def torch(monkeypatch):
    import sys
    import types

    data = types.ModuleType("torch.utils.data")
    data.DataLoader = StandIn
    data.get_worker_info = lambda: None
    for name, module in [
        ("torch", types.ModuleType("torch")),
        ("torch.utils", types.ModuleType("torch.utils")),
        ("torch.utils.data", data),
    ]:
        monkeypatch.setitem(sys.modules, name, module)


PLAN = st.builds(
    forerun.torch.Plan,
    samples=st.integers(0, 200),
    seed=st.integers(),
    rank=st.just(0),
    world_size=st.integers(1, 7),
    batch_size=st.integers(1, 9),
    shuffle=st.booleans(),
    drop_last=st.booleans(),
)


@given(plan=PLAN, epoch=st.integers(0, 5))
def test_ranks_have_equal_shares_that_are_all_samples_together(plan, epoch):
    ranks = [
        forerun.torch.Plan(plan.samples, plan.seed, rank, plan.world_size, shuffle=plan.shuffle)
        for rank in range(plan.world_size)
    ]
    orders = [rank.order(epoch) for rank in ranks]
    if plan.samples > 0:
        assert {len(order) for order in orders} == {len(plan)}
    assert set().union(*orders) == set(range(plan.samples))
    assert orders == [rank.order(epoch) for rank in ranks]


@given(plan=PLAN, workers=st.integers(1, 5))
def test_workers_have_the_batches_that_a_loader_deals_to_them(plan, workers):
    order, size = plan.order(0), plan.batch_size
    batches = [order[i : i + size] for i in range(0, len(order), size)]
    if plan.drop_last:
        batches = [batch for batch in batches if len(batch) == size]
    for worker in range(workers):
        expected = [index for batch in batches[worker::workers] for index in batch]
        assert plan.order_of_worker(0, worker, workers) == expected


@pytest.mark.parametrize("workers", [0, 3])
def test_every_read_of_three_epochs_was_announced(torch, path, workers):
    engine = forerun.Engine(memory=2 << 20)
    samples = Samples(path, engine)
    loader = forerun.torch.data_loader(
        samples, samples.locate, batch_size=8, seed=7, num_workers=workers, engine=engine, ahead=64
    )
    if workers:
        # Copies locate with the dataset they have.
        loader.dataset.locate = samples.locate
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        read = [sample for batch in loader for sample in batch]
        content = path.read_bytes()
        order = loader.sampler.plan.order(epoch)
        assert read == [content[i * SAMPLE :][:SAMPLE] for i in order]
        assert set(loader.unexpected) == {0}
    ledger = engine.ledger()
    assert ledger["hints"] >= 3 * len(samples)
    # Of workers that share an engine here, one may come before its turn.
    assert ledger["misses"] <= (0.05 * ledger["reads"] if workers else 0)


def test_the_next_epoch_is_announced_before_this_one_ends(path, engine):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine, ahead=32)
    for index in plan.order(0):
        hinted[index]
    ledger = engine.ledger()
    assert ledger["hints"] > len(samples)
    assert ledger["hints_open"] > 0
    hinted.epoch = 1
    for index in plan.order(1):
        hinted[index]
    assert hinted.announcer().unexpected == 0


def test_reads_in_another_order_are_counted_and_right(path, engine, content):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine)
    for index in (0, 5, 5, 700, 3):
        assert hinted[index] == content[index * SAMPLE :][:SAMPLE]
    assert hinted.announcer().unexpected > 0


def read_epochs(hinted, orders, set_epoch):
    """Reads orders one after the other; of each how many reads came out of turn."""
    counts = [0]
    for epoch, order in enumerate(orders):
        if set_epoch:
            hinted.epoch = epoch
        for index in order:
            hinted[index]
        counts.append(hinted.announcer().unexpected)
    return [after - before if after >= before else after for before, after in zip(counts, counts[1:])]


@pytest.mark.parametrize("left_at", [0, 1, 300, 700])
def test_an_epoch_that_is_left_early_leaves_the_next_one_announced(path, engine, left_at):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine, ahead=32)
    assert len(samples) > 700
    orders = [plan.order(epoch)[: left_at if epoch == 1 else None] for epoch in range(4)]
    assert read_epochs(hinted, orders, set_epoch=True) == [0, 0, 0, 0]


@pytest.mark.parametrize("epochs", ["the next", "the same"])
@pytest.mark.parametrize("left_at", [300, 700, None])
def test_an_order_that_begins_anew_is_found_by_its_reads(path, engine, epochs, left_at):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine, ahead=32)
    orders = [plan.order(epoch if epochs == "the next" else 0)[:left_at] for epoch in range(4)]
    counts = read_epochs(hinted, orders, set_epoch=False)
    # As many as are looked at before, and one that was taken for the first in turn.
    assert all(count <= 2 * 64 for count in counts)
    if left_at is None:
        assert counts[2:] == [0, 0]


@pytest.mark.parametrize("short", [10, 30, 60])
def test_an_order_is_found_behind_epochs_of_a_few_samples(path, engine, short):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine, ahead=32)
    orders = [plan.order(epoch)[: short if epoch < 4 else None] for epoch in range(8)]
    assert read_epochs(hinted, orders, set_epoch=False)[-2:] == [0, 0]


def test_reads_in_no_order_are_looked_for_less_and_less_often(path, engine):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(len(samples), seed=3, shuffle=False)
    hinted = forerun.torch.HintedDataset(samples, plan, samples.locate, engine=engine)
    orders = []
    kind = type(plan)
    asked = kind.order_of_worker
    try:
        kind.order_of_worker = lambda *arguments: orders.append(1) or asked(*arguments)
        for _ in range(20):
            for index in range(700, 300, -1):
                hinted[index]
    finally:
        kind.order_of_worker = asked
    # Behind 64, 128, 256 and 512 of them.
    assert len(orders) <= 4 * 10


@pytest.mark.parametrize("kind", ["planned", "told"])
def test_a_sample_without_a_place_fails_alone(path, engine, content, kind):
    samples = Samples(path, engine)

    def locate(index):
        if index == 5:
            raise KeyError("no five")
        return samples.locate(index)

    if kind == "planned":
        plan = forerun.torch.Plan(64, shuffle=False)
        hinted, order = forerun.torch.HintedDataset(samples, plan, locate, engine=engine), range(64)
    else:
        hinted = forerun.torch.ToldDataset(samples, locate, engine=engine)
        order = [index for batch in forerun.torch.LookAhead([list(range(64))], 64, 0) for index in batch]
    for number, index in enumerate(order):
        if number == 5:
            with pytest.raises(KeyError, match="no five"):
                hinted[index]
        else:
            assert hinted[index] == content[number * SAMPLE :][:SAMPLE]
    assert hinted.announcer().unexpected == 0 and engine.ledger()["hints"] >= 63


class Number:
    """A whole number of another package, as of numpy or torch."""

    def __init__(self, value):
        self.value = value

    def __index__(self):
        return self.value


@pytest.mark.parametrize("several", [False, True])
def test_a_place_has_whole_numbers_of_any_kind(path, engine, several):
    samples = Samples(path, engine)

    def locate(index):
        place = samples.opened(), Number(index * SAMPLE), Number(SAMPLE)
        return (place, place, place) if several else place

    plan = forerun.torch.Plan(8, shuffle=False)
    hinted = forerun.torch.HintedDataset(samples, plan, locate, engine=engine)
    for index in range(8):
        hinted[index]
    assert engine.ledger()["hints"] >= 8 and hinted.announcer().unexpected == 0


@pytest.mark.parametrize("place", [("data", 1.5, None), ("data", 0, "all"), ("data", 0), "data", 7, [("data", 0, None), 3]])
def test_a_place_of_another_form_is_refused_by_name(path, engine, place):
    samples = Samples(path, engine)
    plan = forerun.torch.Plan(8, shuffle=False)
    hinted = forerun.torch.HintedDataset(samples, plan, lambda index: place, engine=engine)
    with pytest.raises(TypeError, match=r"locate\(0\) of .*: must be \(file, offset, length\)"):
        hinted[0]


def test_paths_in_an_array_are_the_samples_of_a_data_set(path):
    class Array(list):
        def __bool__(self):
            raise ValueError("the truth of an array is ambiguous")

    class Files:
        samples = Array([str(path)])

    assert place_of(Files(), 0) == (str(path), 0, None)


class AtOnce(Samples):
    """Samples of which a batch is read by one call."""

    def __getitems__(self, indices):
        return [self[index] for index in indices]


@pytest.mark.parametrize("kind", ["planned", "told"])
def test_a_data_set_that_reads_batches_at_once_does_so_announced(kind, path, engine, content):
    def dressed(samples):
        if kind == "told":
            return forerun.torch.ToldDataset(samples, samples.locate, engine=engine)
        return forerun.torch.HintedDataset(samples, forerun.torch.Plan(len(samples), shuffle=False), samples.locate, engine=engine)

    assert not hasattr(dressed(Samples(path, engine)), "__getitems__")
    data = pickle.loads(pickle.dumps(dressed(AtOnce(path, engine))))
    order = list(range(64))
    batches = list(forerun.torch.LookAhead([order[at : at + 8] for at in range(0, 64, 8)], 64, 0)) if kind == "told" else [order]
    read = [sample for batch in batches for sample in data.__getitems__(batch)]
    assert read == [content[index * SAMPLE :][:SAMPLE] for index in order]
    assert data.announcer().unexpected == 0 and engine.ledger()["hints"] > 0


def test_shards_are_announced_and_closed_in_turn(tmp_path, engine):
    paths = [tmp_path / f"shard{i}" for i in range(5)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 100_000)
    seen = []
    for file in forerun.torch.open_shards(paths, engine=engine, ahead=2):
        seen.append(file)
        assert file.read() == paths[len(seen) - 1].read_bytes()
    assert all(file.closed for file in seen) and len(seen) == 5
    ledger = engine.ledger()
    assert ledger["hints_read"] > 0 and ledger["misses"] == 0


def test_a_shard_that_is_missing_is_an_error_in_its_turn_and_the_others_are_read(tmp_path, engine):
    paths = [tmp_path / f"shard{i}" for i in range(5)]
    for number, path in enumerate(paths):
        if number not in (2, 4):
            path.write_bytes(bytes([number]) * 1000)
    shards = forerun.torch.open_shards(paths, engine=engine, ahead=2)
    read = []
    for _ in paths:
        try:
            file = next(shards)
            read.append(file.read(1))
        except FileNotFoundError as error:
            read.append(error.filename)
    assert read == [b"\0", b"\1", str(paths[2]), b"\3", str(paths[4])]
    assert file.closed and next(shards, None) is None


@pytest.mark.filterwarnings("ignore:forerun. announced reads")
def test_shards_that_are_left_are_closed(tmp_path, engine):
    paths = [tmp_path / f"shard{i}" for i in range(5)]
    for path in paths:
        path.write_bytes(b"abc")
    for leave in ("close", "forget"):
        shards = forerun.torch.open_shards(paths, engine=engine, ahead=2)
        opened = [next(shards), *shards._opened]
        if leave == "close":
            shards.close()
            assert next(shards, None) is None
        del shards
        assert len(opened) == 3 and all(file.closed for file in opened)


def test_a_worker_has_its_share_of_the_memory(engine):
    forerun.torch.share_memory(engine, 4)
    assert engine.memory_limit == engine.memory // 4
    forerun.torch.share_memory(engine, 2)
    assert engine.memory_limit == engine.memory // 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: forerun.torch.Plan(-1), "samples of -1: must be at least 0"),
        (lambda: forerun.torch.Plan(1, batch_size=0), "batch_size of 0: must be at least 1"),
        (lambda: forerun.torch.Plan(1, rank=2), "rank of 2: must lie from 0 to 0"),
        (lambda: forerun.torch.share_memory(None, 0), "workers of 0: must be at least 1"),
        (lambda: next(forerun.torch.open_shards([], ahead=-1)), "ahead of -1: must be at least 0"),
    ],
)
def test_values_out_of_range_are_named_with_the_range(call, message):
    with pytest.raises(ValueError, match=message):
        call()


class Evens:
    """A sampler with an order and no epoch."""

    def __iter__(self):
        return iter(range(0, 60, 2))

    def __len__(self):
        return 30


class Rotated(Evens):
    """A sampler with epochs, as `DistributedSampler` of torch."""

    epoch = 0

    def set_epoch(self, epoch):
        self.epoch = epoch

    def __iter__(self):
        return iter([(index + self.epoch) % 100 for index in super().__iter__()])


def resumable(path, engine, kind, workers=0):
    """A loader of one kind, and its order in an epoch."""
    samples = Samples(path, engine)
    options = {"batch_size": 4, "engine": engine, "ahead": 16}
    if kind == "plan":
        loader = forerun.torch.data_loader(samples, samples.locate, seed=7, num_workers=workers, **options)
        if workers:
            loader.dataset.locate = samples.locate
        return loader, loader.sampler.set_epoch, loader.sampler.plan.order
    sampler = Evens() if kind == "evens" else Rotated()
    loader = forerun.torch.data_loader(samples, samples.locate, sampler=sampler, **options)

    def order(epoch):
        return [(index + (epoch if kind == "rotated" else 0)) % 100 for index in range(0, 60, 2)]

    return loader, getattr(sampler, "set_epoch", lambda epoch: None), order


@pytest.mark.parametrize(("kind", "workers"), [("plan", 0), ("plan", 3), ("evens", 0), ("rotated", 0)])
def test_an_epoch_goes_on_in_another_process_from_the_place_of_a_state(
    torch, path, engine, content, kind, workers
):
    loader, set_epoch, order = resumable(path, engine, kind, workers)
    set_epoch(1)
    batches = iter(loader)
    for number in range(3):
        assert loader.state_dict()["batches"] == number
        next(batches)
    state = pickle.loads(pickle.dumps(loader.state_dict()))
    assert state["batches"] == 3

    fresh = forerun.Engine(memory=8 << 20)
    loader, set_epoch, order = resumable(path, fresh, kind, workers)
    loader.load_state_dict(state)
    assert loader.state_dict() == state
    for epoch in (1, 2):
        set_epoch(epoch)
        read = [sample for batch in loader for sample in batch]
        expected = order(epoch)[12 if epoch == 1 else 0 :]
        assert read == [content[index * SAMPLE :][:SAMPLE] for index in expected]
        if kind == "plan":
            assert set(loader.unexpected) == {0}
        else:
            assert loader.dataset.announcer().unexpected == 0
    if kind != "plan":
        # No sample that was left out; a plan announces the epoch after, too.
        assert fresh.ledger()["hints"] == 18 + 30


def test_another_epoch_than_that_of_the_state_begins_at_its_beginning(torch, path, engine):
    loader, set_epoch, order = resumable(path, engine, "plan")
    loader.load_state_dict({**loader.state_dict(), "epoch": 4, "batches": 2})
    assert loader.sampler.epoch == 4
    set_epoch(5)
    assert len([sample for batch in loader for sample in batch]) == len(order(5))
    assert loader.state_dict() == {**loader.state_dict(), "epoch": 5, "batches": -(-len(order(5)) // 4)}


@pytest.mark.parametrize(
    ("kind", "changed", "message"),
    [
        ("plan", {"seed": 8}, "seed of 8 in the state: must be 7"),
        ("plan", {"batch_size": 3}, "batch_size of 3 in the state: must be 4"),
        ("plan", {"batches": -1}, "batches of -1 in the state: must lie from 0 to"),
        ("plan", {"batches": "1"}, "batches of '1' in the state: must lie from 0 to"),
        ("plan", {"epoch": -1}, "epoch of -1 in the state: must be at least 0"),
        ("evens", {"epoch": 2}, "epoch of 2 in the state: must be None"),
        ("evens", {"samples": 1}, "samples of 1 in the state: must be"),
    ],
)
def test_a_state_of_another_order_is_refused(torch, path, engine, kind, changed, message):
    loader, _, _ = resumable(path, engine, kind)
    with pytest.raises(ValueError, match=message):
        loader.load_state_dict(loader.state_dict() | changed)
    with pytest.raises(ValueError, match="must have 'batches'"):
        loader.load_state_dict({"epoch": 0})
