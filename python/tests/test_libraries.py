"""Libraries that read by addresses, unchanged: with `forerun::` before the address their reads go through the engine."""

import fsspec
import pytest

import forerun
import forerun.fsspec

LENGTH = 100_000


@pytest.fixture
def address(tmp_path):
    """The address of a name in a folder; at the end its file must have been read through the engine."""
    before, named = forerun.default_engine().ledger()["reads"], []

    def of(name):
        named.append(name)
        return f"forerun::file://{tmp_path / name}"

    yield of
    if named:
        assert forerun.default_engine().ledger()["reads"] > before


def test_pandas_reads_csv_and_parquet(address, tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": range(LENGTH), "b": range(LENGTH, 0, -1)})
    table.to_csv(tmp_path / "table.csv", index=False)
    assert pandas.read_csv(address("table.csv")).equals(table)
    pytest.importorskip("pyarrow")
    table.to_parquet(tmp_path / "table.parquet")
    assert pandas.read_parquet(address("table.parquet")).equals(table)


@pytest.mark.parametrize("ending", ["gz", "bz2", "xz"])
def test_pandas_sees_the_compression_of_an_address_that_ends_with_the_target(tmp_path, ending):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"a": range(LENGTH)})
    path = tmp_path / f"table.csv.{ending}"
    table.to_csv(path, index=False)
    before = forerun.default_engine().ledger()["reads"]
    assert pandas.read_csv(f"forerun://{path}::file://").equals(table)
    named = {"gz": "gzip"}.get(ending, ending)
    assert pandas.read_csv(f"forerun::file://{path}", compression=named).equals(table)
    assert forerun.default_engine().ledger()["reads"] > before


def test_pyarrow_reads_columns_of_a_parquet_file(address, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": range(LENGTH), "b": range(LENGTH, 0, -1)})
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=LENGTH // 10)
    with fsspec.open(address("table.parquet")) as file:
        assert parquet.read_table(file, columns=["b"])["b"].equals(table["b"])


@pytest.fixture
def tables(tmp_path):
    """A folder of three Parquet files."""
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    for number in range(3):
        table = pyarrow.table({"a": range(LENGTH), "b": [number] * LENGTH})
        parquet.write_table(table, tmp_path / f"part{number}.parquet", row_group_size=LENGTH // 10)
    return tmp_path


@pytest.fixture
def fs():
    """The file system that stands in the one line that changes."""
    return fsspec.filesystem("forerun", target_protocol="file", engine=forerun.Engine())


def test_pyarrow_reads_a_dataset_of_a_folder_and_of_files(fs, tables):
    dataset = pytest.importorskip("pyarrow.dataset")
    read = dataset.dataset(str(tables), filesystem=fs).to_table(columns=["b"])
    assert sorted(set(read["b"].to_pylist())) == [0, 1, 2]
    some = dataset.dataset([str(tables / "part1.parquet")], filesystem=fs)
    assert some.to_table(filter=dataset.field("a") >= LENGTH - 5)["a"].to_pylist() == list(range(LENGTH - 5, LENGTH))
    assert some.count_rows() == LENGTH
    assert fs.engine.ledger()["reads"] > 0


def test_duckdb_reads_patterns_and_files_by_address(fs, tables):
    duckdb = pytest.importorskip("duckdb")
    connection = duckdb.connect()
    connection.register_filesystem(fs)
    total = 3 * LENGTH * (LENGTH - 1) // 2
    query = "select count(*), sum(a), max(b) from '{}'"
    for _ in range(5):
        assert connection.sql(query.format(f"forerun://{tables}/*.parquet")).fetchall() == [(3 * LENGTH, total, 2)]
    assert connection.sql(query.format(f"forerun://{tables}/part0.parquet")).fetchall() == [(LENGTH, total // 3, 0)]
    (tables / "lines.csv").write_text("a,b\n1,2\n3,4\n")
    assert connection.sql(f"select sum(b) from read_csv('forerun://{tables}/lines.csv')").fetchall() == [(6,)]
    assert fs.engine.ledger()["reads"] > 0


def test_polars_reads_files_and_scans_datasets(fs, tables):
    polars = pytest.importorskip("polars")
    dataset = pytest.importorskip("pyarrow.dataset")
    with fs.open(f"{tables}/part1.parquet") as file:
        assert polars.read_parquet(file, columns=["b"]).shape == (LENGTH, 1)
    scan = polars.scan_pyarrow_dataset(dataset.dataset(str(tables), filesystem=fs))
    assert scan.select(polars.col("b").sum()).collect().item() == 3 * LENGTH
    assert fs.engine.ledger()["reads"] > 0


def test_pandas_hands_options_to_the_target_by_its_name(tables):
    pandas = pytest.importorskip("pandas")
    path = f"forerun::file://{tables}/part2.parquet"
    read = pandas.read_parquet(path, columns=["b"], storage_options={"file": {"auto_mkdir": False}})
    assert read.shape == (LENGTH, 1)
    with pytest.raises(ValueError, match="auto_mkdir"):
        pandas.read_parquet(path, storage_options={"auto_mkdir": False})


def test_dask_reads_tables_and_lines(tables):
    dask = pytest.importorskip("dask.dataframe")
    assert len(dask.read_parquet(f"forerun::file://{tables}/part*.parquet")) == 3 * LENGTH
    (tables / "lines.csv").write_text("a\n" + "1\n" * LENGTH)
    assert dask.read_csv(f"forerun::file://{tables}/lines.csv", blocksize=50_000)["a"].sum().compute() == LENGTH


def test_zarr_reads_chunks(address, tmp_path):
    zarr = pytest.importorskip("zarr")
    numpy = pytest.importorskip("numpy")
    values = numpy.arange(LENGTH).reshape(100, -1)
    array = zarr.create_array(str(tmp_path / "array.zarr"), shape=values.shape, dtype=values.dtype, chunks=(10, 100))
    array[:] = values
    read = zarr.open_array(address("array.zarr"), mode="r")
    assert (read[:] == values).all()
    assert (read[5:7, 150:250] == values[5:7, 150:250]).all()


def test_xarray_reads_a_zarr_store(address, tmp_path):
    xarray = pytest.importorskip("xarray")
    numpy = pytest.importorskip("numpy")
    pytest.importorskip("zarr")
    data = xarray.Dataset({"t": (("x", "y"), numpy.arange(LENGTH).reshape(100, -1))})
    data.to_zarr(tmp_path / "data.zarr", consolidated=False)
    with xarray.open_zarr(address("data.zarr"), consolidated=False) as read:
        assert read.load().equals(data)


@pytest.fixture
def datasets(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    datasets = pytest.importorskip("datasets")
    # Offline it copies no file of another file system.
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(datasets.config, "HF_UPDATE_DOWNLOAD_COUNTS", False)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "hub")
    monkeypatch.setattr(datasets.config, "DOWNLOADED_DATASETS_PATH", tmp_path / "hub" / "downloads")
    datasets.disable_progress_bars()
    return datasets


def test_datasets_streams_a_parquet_file_of_another_file_system(datasets):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    with fsspec.open("memory://folder/table.parquet", "wb") as file:
        parquet.write_table(pyarrow.table({"a": range(1_000)}), file)
    for files, options in (
        ("forerun://folder/table.parquet", {"target_protocol": "memory"}),
        # Hops are written from the inside to the outside, as `zip://*.csv::s3://..`.
        ("forerun://folder/*.parquet::memory://", None),
    ):
        before = forerun.default_engine().ledger()["reads"]
        read = datasets.load_dataset(
            "parquet", data_files={"train": files}, split="train", streaming=True, storage_options=options
        )
        assert [row["a"] for row in read] == list(range(1_000))
        assert forerun.default_engine().ledger()["reads"] > before


def test_datasets_of_numbered_rows_are_made_of_copies_of_the_files(datasets, tables):
    files = f"forerun://{tables}/part*.parquet::file://"
    read = datasets.load_dataset("parquet", data_files={"train": files}, split="train", columns=["b"])
    assert len(read) == 3 * LENGTH and read[LENGTH]["b"] == 1
    assert sum(read["b"][:]) == 3 * LENGTH


class Content:
    """Rows of addresses with the bytes that lie there."""

    def __init__(self, engine):
        self.engine = engine

    def __call__(self, rows):
        samples = []
        for path in rows["path"]:
            with forerun.open(path, engine=self.engine) as file:
                samples.append(file.read())
        return {"sample": samples}


def test_samples_of_a_dataset_with_addresses_are_announced(datasets, tmp_path, content):
    pytest.importorskip("torch", reason="torch is not installed; `make torch` fetches it")
    import forerun.torch

    paths = []
    for number in range(50):
        paths.append(str(tmp_path / f"{number}.bin"))
        (tmp_path / f"{number}.bin").write_bytes(content[number * 5000 :][:5000])
    engine = forerun.Engine(memory=16 << 20)

    dataset = datasets.Dataset.from_dict({"path": paths}).with_transform(Content(engine))
    loader = forerun.torch.data_loader(
        dataset, lambda index: (paths[index], 0, None), batch_size=8, seed=3, engine=engine
    )
    got = [sample for batch in loader for sample in batch["sample"]]
    assert got == [content[index * 5000 :][:5000] for index in loader.sampler.plan.order(0)]
    assert loader.dataset.announcer().unexpected == 0
    assert engine.ledger()["hints_read"] > 0
