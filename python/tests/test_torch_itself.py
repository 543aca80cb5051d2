"""torch's own `DataLoader`: orders announced in its worker processes, however they are started."""

import os

import pytest

import forerun
import forerun.torch

torch = pytest.importorskip("torch", reason="torch is not installed; `make torch` fetches it")

SAMPLE = 4096


class Samples:
    """Samples of one file, each with what its process had read and announced until then."""

    def __init__(self, path, engine):
        self.path, self.engine, self.file, self.hinted = path, engine, None, None

    def opened(self):
        if self.file is None:
            self.file = forerun.open(self.path, engine=self.engine)
        return self.file

    def __len__(self):
        return os.path.getsize(self.path) // SAMPLE

    def __getitem__(self, index):
        sample = self.opened().pread(SAMPLE, index * SAMPLE)
        announced = self.hinted.announcer()
        ledger = self.engine.ledger()
        seen = (os.getpid(), announced.unexpected, ledger["misses"], self.engine.memory_limit)
        return index, sample, seen

    def locate(self, index):
        return self.opened(), index * SAMPLE, SAMPLE

    def __getstate__(self):
        return {**self.__dict__, "file": None}


def together(samples):
    """A batch as it is."""
    return samples


WAYS = [
    {},
    {"num_workers": 1, "multiprocessing_context": "fork"},
    {"num_workers": 3, "multiprocessing_context": "fork"},
    {"num_workers": 2, "multiprocessing_context": "spawn"},
    {"num_workers": 2, "multiprocessing_context": "forkserver"},
    {"num_workers": 2, "multiprocessing_context": "fork", "persistent_workers": True},
    {"num_workers": 3, "multiprocessing_context": "fork", "prefetch_factor": 1, "drop_last": True},
]


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(str(value) for value in way.values()))
def test_every_sample_comes_in_the_announced_order_to_the_worker_that_announced_it(path, content, way):
    engine = forerun.Engine(memory=6 << 20)
    samples = Samples(path, engine)
    loader = forerun.torch.data_loader(
        samples, samples.locate, batch_size=8, seed=7, engine=engine, ahead=64, collate_fn=together, **way
    )
    samples.hinted = loader.dataset
    workers = way.get("num_workers", 0)
    processes = set()
    for epoch in range(3):
        loader.sampler.set_epoch(epoch)
        order = loader.sampler.plan.order(epoch)
        if way.get("drop_last"):
            order = order[: len(order) // 8 * 8]
        read = [sample for batch in loader for sample in batch]
        assert [index for index, _, _ in read] == order
        assert all(sample == content[index * SAMPLE :][:SAMPLE] for index, sample, _ in read)
        seen = [seen for _, _, seen in read]
        processes |= {pid for pid, _, _, _ in seen}
        assert {unexpected for _, unexpected, _, _ in seen} == {0}
        # The first read of a process may come before anything is announced; no other misses.
        assert max(misses for _, _, misses, _ in seen) <= 1
        assert {limit for _, _, _, limit in seen} == {engine.memory // max(workers, 1)}
    started = 1 if way.get("persistent_workers") or not workers else 3
    assert len(processes) == max(workers, 1) * started
    assert (os.getpid() in processes) == (workers == 0)


class Shards(torch.utils.data.IterableDataset):
    """Records of shards, those of a worker."""

    def __init__(self, paths):
        self.paths = paths

    def __iter__(self):
        info = torch.utils.data.get_worker_info()
        mine = self.paths if info is None else self.paths[info.id :: info.num_workers]
        engine = forerun.Engine(memory=4 << 20)
        for file in forerun.torch.open_shards(mine, engine=engine):
            while record := file.read(1000):
                yield record, engine.ledger()["misses"]


@pytest.mark.parametrize("workers", [0, 2])
def test_shards_of_iterable_datasets_are_announced_in_workers(tmp_path, workers):
    paths = [tmp_path / f"shard{number}" for number in range(6)]
    for number, path in enumerate(paths):
        path.write_bytes(bytes([number]) * 50_000)
    loader = torch.utils.data.DataLoader(Shards(paths), batch_size=None, num_workers=workers)
    read = list(loader)
    assert sorted(record[0] for record, _ in read) == sorted(list(range(6)) * 50)
    assert {misses for _, misses in read} == {0}


class Numbered(forerun.torch.Folder):
    """A folder whose samples tell what their process had announced."""

    def __getitem__(self, index):
        content, _ = super().__getitem__(index)
        announcer = self.told.announcer() if hasattr(self, "told") else None
        return index, content, os.getpid(), announcer.unexpected if announcer else None


@pytest.mark.parametrize("way", WAYS, ids=lambda way: "-".join(str(value) for value in way.values()))
@pytest.mark.parametrize("kind", ["weighted", "distributed", "batches"])
def test_samplers_of_torch_are_announced_to_its_workers(tmp_path, content, way, kind):
    if way.get("multiprocessing_context") not in (None, "fork") and kind != "weighted":
        pytest.skip("an import of torch for each worker, and no difference")
    for number in range(120):
        (tmp_path / f"{number:03}").write_bytes(content[number * 50 :][: 5000 + number])
    engine = forerun.Engine(memory=12 << 20)
    dataset = Numbered(tmp_path, engine=engine)
    data, options = torch.utils.data, {}
    if kind == "weighted":
        order = torch.Generator().manual_seed(5)
        options["sampler"] = data.WeightedRandomSampler([1.0] * 60 + [3.0] * 60, 150, generator=order)
    elif kind == "distributed":
        options["sampler"] = data.DistributedSampler(dataset, num_replicas=3, rank=1, seed=4)
    else:
        options["batch_sampler"] = data.BatchSampler(data.RandomSampler(dataset), 8, way.get("drop_last", False))
    way = {name: value for name, value in way.items() if name != "drop_last" or kind != "batches"}
    if kind != "batches":
        options["batch_size"] = 8
    loader = forerun.torch.data_loader(
        dataset, engine=engine, ahead=32, collate_fn=together, **options, **way
    )
    dataset.told = loader.dataset
    for epoch in range(2):
        if kind == "distributed":
            options["sampler"].set_epoch(epoch)
        read = [sample for batch in loader for sample in batch]
        assert {unexpected for *_, unexpected in read} == {0}
        assert all(
            sample == content[index * 50 :][: 5000 + index] for index, sample, _, _ in read
        )
        if kind == "distributed":
            assert [index for index, *_ in read] == list(options["sampler"])[: len(read)]
    assert (os.getpid() in {pid for *_, pid, _ in read}) == (way.get("num_workers", 0) == 0)


@pytest.mark.parametrize(
    "way",
    [{}, {"num_workers": 2, "multiprocessing_context": "fork"}, {"num_workers": 2, "persistent_workers": True}],
    ids=lambda way: "-".join(str(value) for value in way.values()),
)
def test_an_epoch_goes_on_from_a_state_with_any_number_of_workers(path, way):
    def made(**options):
        engine = forerun.Engine(memory=6 << 20)
        samples = Samples(path, engine)
        loader = forerun.torch.data_loader(
            samples, samples.locate, batch_size=8, seed=7, engine=engine, ahead=64, collate_fn=together, **options
        )
        samples.hinted = loader.dataset
        return loader

    stopped = made(num_workers=1)
    stopped.sampler.set_epoch(2)
    for number, _ in enumerate(stopped):
        if number == 4:
            # Its worker has read ahead.
            state = stopped.state_dict()
            break
    loader = made(**way)
    assert isinstance(loader, torch.utils.data.DataLoader)
    order = loader.sampler.plan.order(2)
    for again in range(2):
        # The second time workers that live on are at another place.
        loader.load_state_dict(state)
        read = [sample for batch in loader for sample in batch]
        assert [index for index, _, _ in read] == order[40:]
        assert {unexpected for _, _, (_, unexpected, _, _) in read} == {0}
        assert loader.state_dict() == {**state, "batches": len(loader)}
        assert len(iter(loader)) == len(loader)
    loader.sampler.set_epoch(3)
    assert [index for batch in loader for index, _, _ in batch] == loader.sampler.plan.order(3)
    # As frameworks make a loader of another.
    anew = type(loader)(loader.dataset, batch_size=8, sampler=loader.sampler, collate_fn=together)
    assert [index for batch in anew for index, _, _ in batch] == loader.sampler.plan.order(3)
    with pytest.raises(TypeError, match="must be one of forerun.torch.data_loader"):
        anew.load_state_dict(state)
