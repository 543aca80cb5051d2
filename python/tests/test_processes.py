"""Fork, spawn, pickle, and the end of the process."""

import multiprocessing
import os
import pickle
import signal
import subprocess
import sys
import textwrap
import threading

import pytest

import forerun
from forerun._forerun import Handle


def in_child(check):
    """Runs a check in a forked child; true if it held there."""
    child = os.fork()
    if child == 0:
        held = False
        try:
            held = bool(check())
        finally:
            os._exit(0 if held else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_forked_child_reads_on_with_an_engine_of_its_own(file, engine, content):
    engine.limit_memory(8 << 20)
    file.seek(5)
    file.pread(1 << 20, 0)

    def check():
        same = file.tell() == 5 and file.read() == content[5:]
        mine = engine.ledger()["reads"] * 4096 < len(content) + (1 << 20)
        return same and mine and engine.memory_limit == 8 << 20

    assert in_child(check)
    assert file.read() == content[5:]


def test_a_fork_amid_reads_of_other_threads_leaves_neither_hanging(path, content):
    engine = forerun.Engine(memory=1 << 20)
    ended = threading.Event()

    def read():
        with forerun.open(path, engine=engine) as own:
            while not ended.is_set():
                own.seek(0)
                own.read()

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    file = forerun.open(path, engine=engine)
    try:
        for _ in range(5):
            assert in_child(lambda: file.pread(len(content), 0) == content)
    finally:
        ended.set()
        for thread in threads:
            thread.join()


def test_a_child_drops_what_it_inherited_without_a_wait(path):
    engine = forerun.Engine(memory=1 << 20, emulate=(10**9, 10**9))
    held = [engine, forerun.open(path, engine=engine)]
    held[0].hint([(held[1], 0, 4096)])

    def drop():
        nonlocal engine
        del engine
        held.clear()
        return True

    assert in_child(drop)


def test_garbage_that_a_fork_hook_collects_in_the_child_is_left_alone(path):
    """`threading` has such a hook; this one is certain to have some."""
    engine = forerun.Engine(memory=1 << 20)
    garbage = [forerun.open(path, engine=engine), engine]
    garbage[0].read(1)
    del engine
    os.register_at_fork(after_in_child=garbage.clear)
    assert in_child(lambda: not garbage)


def test_a_pickled_engine_is_the_same_in_its_process_and_one_in_another(file, engine):
    copies = pickle.loads(pickle.dumps([engine, file, file]))
    assert copies[0] is engine
    assert copies[1].engine is copies[2].engine is engine


def child_of_spawn(pickled, answers):
    one, two = (pickle.loads(text) for text in pickled)
    engine = one.engine
    settings = (engine.memory, engine.memory_limit, engine.preset)
    answers.put((one.tell(), one.read(3), engine is two.engine, settings))


def test_a_spawned_process_has_one_engine_for_all_files_it_unpickles(file, engine, content):
    file.seek(7)
    engine.limit_memory(8 << 20)
    context = multiprocessing.get_context("spawn")
    answers = context.Queue()
    pickled = [pickle.dumps(file), pickle.dumps(file)]
    process = context.Process(target=child_of_spawn, args=(pickled, answers))
    process.start()
    answer = answers.get(timeout=600)
    process.join()
    assert answer == (7, content[7:10], True, (16 << 20, 8 << 20, "forerun"))


def test_a_closed_file_cannot_be_pickled(file):
    file.close()
    with pytest.raises(ValueError, match="closed"):
        pickle.dumps(file)


def test_an_interrupt_ends_a_read_that_waits_for_a_server():
    engine = forerun.Engine(memory=4 << 20)
    asked, answers = threading.Event(), threading.Event()

    def fetch(start, end):
        asked.set()
        answers.wait()
        return b"x" * (end - start)

    handle = Handle.fetched(engine, fetch, "interrupted", "1", 1 << 20)

    def interrupt():
        asked.wait()
        os.kill(os.getpid(), signal.SIGINT)

    # A shell starts background jobs with the signal ignored.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    interrupting = threading.Thread(target=interrupt)
    interrupting.start()
    try:
        with pytest.raises(KeyboardInterrupt):
            handle.pread(4096, 0)
    finally:
        answers.set()
        interrupting.join()
        signal.signal(signal.SIGINT, before)
    assert handle.pread(4096, 0) == b"x" * 4096


FORKING = """
import os, signal, socket, sys, threading, forerun
from forerun._forerun import Handle
class Over(BaseException):
    pass
parent, asked, never = os.getpid(), threading.Event(), threading.Event()
def fetch(start, end):
    if os.getpid() == parent:
        asked.set()
        never.wait()
    return bytes(end - start)
def handler(*_):
    child = os.fork()
    if child:
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        raise Over
    # It would wait for ever.
    signal.alarm(600)
signal.signal(signal.SIGUSR1, handler)
engine = forerun.Engine(memory=4 << 20)
handle = Handle.fetched(engine, fetch, "o", "1", 1 << 20)
server = socket.create_server(("127.0.0.1", 0))
address = f"http://127.0.0.1:{server.getsockname()[1]}/object"
def signals(wait):
    def send():
        _kept = wait()
        os.kill(parent, signal.SIGUSR1)
        never.wait()
    threading.Thread(target=send, daemon=True).start()
def is_amid():
    # A thread of Python gives the interpreter away behind a line's calls, and in them.
    while sys._current_frames()[threading.main_thread().ident].f_lineno != int(sys.argv[1]):
        pass
def another_reads():
    threading.Thread(target=handle.read, args=(4,), daemon=True).start()
    asked.wait()
def refused(call):
    try:
        call()
    except RuntimeError as error:
        assert "forked" in str(error)
        return True
"""

# The signal's time, and the call on a line of its own.
AMID = {
    "a read": ("signals(asked.wait)", "held = handle.pread(4, 0) == bytes(4)"),
    "a turn": ("another_reads(); signals(is_amid)", "held = handle.read(4) == bytes(4)"),
    "an opening": ("signals(server.accept)", "held = refused(lambda: forerun.open(address, engine=engine))"),
    "an announcement": ("signals(server.accept)", "held = refused(lambda: engine.hint([(address, 0, 1)]))"),
}


@pytest.mark.parametrize("amid", AMID)
def test_a_child_that_a_handler_of_a_signal_forks_amid_a_call_goes_on(amid):
    begin = f"{FORKING}try:\n    {AMID[amid][0]}\n    "
    program = f"{begin}{AMID[amid][1]}\nexcept Over:\n    os._exit(0)\nos._exit(0 if held else 1)\n"
    command = [sys.executable, "-c", program, str(begin.count("\n") + 1)]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "0\n", "")


def test_a_child_that_is_forked_while_a_message_waits_for_its_reader_has_messages_too(path):
    program = textwrap.dedent(
        f"""
        import fcntl, os, signal, sys, threading, forerun
        def read():
            with forerun.open({str(path)!r}, engine=forerun.Engine(memory=4 << 20)) as file:
                return file.read(10)
        reads, writes = os.pipe()
        fcntl.fcntl(writes, fcntl.F_SETPIPE_SZ, 4096)
        os.dup2(writes, 2)
        os.set_blocking(2, False)
        try:
            while True:
                os.write(2, b"x")
        except BlockingIOError:
            os.set_blocking(2, True)
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        waiting = 0
        while waiting < 1000:
            with open(f"/proc/self/task/{{thread.native_id}}/stat") as stat:
                waiting = waiting + 1 if stat.read().rsplit(") ", 1)[1].startswith("S") else 0
        child = os.fork()
        if child == 0:
            # It would wait for ever.
            signal.alarm(600)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            os._exit(0 if len(read()) == 10 else 1)
        print(thread.is_alive(), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        os._exit(0)
        """
    )
    command, settings = [sys.executable, "-c", program], {**os.environ, "FORERUN_LOG": "trace"}
    ended = subprocess.run(command, capture_output=True, text=True, timeout=1200, check=False, env=settings)
    assert (ended.returncode, ended.stdout) == (0, "True 0\n")


def test_a_process_ends_with_reads_in_flight(path):
    program = textwrap.dedent(
        f"""
        import threading, forerun
        from forerun._forerun import Handle
        engine = forerun.Engine(memory=4 << 20)
        never = threading.Event()
        def slow(start, end):
            never.wait(0.2)
            return bytes(end - start)
        handle = Handle.fetched(engine, slow, "slow", "1", 1 << 30)
        threading.Thread(target=handle.pread, args=(4096, 0), daemon=True).start()
        file = forerun.open({str(path)!r}, engine=engine)
        engine.hint([(handle, 1 << 20, 4 << 20), (file, 0, 1 << 20)])
        file.read(1)
        """
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=600, check=False
    )
    assert (ended.returncode, ended.stderr) == (0, "")
