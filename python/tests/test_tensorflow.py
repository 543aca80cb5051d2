"""`tf.data` over a generator of announced samples; the generator itself runs without TensorFlow in test_documents.py."""

import os

import pytest

import forerun
import forerun.torch

tensorflow = pytest.importorskip("tensorflow", reason="tensorflow is not installed; `make torch` fetches it")

SAMPLES = 150


@pytest.mark.parametrize("batch", [1, 7, 64])
@pytest.mark.parametrize("parallel", [None, 4])
def test_samples_of_a_generator_come_announced_and_in_the_order_of_the_plan(tmp_path, content, batch, parallel):
    for number in range(SAMPLES):
        path = tmp_path / "images" / f"class{number % 3}" / f"{number:03}"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content[number * 100 :][: 5000 + number])
    engine = forerun.Engine(memory=16 << 20)
    data = forerun.torch.Folder(tmp_path / "images", engine=engine)
    plan = forerun.torch.Plan(samples=len(data), seed=7)
    hinted = forerun.torch.HintedDataset(data, plan, engine=engine)

    def samples(epoch):
        hinted.epoch = int(epoch)
        for index in plan.order(hinted.epoch):
            yield hinted[index]

    signature = (tensorflow.TensorSpec((), tensorflow.string), tensorflow.TensorSpec((), tensorflow.int64))
    for epoch in range(3):
        made = tensorflow.data.Dataset.from_generator(samples, args=(epoch,), output_signature=signature)
        made = made.map(lambda content, kind: (tensorflow.strings.length(content), kind), num_parallel_calls=parallel)
        read = [
            pair
            for lengths, kinds in made.batch(batch).prefetch(2)
            for pair in zip(lengths.numpy().tolist(), kinds.numpy().tolist())
        ]
        wanted = [data.samples[index] for index in plan.order(epoch)]
        assert read == [(os.path.getsize(path), kind) for path, kind in wanted]
    assert hinted.announcer().unexpected == 0
    ledger = engine.ledger()
    # One of each later epoch may count as read out of its turn.
    assert ledger["hints_read"] >= 3 * SAMPLES - 3 and ledger["misses"] == 0
