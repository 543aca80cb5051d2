"""One limit for the engines of several processes."""

import fcntl
import os
import random
import signal
import subprocess
import sys

import pytest

import forerun
from forerun import _shared

LIMIT = 64 << 20


@pytest.fixture
def runtime(tmp_path, monkeypatch):
    folder = tmp_path / "runtime"
    monkeypatch.setenv("FORERUN_RUNTIME_DIR", str(folder))
    return folder


def member(memory=LIMIT, limit=LIMIT):
    """A member, as one of another process is: locks of other descriptors exclude each other."""
    engine = forerun.Engine(memory)
    made = _shared.Member(engine, limit)
    made.kept = engine
    return made


def test_a_limit_is_divided_and_the_part_of_one_that_ends_goes_to_the_others(runtime):
    first = member()
    assert first.held == first.kept.memory_limit == LIMIT
    second = member()
    # Until the first has looked.
    assert second.held == _shared.LEAST
    first.look()
    second.look()
    assert [one.kept.memory_limit for one in (first, second)] == [LIMIT // 2] * 2
    second.leave()
    first.look()
    assert first.kept.memory_limit == LIMIT
    # Its file is removed, and the lock stays.
    assert len(os.listdir(first.folder)) == 2


def test_members_that_come_and_go_never_hold_more_than_the_limit_and_a_mebibyte_each(runtime):
    seed = 31
    print(f"seed {seed}")
    draws = random.Random(seed)
    members = []
    for _ in range(300):
        step = draws.random()
        if (step < 0.3 and len(members) < 9) or not members:
            members.append(member())
        elif step < 0.5:
            members.pop(draws.randrange(len(members))).leave()
        else:
            draws.choice(members).look()
        beyond = _shared.LEAST * len(members)
        assert sum(one.kept.memory_limit for one in members) <= LIMIT + beyond
    for _ in range(2):
        for one in members:
            one.look()
    assert {one.held for one in members} == {LIMIT // len(members)}


def test_a_member_holds_no_more_than_its_engine_has_and_no_less_than_a_mebibyte(runtime):
    assert member(memory=8 << 20).held == 8 << 20
    crowd = [member(limit=3 << 20) for _ in range(5)]
    for one in crowd * 2:
        one.look()
    assert {one.held for one in crowd} == {_shared.LEAST}


def test_other_limits_are_divided_apart(runtime):
    assert [member(limit=limit).held for limit in (LIMIT, LIMIT // 2)] == [LIMIT, LIMIT // 2]


def test_a_process_that_is_stopped_with_the_lock_holds_no_other_up(runtime, monkeypatch):
    monkeypatch.setattr(_shared, "_PATIENCE_SECONDS", 0)
    first = member()
    with open(os.path.join(first.folder, "lock")) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = member()
        assert second.held == _shared.LEAST and first.look() and first.held == LIMIT
    first.look()
    second.look()
    first.look()
    second.look()
    assert [first.held, second.held] == [LIMIT // 2] * 2


def test_a_folder_that_was_tidied_away_is_made_again(runtime):
    first, second = member(), member()
    first.look()
    for name in os.listdir(first.folder):
        os.unlink(os.path.join(first.folder, name))
    for one in (first, second, first, second):
        one.look()
    assert [first.held, second.held] == [LIMIT // 2] * 2


def test_a_runtime_folder_of_others_is_refused(runtime):
    runtime.mkdir(mode=0o755)
    with pytest.raises(PermissionError, match="is not this user's alone"):
        member()


@pytest.mark.parametrize("variable", ["FORERUN_RUNTIME_DIR", "XDG_RUNTIME_DIR"])
def test_a_runtime_folder_that_cannot_be_made_is_named_with_the_variable(monkeypatch, tmp_path, variable):
    monkeypatch.delenv("FORERUN_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 4321)
    missing = tmp_path / "missing" / "runtime"
    monkeypatch.setenv(variable, str(missing))
    named = missing if variable == "FORERUN_RUNTIME_DIR" else missing / "forerun"
    with pytest.raises(FileNotFoundError, match="MEMORY_SHARED needs this folder, or that of FORERUN_RUNTIME_DIR") as raised:
        member()
    assert raised.value.filename == str(named)


# Prints the limit of its engine for each line, after a look; the line "fork" has a child do so from then on.
PROGRAM = """
import os, sys, forerun
from forerun import _shared
engine = forerun.default_engine()
for line in sys.stdin:
    if line == "fork\\n" and (child := os.fork()):
        print(child, flush=True)
        os.waitpid(child, 0)
        break
    _shared._member.look()
    print(engine.memory_limit, flush=True)
"""


class Process:
    """A program with a limit that it shares."""

    def __init__(self):
        environment = {**os.environ, "FORERUN_MEMORY_SHARED": "64MiB"}
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.running = subprocess.Popen([sys.executable, "-c", PROGRAM], env=environment, text=True, **pipes)

    def asked(self, line="look"):
        self.running.stdin.write(f"{line}\n")
        self.running.stdin.flush()
        return int(self.running.stdout.readline())

    def kill(self):
        self.running.kill()
        self.running.wait()


def test_a_killed_process_gives_its_part_back_and_a_forked_one_has_its_own(runtime):
    one, two = Process(), Process()
    try:
        one.asked(), two.asked(), one.asked()
        assert [one.asked(), two.asked()] == [LIMIT // 2] * 2
        one.kill()
        assert two.asked() == LIMIT
        child = two.asked("fork")
        third = member()
        # The program, its child and this one.
        two.asked(), third.look()
        members = [name for name in os.listdir(third.folder) if name != "lock"]
        assert {int(name.split("-")[0]) for name in members} == {two.running.pid, child, os.getpid()}
        two.kill()
        # The child has inherited no lock of it.
        third.look()
        members = [name for name in os.listdir(third.folder) if name != "lock"]
        assert {int(name.split("-")[0]) for name in members} == {child, os.getpid()}
        os.kill(child, signal.SIGKILL)
    finally:
        one.kill()
        two.kill()


def test_nothing_is_shared_unless_it_is_asked_for(runtime):
    code = "import forerun; print(forerun.default_engine().memory_limit)"
    environment = {name: value for name, value in os.environ.items() if not name.startswith("FORERUN_MEM")}
    for variables, printed in (
        ({}, 256 << 20),
        ({"FORERUN_MEMORY_SHARED": ""}, 256 << 20),
        ({"FORERUN_MEMORY_SHARED": "1GiB"}, 1 << 30),
        ({"FORERUN_MEMORY_SHARED": "1GiB", "FORERUN_MEMORY": "100MiB"}, 100 << 20),
    ):
        assert not runtime.exists()
        ended = subprocess.run(
            [sys.executable, "-c", code], env={**environment, **variables}, capture_output=True, text=True, check=False
        )
        assert (ended.stdout.strip(), ended.stderr) == (str(printed), "")
        if any(variables.values()):
            for folder in runtime.iterdir():
                for name in folder.iterdir():
                    name.unlink()
                folder.rmdir()
            runtime.rmdir()


def test_a_limit_that_is_no_size_is_named(runtime, monkeypatch):
    monkeypatch.setenv("FORERUN_MEMORY_SHARED", "much")
    monkeypatch.setattr(forerun._default, "_default", None)
    with pytest.raises(ValueError, match='FORERUN_MEMORY_SHARED: memory of much: "much" is not a size'):
        forerun.default_engine()
