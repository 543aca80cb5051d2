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
