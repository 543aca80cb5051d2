"""The programs in examples/ run. How much sooner they are is no test's business: see docs/ML.md."""

import subprocess
import sys
from pathlib import Path

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
