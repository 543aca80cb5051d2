"""Files of a file system whose server is silent: an interrupt ends the calls of the main thread."""

import ctypes
import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import pytest
import silent
from silent import CONTENT

import forerun

WAIT = 600
MNT_DETACH = 2


class Served:
    """The file, and the server of it."""

    def __init__(self, path, process):
        self.path, self.process = path, process

    def says(self):
        return os.read(self.process.stdout.fileno(), 1)

    def tell(self, command):
        os.write(self.process.stdin.fileno(), command)


@pytest.fixture
def served(tmp_path):
    folder = tmp_path / "served"
    folder.mkdir()
    system = ctypes.CDLL(None, use_errno=True)
    try:
        channel = os.open("/dev/fuse", os.O_RDWR)
    except OSError as error:
        pytest.skip(f"no FUSE here: {error}")
    try:
        options = f"fd={channel},rootmode=40000,user_id=0,group_id=0".encode()
        if system.mount(b"forerun-test", bytes(folder), b"fuse", 0, options):
            pytest.skip(f"no mount here: {os.strerror(ctypes.get_errno())}")
        command = [sys.executable, silent.__file__, str(channel)]
        pipe = subprocess.PIPE
        process = subprocess.Popen(command, stdin=pipe, stdout=pipe, bufsize=0, pass_fds=[channel])
    finally:
        os.close(channel)
    with process:
        yield Served(folder / "file", process)
        # With it go the requests that wait for it.
        process.kill()
    system.umount2(bytes(folder), MNT_DETACH)


PLACES = itertools.count()
CALLS = {
    "pread": lambda file: file.pread(4096, 0),
    "pread of other bytes": lambda file: file.pread(4096, next(PLACES) * 4096 % len(CONTENT)),
    "pread past the end": lambda file: file.pread(4096, len(CONTENT)),
    "readline": lambda file: (file.seek(0), file.readline()),
    "size": lambda file: file.size,
    "seek": lambda file: file.seek(0, os.SEEK_END),
}


@pytest.mark.parametrize("call", CALLS)
def test_an_interrupt_ends_calls_for_a_file_of_a_silent_server(served, call):
    ended = threading.Event()
    said = []

    def interrupts():
        said.append(served.says())
        os.kill(os.getpid(), signal.SIGINT)
        said.append(ended.wait(WAIT / 10))
        served.tell(b"a")

    with forerun.open(served.path, engine=forerun.Engine(memory=4 << 20), buffering=0) as file:
        assert file.pread(4096, 0) == CONTENT[:4096]
        served.tell(b"s")
        assert served.says() == b"k"
        # A shell starts background jobs with the signal ignored.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        interrupting = threading.Thread(target=interrupts, daemon=True)
        interrupting.start()
        until = time.monotonic() + WAIT
        try:
            with pytest.raises(KeyboardInterrupt):
                # A file is looked at now and then.
                while time.monotonic() < until:
                    CALLS[call](file)
        finally:
            ended.set()
            interrupting.join(WAIT)
            signal.signal(signal.SIGINT, before)
        assert said == [b"?", True] and served.says() == b"k"
        assert file.pread(4096, 4096) == CONTENT[4096:8192]
        assert file.size == len(CONTENT)


BEGIN = """
import os, resource, signal, sys, threading
import forerun
file = forerun.open(sys.argv[1], engine=forerun.Engine(memory=4 << 20), buffering=0)
"""

FORKS = """
class Over(Exception):
    pass
def handler(*_):
    child = os.fork()
    if child:
        print("forked", flush=True)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
        raise Over
    # It would wait for ever.
    signal.alarm(600)
signal.signal(signal.SIGUSR1, handler)
print("open", flush=True)
input()
try:
    size = file.size
except Over:
    os._exit(0)
os._exit(0 if size == int(sys.argv[2]) else 1)
"""


def test_a_child_that_a_handler_of_a_signal_forks_amid_a_look_looks_again(served):
    pipe = subprocess.PIPE
    command = [sys.executable, "-c", BEGIN + FORKS, served.path, str(len(CONTENT))]
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as program:
        assert program.stdout.readline() == "open\n"
        served.tell(b"s")
        assert served.says() == b"k"
        program.stdin.write("\n")
        program.stdin.flush()
        assert served.says() == b"?"
        program.send_signal(signal.SIGUSR1)
        assert program.stdout.readline() == "forked\n"
        served.tell(b"a")
        assert program.stdout.readline() == "0\n"
        assert program.wait(WAIT) == 0


THREADLESS = """
pages = int(open("/proc/self/statm").read().split()[0])
most = pages * resource.getpagesize() + (1 << 20)
resource.setrlimit(resource.RLIMIT_AS, (most, most))
try:
    threading.Thread(target=print).start()
    print("a thread")
except RuntimeError:
    print(file.size)
"""


def test_a_file_is_looked_at_where_no_thread_can_be_started(served):
    command = [sys.executable, "-c", BEGIN + THREADLESS, served.path]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"{len(CONTENT)}\n", "")
