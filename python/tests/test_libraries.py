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


def test_pyarrow_reads_columns_of_a_parquet_file(address, tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    table = pyarrow.table({"a": range(LENGTH), "b": range(LENGTH, 0, -1)})
    parquet.write_table(table, tmp_path / "table.parquet", row_group_size=LENGTH // 10)
    with fsspec.open(address("table.parquet")) as file:
        assert parquet.read_table(file, columns=["b"])["b"].equals(table["b"])


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


def test_datasets_streams_a_parquet_file_of_another_file_system(monkeypatch, tmp_path):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hub"))
    pyarrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    datasets = pytest.importorskip("datasets")
    with fsspec.open("memory://folder/table.parquet", "wb") as file:
        parquet.write_table(pyarrow.table({"a": range(1_000)}), file)
    before = forerun.default_engine().ledger()["reads"]
    read = datasets.load_dataset(
        "parquet",
        data_files={"train": "forerun://folder/table.parquet"},
        split="train",
        streaming=True,
        storage_options={"target_protocol": "memory"},
    )
    assert [row["a"] for row in read] == list(range(1_000))
    assert forerun.default_engine().ledger()["reads"] > before
