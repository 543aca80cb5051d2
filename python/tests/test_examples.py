"""The programs in examples/ run. How much sooner they are is no test's business: see docs/ML.md."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def test_training_reads_the_same_bytes_on_every_side():
    given = ["--samples", "64", "--epochs", "2", "--delay-ms", "1"]
    ended = subprocess.run(
        [sys.executable, EXAMPLES / "train.py", *given], capture_output=True, text=True, check=False
    )
    # It compares the weights of its models, which any other byte would change.
    assert ended.returncode == 0, ended.stderr
    for side in ("a request a sample", "LRU and readahead", "order announced"):
        assert side in ended.stdout, ended.stdout


def test_the_notebook_reads_the_same_bytes_before_and_after(tmp_path):
    nbformat = pytest.importorskip("nbformat", reason="nbclient is not installed; `make libraries` fetches it")
    nbclient = pytest.importorskip("nbclient", reason="nbclient is not installed; `make libraries` fetches it")
    pytest.importorskip("ipykernel", reason="ipykernel is not installed; `make libraries` fetches it")
    notebook = nbformat.read(EXAMPLES / "before_and_after.ipynb", as_version=4)
    shown = [cell for cell in notebook.cells if cell.cell_type == "code" and cell.outputs]
    # Sooner, with fewer samples and a shorter wait.
    for cell in notebook.cells:
        cell.source = cell.source.replace("SAMPLES = 256", "SAMPLES = 64").replace("DELAY = 0.01", "DELAY = 0.001")
    # Its cells compare the bytes. It needs no other file of the repository.
    nbclient.NotebookClient(
        notebook, timeout=600, kernel_name="python3", resources={"metadata": {"path": tmp_path}}
    ).execute()
    ways = [
        line[:34].rstrip()
        for cell in notebook.cells
        for output in cell.get("outputs", ())
        for line in output.get("text", "").splitlines()
    ]
    one = "a request a sample"
    assert ways == [one, "forerun.open", one, "engine.hint", f"{one}, three epochs", "forerun.torch, three epochs"]
    # As it is in the repository, with what it prints.
    assert len(shown) == 4
