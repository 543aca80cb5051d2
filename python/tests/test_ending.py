"""The end of a process, interrupts, and interpreters that are refused."""

import errno
import signal
import socket
import subprocess
import sys
import textwrap
import threading
import time

import pytest

import forerun
from forerun._forerun import Handle

WAIT = 600

FETCHED = """
import os, sys, threading, time, forerun
from forerun._forerun import Handle
engine = forerun.Engine(memory=4 << 20)
asked = threading.Event()
never = threading.Event()
def fetch(start, end):
    asked.set()
    FUNCTION
    return bytes(end - start)
handle = Handle.fetched(engine, fetch, "o", "1", 1 << 30)
"""

# How a function spends its time when the interpreter ends.
FUNCTIONS = {
    "hangs": "never.wait()",
    "sleeps and wakes": "[time.sleep(0.001) for _ in range(1_000_000)]",
    "computes": "sum(i for i in range(10**12))",
    "is about to raise": "time.sleep(0.05); raise OSError(5, 'no')",
    "is quick": "pass",
}

WAYS = {
    "a daemon reads": """
def read():
    while True:
        handle.pread(100_000, int(time.time() * 1e6) % (1 << 29))
threading.Thread(target=read, daemon=True).start()
asked.wait()
""",
    "fetched ahead": """
engine.hint([(handle, 0, 1 << 20)])
asked.wait()
""",
    "dropped": """
engine.hint([(handle, 0, 1 << 20)])
asked.wait()
del handle, engine
""",
    "an exception": """
engine.hint([(handle, 0, 1 << 20)])
asked.wait()
sys.excepthook = lambda *_: None
raise ValueError
""",
    "a forked child": """
engine.hint([(handle, 0, 1 << 20)])
asked.wait()
if os.fork() == 0:
    asked.clear()
    engine.hint([(handle, 0, 1 << 20)])
    asked.wait()
else:
    assert os.waitstatus_to_exitcode(os.wait()[1]) == 0
""",
}


def run(program, *arguments):
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("way", WAYS)
def test_a_process_ends_while_functions_fetch(way, function):
    program = FETCHED.replace("FUNCTION", FUNCTIONS[function])
    program += WAYS[way]
    ended = run(program)
    assert (ended.returncode, ended.stderr) == (1 if way == "an exception" else 0, "")


def test_the_end_does_not_wait_for_a_fetch_that_hangs():
    program = FETCHED.replace("FUNCTION", "never.wait()") + WAYS["fetched ahead"]

    def waited():
        ended = run(program + "print(time.time(), flush=True)\n")
        return time.time() - float(ended.stdout)

    # Ten seconds, if it did. A machine that stands still for as long does not do so three times.
    assert any(waited() < 8 for _ in range(3))


def test_no_thread_stays_in_a_call_of_ours_once_the_engines_have_ended():
    """A pool of a C++ library would be waited for by the process's last steps, for ever."""
    program = FETCHED.replace("FUNCTION", "never.wait()") + textwrap.dedent(
        """
        from forerun._forerun import finish_engines
        ended = []
        def read():
            try:
                handle.pread(1, 0)
            except BaseException as error:
                ended.append(type(error))
            for call in (handle.size, handle.tell, lambda: handle.pread(1, 5), engine.ledger):
                try:
                    call()
                except BaseException as error:
                    ended.append(type(error))
            handle.close()
        thread = threading.Thread(target=read, daemon=True)
        thread.start()
        asked.wait()
        finish_engines()
        thread.join(60)
        print(thread.is_alive(), {kind.__name__ for kind in ended})
        """
    )
    ended = run(program)
    assert (ended.stdout, ended.stderr) == ("False {'SystemExit'}\n", "")


def test_a_first_fetch_once_the_engines_have_ended_is_an_error_and_the_process_ends():
    program = """
import atexit
def late():
    try:
        with fsspec.open("forerun::memory://a") as file:
            file.read(3)
    except OSError as error:
        print(error.errno)
# It is called after those of modules that are imported later.
atexit.register(late)
import fsspec, forerun.fsspec
fsspec.filesystem("memory").pipe("/a", b"abcdef")
"""
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{errno.ESHUTDOWN}\n", "")


SILENT = """
import asyncio, os, signal, threading, fsspec, forerun.fsspec
from fsspec.spec import AbstractFileSystem
# A shell starts background jobs with the signal ignored.
signal.signal(signal.SIGINT, signal.default_int_handler)
asked, never = threading.Event(), threading.Event()
class Silent(AbstractFileSystem):
    "Takes calls side by side, and never answers."
    async_impl, mirror_sync_methods, cachable = True, False, False
    def _open(self, path, mode="rb", **kwargs):
        asked.set()
        never.wait()
fs = fsspec.filesystem("forerun", fs=Silent())
def interrupt():
    asked.wait()
    os.kill(os.getpid(), signal.SIGINT)
"""

SILENT_CALLS = {
    "files of one range each": "fs._read([(name, 0, 5) for name in 'abc'])",
    "files of several ranges": "fs._read([(name, 0, 5) for name in 'abcabc'])",
}


@pytest.mark.parametrize("calls", SILENT_CALLS)
def test_one_interrupt_ends_calls_side_by_side_and_the_process_with_a_silent_server(calls):
    program = SILENT + textwrap.dedent(
        f"""
        threading.Thread(target=interrupt, daemon=True).start()
        try:
            list({SILENT_CALLS[calls]})
        except KeyboardInterrupt:
            print("interrupted")
        """
    )
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "interrupted\n", "")


def test_a_coroutine_that_is_given_up_lets_the_process_end_with_a_silent_server():
    program = SILENT + textwrap.dedent(
        """
        fs = fsspec.filesystem("forerun", fs=Silent(), asynchronous=True)
        async def give_up():
            reading = asyncio.ensure_future(fs._cat_file("a"))
            await asyncio.to_thread(asked.wait)
            reading.cancel()
            try:
                await reading
            except asyncio.CancelledError:
                print("given up")
        asyncio.run(give_up())
        """
    )
    ended = run(program)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "given up\n", "")


def test_the_end_of_a_process_waits_for_a_coroutine_that_writes(tmp_path):
    program = textwrap.dedent(
        f"""
        import asyncio, threading, fsspec, forerun.fsspec
        from fsspec.spec import AbstractFileSystem
        begun, ends = threading.Event(), threading.Event()
        class Slow(AbstractFileSystem):
            cachable = False
            def pipe_file(self, path, value, **kwargs):
                begun.set()
                ends.wait()
                open({str(tmp_path / "written")!r}, "wb").write(value)
        fs = fsspec.filesystem("forerun", fs=Slow(), asynchronous=True)
        async def write():
            writing = asyncio.ensure_future(fs._pipe_file("a", b"whole"))
            await asyncio.to_thread(begun.wait)
            writing.cancel()
        asyncio.run(write())
        # After the program's last line.
        threading._register_atexit(ends.set)
        """
    )
    ended = run(program)
    assert (ended.returncode, ended.stderr) == (0, "")
    assert (tmp_path / "written").read_bytes() == b"whole"


SUBINTERPRETER = """
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
FIRST
made = interpreters.create()
program = '''
try:
    import forerun
except ImportError as error:
    print("refused:", error, flush=True)
'''
interpreters.run_string(made, program)
import forerun
print(forerun.simulate(workload="sequential(file_bytes=65536)")[0]["reads"], flush=True)
"""


@pytest.mark.parametrize("first", ["", "import forerun"])
def test_a_subinterpreter_is_refused_by_name_and_the_process_ends(first):
    ended = run(SUBINTERPRETER.replace("FIRST", first))
    assert ended.returncode == 0, ended.stderr
    assert "refused: forerun: subinterpreters are not supported" in ended.stdout
    assert ended.stdout.endswith("8\n")


def test_a_free_threaded_interpreter_is_refused_by_name():
    program = """
import sysconfig
sysconfig.get_config_var = lambda name: 1
import forerun
"""
    assert "ImportError: forerun: the free-threaded build" in run(program).stderr


class Interrupted(BaseException):
    pass


@pytest.fixture
def interrupts():
    """A signal each tenth of a second, whose handler raises until it has done so."""

    def handler(*_):
        signal.setitimer(signal.ITIMER_REAL, 0)
        raise Interrupted

    before = signal.signal(signal.SIGALRM, handler)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.3, 0.1)
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def silent():
    """A server that takes connections and never answers."""
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    server.listen()
    return server


def a_slow_device(path, _server):
    slow = forerun.Engine(memory=4 << 20, emulate=(60_000_000_000, 1_000_000_000))
    return forerun.open(path, engine=slow).read


def a_large_read(path, _server):
    never = threading.Event()
    engine = forerun.Engine(memory=1 << 20)
    fetch = lambda start, end: never.wait() or b""  # noqa: E731
    handle = Handle.fetched(engine, fetch, "large", "1", 1 << 26)
    return lambda: handle.pread(1 << 26, 0)


def a_read_whose_front_comes(path, _server):
    never = threading.Event()
    engine = forerun.Engine(memory=64 << 20)
    fetch = lambda start, end: bytes(end - start) if end <= 24 << 20 else never.wait() or b""  # noqa: E731
    handle = Handle.fetched(engine, fetch, "front", "1", 1 << 26)
    return lambda: handle.pread(1 << 26, 0)


def a_line(path, _server):
    never = threading.Event()
    engine = forerun.Engine(memory=1 << 20)
    fetch = lambda start, end: never.wait() or b""  # noqa: E731
    return forerun.File(Handle.fetched(engine, fetch, "line", "1", 1 << 26), "line").readline


def an_open(_path, server):
    return lambda: forerun.open(f"http://127.0.0.1:{server.getsockname()[1]}/object")


def an_open_of_a_store(_path, server):
    return lambda: forerun.open(f"HTTPS://127.0.0.1:{server.getsockname()[1]}/object")


def a_turn(path, _server):
    """Another thread has the position, and waits for ever."""
    never, asked = threading.Event(), threading.Event()
    engine = forerun.Engine(memory=1 << 20)
    fetch = lambda start, end: asked.set() or never.wait() or b""  # noqa: E731
    handle = Handle.fetched(engine, fetch, "turn", "1", 1 << 26)
    threading.Thread(target=handle.read, args=(10,), daemon=True).start()
    assert asked.wait(WAIT)
    return lambda: handle.read(10)


def a_paper(_path, _server):
    return lambda: forerun.reproduce("kimbrel96")


@pytest.mark.parametrize(
    "waiting",
    [
        a_slow_device,
        a_large_read,
        a_read_whose_front_comes,
        a_line,
        an_open,
        an_open_of_a_store,
        a_turn,
        a_paper,
    ],
)
def test_an_interrupt_ends_it_within_seconds(waiting, path, interrupts):
    with silent() as server:
        call = waiting(path, server)
        interrupts()
        begin = time.monotonic()
        with pytest.raises(Interrupted):
            call()
        del call
        # Minutes without the interrupt.
        assert time.monotonic() - begin < 30
