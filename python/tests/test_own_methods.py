"""Reclaim methods written in Python, beside the command line's own: in counts, simulations and options of both."""

import functools
import gc
import random
import time
import typing
from collections import OrderedDict

import pytest

import forerun
from forerun import _forerun, _simulate


class LRU:
    """The block used longest ago."""

    def __init__(self, capacity):
        self.capacity = capacity
        self.blocks = OrderedDict()
        self.most = 0

    def inserted(self, block):
        self.blocks[block] = None
        self.most = max(self.most, len(self.blocks))

    def hit(self, block):
        self.blocks.move_to_end(block)

    def evict(self):
        return self.blocks.popitem(last=False)[0]

    def removed(self, block):
        del self.blocks[block]


def numbers(tmp_path, seed, count=20_000, blocks=2000):
    """Block numbers with a skew, and loops in between."""
    chance = random.Random(seed)
    trace = tmp_path / f"numbers{seed}"
    loop = list(range(blocks, blocks + 300))
    lines = []
    while len(lines) < count:
        lines += [int(blocks * chance.random() ** 3) for _ in range(500)]
        lines += loop[: chance.randrange(300)]
    trace.write_text("\n".join(map(str, lines[:count])) + "\n")
    return trace


@pytest.mark.parametrize("seed", range(5))
def test_a_policy_of_ones_own_counts_as_the_listed_one(tmp_path, seed):
    trace = numbers(tmp_path, seed)
    rows = forerun.count(trace=trace, policy=["lru", LRU, "opt"], cache=["1%", "10%", 700, 1])
    own = [row for row in rows if row["policy"] == "LRU"]
    listed = [row for row in rows if row["policy"] == "lru"]
    assert len(own) == len(listed) == 4
    for one, other in zip(own, listed):
        assert {**one, "policy": ""} == {**other, "policy": ""}


def test_an_object_of_a_run_lives_as_long_as_that(tmp_path):
    class Alive(LRU):
        now = most = 0

        def __init__(self, capacity):
            super().__init__(capacity)
            Alive.now += 1
            Alive.most = max(Alive.most, Alive.now)

        def __del__(self):
            Alive.now -= 1

    trace = numbers(tmp_path, 1, count=2000)
    gc.disable()
    try:
        rows = forerun.count(trace=trace, policy=[Alive], cache=list(range(1, 21)))
    finally:
        gc.enable()
    assert len(rows) == 20
    # That of a run is let go of as the next one begins.
    assert Alive.most <= 2


def test_policies_of_one_name_are_refused_by_it(tmp_path):
    trace = numbers(tmp_path, 1, count=2000)

    class Lru(LRU):
        pass

    other, Lru.__name__ = type("LRU", (LRU,), {}), "lru"
    for policies in ([LRU, other], [functools.partial(LRU), functools.partial(other)], [Lru, "fifo,lru"]):
        with pytest.raises(ValueError, match="has the name '(LRU|partial|lru)' as well"):
            forerun.count(trace=trace, policy=policies, cache=20)
    assert len(forerun.count(trace=trace, policy=(one for one in (LRU, LRU, "lru")), cache=20)) == 3


@pytest.mark.parametrize("seed", range(3))
def test_a_policy_of_ones_own_counts_samples_and_sizes(tmp_path, seed):
    chance = random.Random(seed)
    trace = tmp_path / "sized.csv"
    sizes = [chance.randrange(100, 5000) for _ in range(500)]
    lines = [int(500 * chance.random() ** 2) for _ in range(8000)]
    trace.write_text("".join(f"{at},{block},{sizes[block]}\n" for at, block in enumerate(lines)))
    call = {"trace": trace, "trace_format": "csv", "columns": "time-col=1,obj-id-col=2,obj-size-col=3"}
    for options in ({"sizes": True, "cache": "100KiB"}, {"sample": "50%", "cache": "20%"}):
        own, listed = forerun.count(**call, **options, policy=[LRU, "lru"])
        assert {**own, "policy": ""} == {**listed, "policy": ""}


@pytest.mark.parametrize("seed", range(5))
def test_a_reclaim_method_of_ones_own_hits_in_the_engine_as_lru_counts(tmp_path, seed):
    trace = numbers(tmp_path, seed)
    made = []

    def method(capacity):
        made.append(LRU(capacity))
        return made[-1]

    call = {"trace": trace, "block_bytes": 4096, "preset": "none", "cache_blocks": 400}
    row = forerun.simulate(**call, reclaim=method)[0]
    assert made[-1].capacity >= made[-1].most > 100
    counted = forerun.count(trace=trace, policy="lru", cache=made[-1].most, block_bytes=4096)[0]
    assert (row["misses"], row["reads"]) == (counted["misses"], counted["references"])
    # Another order of blocks has other misses, so that the equality says something.
    assert row["misses"] != forerun.simulate(**call, reclaim="exclusive")[0]["misses"]


def test_a_method_of_ones_own_is_fast_enough_to_be_used(tmp_path):
    trace = numbers(tmp_path, 1, count=300_000, blocks=50_000)
    begin = time.process_time()
    forerun.count(trace=trace, policy=LRU, cache="10%")
    took = time.process_time() - begin
    assert 300_000 / took > 300_000, f"{300_000 / took} references a second of processor time"


class Wrong(LRU):
    answer = 10**9

    def evict(self):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "error", "message"),
    [
        (10**9, ValueError, "Wrong.evict() returned 1000000000, which is not resident"),
        (-1, ValueError, "Wrong.evict() returned -1, which is not resident"),
        (None, TypeError, "Wrong.evict() must return a block, not None"),
    ],
)
@pytest.mark.parametrize("where", ["count", "simulate"])
def test_a_block_that_is_not_resident_is_refused_by_name(tmp_path, monkeypatch, answer, error, message, where):
    trace = numbers(tmp_path, 2, count=5000)
    monkeypatch.setattr(Wrong, "answer", answer)
    with pytest.raises(error) as raised:
        run(where, trace, Wrong)
    assert str(raised.value) == message


def run(where, trace, method):
    if where == "count":
        return forerun.count(trace=trace, policy=method, cache=100)
    return forerun.simulate(
        trace=trace, preset="none", reclaim=method, cache_blocks=400, block_bytes=4096
    )


@pytest.mark.parametrize("name", ["__init__", "inserted", "hit", "evict"])
@pytest.mark.parametrize("where", ["count", "simulate"])
def test_an_exception_of_a_method_is_the_callers(tmp_path, name, where):
    trace = numbers(tmp_path, 3, count=5000)
    raised = KeyError("mine")

    def fail(*_):
        raise raised

    failing = type("Failing", (LRU,), {name: fail})
    with pytest.raises(KeyError) as caught:
        run(where, trace, failing)
    assert caught.value is raised
    # And nothing is left of it.
    assert run(where, trace, LRU)


def test_a_class_without_the_methods_is_refused(tmp_path):
    trace = numbers(tmp_path, 4, count=5000)
    with pytest.raises(AttributeError, match="evict"):
        forerun.count(trace=trace, policy=type("Half", (), {"__init__": lambda *_: None, "inserted": 1, "hit": 1}))


def test_a_reclaim_method_needs_a_preset_of_the_engine(tmp_path):
    with pytest.raises(ValueError, match="--reclaim: no preset named is one of the engine's"):
        forerun.simulate(trace=numbers(tmp_path, 4, count=5000), preset="demand-lru", reclaim=LRU)


def test_a_part_of_a_trace_is_named_as_on_the_command_line(tmp_path):
    log = tmp_path / "log.spc"
    log.write_text("".join(f"0,{8 * at},4096,r,{at}.0\n" for at in range(10)))
    rows = forerun.count(trace=log, trace_format="spc", policy="lru", cache=4, from_="6s", until="9s")
    assert [row["references"] for row in rows] == [3]


@pytest.mark.parametrize(
    ("of", "typed", "call"),
    [
        ("simulate", _simulate.Options, forerun.simulate),
        ("count", _simulate.CountOptions, forerun.count),
    ],
)
def test_options_are_the_command_lines_by_name_and_default(of, typed, call):
    table = _forerun.options(of)
    assert set(typing.get_type_hints(typed)) == {name for name, *_ in table}
    for name, default, takes_value, line in table:
        shown = name if default is None else f"{name}={default}"
        assert f"    {shown}: {line}\n" in call.__doc__, name
        if not takes_value:
            assert default is None, name


def test_defaults_given_change_nothing(tmp_path):
    trace = numbers(tmp_path, 5, count=3000)
    for of, call in (("simulate", forerun.simulate), ("count", forerun.count)):
        given = {name: default for name, default, *_ in _forerun.options(of) if default and name != "trace"}
        assert len(given) > 3
        assert call(trace=trace, **given) == call(trace=trace) == call(trace=trace, writes=False)
