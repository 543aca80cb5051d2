"""One memory limit for the default engines of several processes: `FORERUN_MEMORY_SHARED=4GiB`.

Problem: each process that reads has an engine of its own, and the memory of the machine is one. Mechanism: the processes
of a user that are given the same limit have a folder, `$XDG_RUNTIME_DIR/forerun/memory-4294967296`, with a file for
each. It is locked (`flock`) for as long as the process lives, and has the bytes that the process holds. Once a second,
under the lock of the folder, each process gives back what is above its part and takes what is free up to it:

    part = limit / processes, free = limit - bytes held by the others

    A alone     4 GiB
    B comes     A 4 GiB, B 1 MiB, then A 2 GiB, then B 2 GiB
    A is killed B 2 GiB, then B 4 GiB: the kernel has unlocked the file of A, and the next that looks removes it

Beyond the limit is 1 MiB for each process that has come since the others last looked, or that is there where the limit
is less than 1 MiB for each. A forked child is a process of its own; one that is stopped keeps its part, and if it was
stopped with the lock of the folder, the others keep theirs. Memory that a process does not use is not lent.
"""

import contextlib
import fcntl
import os
import stat
import threading
import time
import weakref
from collections.abc import Iterator

from ._forerun import Engine

VARIABLE = "FORERUN_MEMORY_SHARED"

# Three times what an engine needs to read at all.
LEAST = 1 << 20

# A process that has come has its part after two looks, of the others and of its own. A look is five calls of the system for
# each process.
_LOOK_SECONDS = 1.0

# The lock of the folder is held for as long as memory is given back: a tenth of a second for each GB.
_PATIENCE_SECONDS = 2.0
_AGAIN_SECONDS = 0.02


def _folder(limit: int) -> str:
    """The folder of a limit, in the first runtime folder that can be used: those of the sockets of `forerun mount`."""
    user = os.geteuid()
    named = os.environ.get("FORERUN_RUNTIME_DIR")
    if named:
        folders = [named]
    elif user == 0:
        folders = ["/run/forerun", "/tmp/forerun-0"]
    else:
        session = os.environ.get("XDG_RUNTIME_DIR") or f"/run/user/{user}"
        folders = [os.path.join(session, "forerun"), f"/tmp/forerun-{user}"]
    for runtime in folders:
        try:
            _check(runtime, user)
            folder = os.path.join(runtime, f"memory-{limit}")
            os.makedirs(folder, 0o700, exist_ok=True)
        except OSError as error:
            refused = error
        else:
            return folder
    raise refused


def _check(runtime: str, user: int) -> None:
    """Makes a runtime folder if need be. Another user could rename one that lies in a folder where all may write."""
    try:
        with contextlib.suppress(FileExistsError):
            os.mkdir(runtime, 0o700)
        there, above = os.lstat(runtime), os.stat(os.path.dirname(runtime.rstrip("/")) or os.curdir)
    except OSError as error:
        why = f"{error.strerror}: {VARIABLE} needs this folder, or that of FORERUN_RUNTIME_DIR in its place"
        raise OSError(error.errno, why, runtime) from None
    is_others = not stat.S_ISDIR(there.st_mode) or there.st_uid != user or there.st_mode & 0o077
    if is_others or above.st_mode & 0o022 and not above.st_mode & stat.S_ISVTX:
        raise PermissionError(f"{VARIABLE}: {runtime} is not this user's alone")


class Member:
    """The part that one engine holds."""

    def __init__(self, engine: Engine, limit: int) -> None:
        self.limit, self.folder = limit, _folder(limit)
        self._engine = weakref.ref(engine)
        self._most = min(limit, engine.memory)
        self._descriptor = self._lock = -1
        self._path = ""
        self.held = min(LEAST, self._most)
        engine.limit_memory(self.held)
        self.look()

    def look(self) -> bool:
        """Gives back what is above its part, and takes what is free. Whether there is an engine still."""
        engine = self._engine()
        if engine is None:
            return False
        with self._locked() as is_locked:
            if is_locked:
                others = list(self._others())
                part = self.limit // (len(others) + 1)
                held = max(min(part, self.limit - sum(others), self._most), min(LEAST, self._most))
                if held != self.held:
                    engine.limit_memory(held)
                    self.held = held
                self._tell()
        return True

    @contextlib.contextmanager
    def _locked(self) -> Iterator[bool]:
        self._lock = os.open(os.path.join(self.folder, "lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            until = time.monotonic() + _PATIENCE_SECONDS
            while not (is_locked := _flock(self._lock)) and time.monotonic() < until:
                time.sleep(_AGAIN_SECONDS)
            yield is_locked
        finally:
            # A child that is forked meanwhile has the descriptor, too.
            fcntl.flock(self._lock, fcntl.LOCK_UN)
            os.close(self._lock)
            self._lock = -1

    def _others(self) -> Iterator[int]:
        """The bytes that others hold; files of processes that have ended are removed."""
        for name in os.listdir(self.folder):
            path = os.path.join(self.folder, name)
            if name == "lock" or path == self._path:
                continue
            descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            try:
                if _flock(descriptor):
                    os.unlink(path)
                else:
                    yield int(os.read(descriptor, 32) or 0)
            finally:
                os.close(descriptor)

    def _tell(self) -> None:
        if self._path and not os.path.exists(self._path):
            # Removed by a program that tidies folders of temporary files.
            os.close(self._descriptor)
            self._path = ""
        if not self._path:
            path = os.path.join(self.folder, f"{os.getpid()}-{os.urandom(4).hex()}")
            self._descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
            fcntl.flock(self._descriptor, fcntl.LOCK_EX)
            self._path = path
        os.pwrite(self._descriptor, b"%-31d\n" % self.held, 0)

    def leave(self) -> None:
        """Lets go of the part, without a word to the engine."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor >= 0:
                os.close(descriptor)
        self._descriptor = self._lock = -1
        self._path = ""


def _flock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


_member: Member | None = None


def share(engine: Engine) -> None:
    """Has the default engine hold a part of the limit of the environment, if there is one."""
    global _member
    if not (given := os.environ.get(VARIABLE)):
        return
    if _member is None:
        os.register_at_fork(after_in_child=_in_child)
    _member = Member(engine, size(given))
    threading.Thread(target=_go_on, args=(_member,), name="forerun-shared", daemon=True).start()


def size(given: str) -> int:
    """The bytes of a limit as "4GiB"."""
    try:
        return Engine(given).memory
    except ValueError as error:
        raise ValueError(f"{VARIABLE}: {error}") from None


def holds(engine: Engine) -> bool:
    """Whether the memory of an engine is a part of a shared limit."""
    return _member is not None and _member._engine() is engine


def _go_on(member: Member) -> None:
    while member is _member:
        time.sleep(_LOOK_SECONDS)
        # A folder that cannot be read now may be the next time.
        with contextlib.suppress(OSError, ValueError):
            if member is not _member or not member.look():
                break
    member.leave()


def _in_child() -> None:
    global _member
    inherited, _member = _member, None
    if inherited is None:
        return
    # Locked for the parent, and for as long as any process has the descriptor.
    inherited.leave()
    engine = inherited._engine()
    if engine is not None:
        _member = Member(engine, inherited.limit)
        threading.Thread(target=_go_on, args=(_member,), name="forerun-shared", daemon=True).start()
