"""Reads announced by file and by name: they outlive the file, and none is dropped in silence."""

import contextlib
import gc
import itertools
import os
import pathlib
import pickle
import random
import sys
import threading
import time
import types
import warnings
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

import forerun
import forerun.torch

SAMPLES = 40
WAIT = 600


@pytest.fixture
def paths(tmp_path, content):
    paths = [tmp_path / f"sample{number:02}" for number in range(SAMPLES)]
    for number, path in enumerate(paths):
        path.write_bytes(content[number : number + 20_000 + 1000 * number])
    return paths


@pytest.fixture(autouse=True)
def strict():
    """A warning that a test does not expect fails it, also of reads that another test left."""
    forerun.set_default_engine(forerun.Engine(memory=64 << 20))
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


@pytest.mark.filterwarnings("error")
def test_an_empty_file_that_is_announced_whole_is_no_hint_behind_the_end(paths, engine):
    paths[0].write_bytes(b"")
    assert engine.hint([(paths[0], 0, None), (paths[1], 0, None)]) == 2
    assert read(paths[0], engine) == b""
    read(paths[1], engine)


def test_a_hint_behind_the_end_is_said_once(paths, engine):
    size = paths[0].stat().st_size
    with pytest.warns(RuntimeWarning, match=f"offset {size} in a file of {size} bytes"):
        assert engine.hint([(paths[0], size, 1), (paths[1], 0, 1)]) == 2
    assert engine.hint([(paths[0], 1 << 40, 1)]) == 1


def opened(paths):
    """Those that this process has open. Others come and go with engines of other tests, which end on a thread of their own."""
    open_now = []
    for name in os.listdir("/proc/self/fd"):
        # The listing's own descriptor is gone by now, and one of another thread may be.
        with contextlib.suppress(FileNotFoundError):
            open_now.append(os.readlink(f"/proc/self/fd/{name}"))
    return [path for path in paths if str(path) in open_now]


def all_are_closed(paths):
    """Waits for it: the request of a read closes its file after the reader has the bytes."""
    until = time.monotonic() + WAIT
    while opened(paths) and time.monotonic() < until:
        time.sleep(0.001)
    return opened(paths) == []


def test_announced_files_are_let_go_once_they_were_read(paths, engine):
    read(paths[0], engine)
    assert all_are_closed(paths)
    engine.hint([(path, 0, None) for path in paths])
    assert opened(paths) == paths
    for path in paths:
        read(path, engine)
    engine.ledger()
    assert all_are_closed(paths)


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


def test_names_behind_one_that_opens_slowly_are_opened_as_far_as_some_may_be_kept(tmp_path, content):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    paths = [tmp_path / str(number) for number in range(1000)]
    for path in paths:
        path.write_bytes(content[:512])
    engine = forerun.Engine(memory=64 << 20)
    engine.ledger()
    most = []

    class Slow(BaseHTTPRequestHandler):
        """Has no object, and says so once the names behind are open. The second is for those that should not be."""

        def do_GET(self):
            until = time.monotonic() + WAIT
            while len(opened(paths)) < 50 and time.monotonic() < until:
                time.sleep(0.001)
            until = time.monotonic() + 1
            while len(opened(paths)) <= 100 and time.monotonic() < until:
                time.sleep(0.001)
            most.append(len(opened(paths)))
            self.send_error(404)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Slow)
    serving = threading.Thread(target=server.serve_forever, args=(0.01,))
    serving.start()
    slow = f"http://127.0.0.1:{server.server_port}/slow"
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (400, hard))
        with pytest.warns(RuntimeWarning, match="cannot be opened: .*slow"):
            taken = engine.hint([(slow, 0, None)] + [(path, 0, None) for path in paths])
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        server.shutdown()
        serving.join()
        server.server_close()
    # A quarter of them are for announced files; the slow one counts as taken.
    assert taken == 101 and 50 <= most[0] <= 100


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


@pytest.mark.parametrize("ahead", [1, 7, 1024])
@pytest.mark.parametrize("kind", ["missing", "folder", "loop"])
def test_a_data_set_with_files_that_cannot_be_read_is_read_but_for_them(folder, ahead, kind):
    engine = forerun.Engine(memory=16 << 20)
    data = forerun.torch.Folder(folder, engine=engine)
    plan = forerun.torch.Plan(len(data), seed=1)
    order = plan.order(0)
    path_of = lambda index: data.samples[index][0]  # noqa: E731
    unreadable = {order[0], order[30], order[59]}
    for index in unreadable:
        path = pathlib.Path(path_of(index))
        path.unlink()
        if kind == "folder":
            path.mkdir()
        elif kind == "loop":
            path.symlink_to(path.name)
    hinted = forerun.torch.HintedDataset(data, plan, engine=engine, ahead=ahead)
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        for index in order:
            path = path_of(index)
            if index in unreadable:
                with pytest.raises(OSError) as raised:
                    hinted[index]
                assert raised.value.filename == path
            else:
                assert hinted[index][0] == pathlib.Path(path).read_bytes()
    (said,) = warned
    assert "an announced file cannot be opened: " in str(said.message) and path_of(order[0]) in str(said.message)
    ledger = engine.ledger()
    assert (ledger["hints_dropped"], ledger["misses"]) == (0, 0)
    assert ledger["hints_read"] >= 57


class StandIn:
    """`torch.utils.data.DataLoader` in one process for each worker, one read after the other."""

    def __init__(self, dataset, *, batch_size=1, sampler=None, batch_sampler=None, drop_last=False, num_workers=0, **_):
        self.dataset, self.workers = dataset, max(num_workers, 1)
        self.batches = batch_sampler
        if batch_sampler is None:
            assert batch_size is None and not drop_last
            self.batches = sampler
        self.copies = [pickle.loads(pickle.dumps(dataset)) for _ in range(self.workers)]

    def __iter__(self):
        for number, batch in enumerate(self.batches):
            batch = pickle.loads(pickle.dumps(batch))
            dataset = self.copies[number % self.workers]
            yield dataset[batch] if isinstance(batch, int) else [dataset[index] for index in batch]


@pytest.fixture
def torch(monkeypatch):
    data = types.ModuleType("torch.utils.data")
    data.DataLoader = StandIn
    data.get_worker_info = lambda: None
    for name in ("torch", "torch.utils"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "torch.utils.data", data)


@pytest.fixture
def folder(tmp_path, content):
    for number in range(60):
        path = tmp_path / "images" / f"class{number % 3}" / f"{number}.bin"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[number * 100 :][: 5000 + number])
    return tmp_path / "images"


ORDERS = {
    "weighted": lambda: random.Random(3).choices(range(60), k=90),
    "few": lambda: [5, 1],
    "none": lambda: [],
    "reversed": lambda: list(range(60))[::-1],
}


@pytest.mark.parametrize("workers", [0, 1, 3])
@pytest.mark.parametrize("batch_size", [None, 1, 7])
@pytest.mark.parametrize("order", ORDERS)
def test_any_sampler_is_announced_to_the_worker_that_reads(torch, folder, workers, batch_size, order):
    order = ORDERS[order]()
    engine = forerun.Engine(memory=16 << 20)
    dataset = forerun.torch.Folder(folder, engine=engine)
    loader = forerun.torch.data_loader(
        dataset, sampler=order, batch_size=batch_size, num_workers=workers, engine=engine, ahead=16
    )
    for _ in range(2):
        read = list(loader)
        read = read if batch_size is None else [sample for batch in read for sample in batch]
        paths = [dataset.samples[index] for index in order]
        assert read == [(pathlib.Path(path).read_bytes(), target) for path, target in paths]
    announcers = [copy.announcer() for copy in loader.copies]
    assert {one.unexpected for one in announcers if one} <= {0}
    assert not any(one._announced or one._waiting for one in announcers if one)


@pytest.mark.parametrize("workers", [1, 2])
def test_batches_of_any_size_are_announced_and_one_epoch_may_end_early(torch, folder, workers):
    batches = [[1, 2, 3], [4], [5, 6], [7, 8, 9, 10, 11], [0]] * 3
    engine = forerun.Engine(memory=16 << 20)
    dataset = forerun.torch.Folder(folder, engine=engine)
    loader = forerun.torch.data_loader(
        dataset, batch_sampler=batches, num_workers=workers, engine=engine, ahead=8
    )
    for stop in (5, 100):
        read = [len(batch) for batch, _ in zip(loader, range(stop))]
        assert read == [len(batch) for batch in batches][:stop]
    assert {copy.announcer().unexpected for copy in loader.copies} == {0}


def test_a_sampler_without_an_end_is_asked_as_far_as_is_announced(torch, folder):
    asked = []

    def endless():
        for number in itertools.count():
            asked.append(number)
            yield number % 60

    class Endless:
        __iter__ = staticmethod(endless)

    loader = forerun.torch.data_loader(
        forerun.torch.Folder(folder), sampler=Endless(), batch_size=4, num_workers=2, ahead=16
    )
    assert len(list(itertools.islice(loader, 10))) == 10
    # Ten batches, and four ahead of each of two workers.
    assert len(asked) == (10 + 2 * 4) * 4


def test_a_folder_has_its_classes_and_samples_as_image_folders_have(folder):
    dataset = forerun.torch.Folder(folder, target_transform=lambda target: -target, transform=len)
    assert dataset.classes == ["class0", "class1", "class2"]
    assert dataset.class_to_idx == {"class0": 0, "class1": 1, "class2": 2}
    assert len(dataset) == 60 and dataset.targets.count(1) == 20
    path, target = dataset.samples[30]
    assert (target, dataset[30]) == (1, (os.path.getsize(path), -1))
    with pytest.raises(FileNotFoundError):
        forerun.torch.Folder(folder / "missing")


def test_a_folder_has_what_its_links_lead_to_and_ends_where_they_lead_back(tmp_path):
    for folder in ("images/one", "elsewhere/deep"):
        (tmp_path / folder).mkdir(parents=True)
        (tmp_path / folder / "file").write_bytes(folder.encode())
    images = tmp_path / "images"
    (images / "two").symlink_to(tmp_path / "elsewhere")
    (images / "three").symlink_to(images / "one")
    (images / "one" / "back").symlink_to(images)
    (images / "one" / "itself").symlink_to("itself")
    dataset = forerun.torch.Folder(images)
    assert dataset.classes == ["one", "three", "two"]
    names = [os.path.relpath(path, images) for path, _ in dataset.samples]
    assert {"one/file", "three/file", "two/deep/file"} <= set(names)
    assert len(names) < 20
    assert dataset[names.index("two/deep/file")] == (b"elsewhere/deep", 2)


class Images:
    """As `ImageFolder`: paths, and a loader that is given one."""

    def __init__(self, folder, engine):
        self.imgs = [(str(path), 0) for path in sorted(folder.rglob("*.bin"))]
        self.engine = engine

    def __len__(self):
        return len(self.imgs)

    def __getitem__(self, index):
        return read(self.imgs[index][0], self.engine)


class Subset:
    def __init__(self, dataset, indices):
        self.dataset, self.indices = dataset, indices

    def __len__(self):
        return len(self.indices)

    def __getitem__(self, index):
        return self.dataset[self.indices[index]]


class Both:
    """As `ConcatDataset`."""

    def __init__(self, *datasets):
        self.datasets = datasets
        self.cumulative_sizes = list(itertools.accumulate(len(one) for one in datasets))

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        first = len(self.datasets[0])
        return self.datasets[0][index] if index < first else self.datasets[1][index - first]


def test_a_data_set_says_itself_where_its_samples_lie(torch, folder):
    engine = forerun.Engine(memory=16 << 20)
    images = Images(folder, engine)
    dataset = Both(Subset(images, [3, 1, 2]), images)
    loader = forerun.torch.data_loader(dataset, sampler=range(len(dataset)), engine=engine)
    assert [batch[0] for batch in loader] == [dataset[index] for index in range(len(dataset))]
    assert engine.ledger()["hints_read"] > 0 and loader.copies[0].announcer().unexpected == 0


@pytest.mark.parametrize(
    ("options", "kind", "message"),
    [
        ({"sampler": [0], "shuffle": True}, ValueError, "shuffle given with an order of its own"),
        ({"sampler": [0], "rank": 1}, ValueError, "rank given with an order of its own"),
        ({"batch_sampler": [[0]], "world_size": 2}, ValueError, "world_size given with an order"),
        ({"batch_sampler": [[0]], "sampler": [0]}, ValueError, "batch_sampler excludes sampler"),
        ({"batch_sampler": [[0]], "batch_size": 2}, ValueError, "batch_sampler excludes sampler"),
        ({"batch_size": None}, ValueError, "batch_size of None: must be at least 1"),
        ({"sampler": [0], "batch_size": 0}, ValueError, "batch_size of 0: must be at least 1"),
        ({"sampler": [0], "ahead": 0}, ValueError, "ahead of 0: must be at least 1"),
    ],
)
def test_orders_that_contradict_each_other_are_refused(torch, folder, options, kind, message):
    with pytest.raises(kind, match=message):
        forerun.torch.data_loader(forerun.torch.Folder(folder), **options)


def test_a_data_set_that_does_not_say_where_its_samples_lie_is_refused_by_its_type(torch):
    with pytest.raises(TypeError, match="dataset of type list: has none of locate, samples and imgs"):
        forerun.torch.data_loader([1, 2, 3])


def test_a_short_sample_before_long_ones_does_not_cut_them_into_pieces(tmp_path, content, engine):
    sizes = [4096, *[80_000] * 9]
    paths = [tmp_path / str(number) for number in range(10)]
    for path, size in zip(paths, sizes):
        path.write_bytes(content[:size])
    engine.hint([(path, 0, None) for path in paths])
    # One for each file, of 20 blocks; cut to the length of the first one they were 181.
    assert engine.ledger()["hints"] == 10
    for path, size in zip(paths, sizes):
        assert read(path, engine) == content[:size]
    assert ended(engine) == (10, 0, 0)


class Pictures(Images):
    """As `ImageFolder` with the loader that torchvision gives it."""

    def __init__(self, folder, engine):
        super().__init__(folder, engine)
        self.loader = self.past_the_engine

    @staticmethod
    def past_the_engine(path):
        raise AssertionError("read past the engine")

    def __getitem__(self, index):
        return self.loader(self.imgs[index][0]).getpixel((0, 0))


Pictures.past_the_engine.__module__ = "torchvision.datasets.folder"


@pytest.mark.parametrize("longest", range(4))
def test_long_files_are_announced_in_the_order_of_their_reads(tmp_path, longest):
    paths = [tmp_path / str(number) for number in range(4)]
    for number, path in enumerate(paths):
        path.write_bytes(random.Random(number).randbytes((20 << 20) + 5000 * (number == longest)))
    engine = forerun.Engine(memory=32 << 20)
    engine.hint([(path, 0, None) for path in paths])
    for path in paths:
        assert read(path, engine) == path.read_bytes()
    ledger = engine.ledger()
    assert (ledger["hints_read"], ledger["hints_missed"]) == (ledger["hints"], 0)


def test_an_image_folder_opens_its_images_by_the_engine(torch, tmp_path, engine):
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed")
    for number in range(20):
        image.new("L", (40, 40), number).save(tmp_path / f"{number:02}.bin", "PNG")
    pictures = Pictures(tmp_path, engine)
    loader = forerun.torch.data_loader(pictures, sampler=range(20), batch_size=4, engine=engine)
    read = [sample for batch in loader for sample in batch]
    assert read == [(number,) * 3 for number in range(20)]
    # The data set itself is as it was.
    assert pictures.loader is pictures.past_the_engine
    assert engine.ledger()["hints_read"] == 20


class Byte(bytes):
    """An image of one colour."""

    def getpixel(self, _):
        return self[0]


def first_byte(path, *, engine):
    return Byte(read(path, engine))


@pytest.mark.parametrize("kind", ["part", "joined", "part of joined"])
def test_parts_of_an_image_folder_open_its_images_by_the_engine(torch, tmp_path, engine, kind, monkeypatch):
    monkeypatch.setattr(forerun.torch, "image", first_byte)
    for number in range(20):
        (tmp_path / f"{number:02}.bin").write_bytes(bytes([number]) * 5000)
    whole = Pictures(tmp_path, engine)
    data = {
        "part": Subset(whole, range(20)),
        "joined": Both(Subset(whole, range(5)), Subset(whole, range(5, 20))),
        "part of joined": Subset(Both(Subset(whole, range(5)), Subset(whole, range(5, 20))), range(20)),
    }[kind]
    loader = forerun.torch.data_loader(data, sampler=range(20), batch_size=4, engine=engine)
    assert [sample for batch in loader for sample in batch] == list(range(20))
    assert engine.ledger()["hints_read"] == 20
    # The data set itself is as it was.
    assert whole.loader is whole.past_the_engine


def test_a_part_of_another_data_set_is_left_as_it_is(torch, tmp_path, engine):
    (tmp_path / "0.bin").write_bytes(b"abc")
    for data in (Subset(Images(tmp_path, engine), [0]), Both(Images(tmp_path, engine), Images(tmp_path, engine))):
        assert forerun.torch.data_loader(data, sampler=[0], engine=engine).dataset.dataset is data
