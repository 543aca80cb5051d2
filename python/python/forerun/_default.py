"""The engine that files share if none is named, and engines in other processes.

A forked child keeps its `Engine` objects; each starts anew there at its first use. A pickled
engine has an identity: all copies of it that one process unpickles are the same object, so that
a worker with a thousand unpickled files has one memory limit, not a thousand.
"""

import atexit
import copyreg
import os
import threading
import weakref
from typing import Any

from . import _shared
from ._forerun import Engine, finish_engines, forked, log

_default: Engine | None = None
_identities: "weakref.WeakKeyDictionary[Engine, str]" = weakref.WeakKeyDictionary()
_engines: "weakref.WeakValueDictionary[str, Engine]" = weakref.WeakValueDictionary()

_IDENTITY_OF_DEFAULT = "default"

# Held while an engine is made that others may look for: threads that open their first files side by side share it.
_making = threading.RLock()


def _in_child() -> None:
    """The lock may have been held by a thread that a forked child lacks."""
    global _making
    _making = threading.RLock()


def default_engine() -> Engine:
    """The engine of files opened without one, made at the first call.

    It has 256 MiB and the preset "forerun", or those of `FORERUN_MEMORY` ("1GiB") and `FORERUN_PRESET`. With
    `FORERUN_MEMORY_SHARED` it has its part of a limit that all processes of the user share.
    """
    global _default
    if _default is None:
        with _making:
            if _default is None:
                engine = _of_the_environment()
                _shared.share(engine)
                set_default_engine(engine)
    assert _default is not None
    return _default


def _of_the_environment() -> Engine:
    settings: dict[str, Any] = {}
    if limit := os.environ.get(_shared.VARIABLE):
        settings["memory"] = _shared.size(limit)
    for name in ("memory", "preset"):
        variable = f"FORERUN_{name.upper()}"
        if given := os.environ.get(variable):
            try:
                Engine(**{**settings, name: given})
            except ValueError as error:
                raise ValueError(f"{variable}: {error}") from None
            settings[name] = given
    return Engine(**settings)


def set_default_engine(engine: Engine) -> None:
    """Makes an engine the default of files opened from now on.

    Files that are open keep theirs. `forerun.set_default_engine(forerun.Engine("4GiB"))` gives all of a program more
    memory, in each worker that runs it.
    """
    global _default
    if not isinstance(engine, Engine):
        raise TypeError(f"engine must be a forerun.Engine, not {type(engine).__name__}")
    with _making:
        _default = engine


def _identity(engine: Engine) -> str:
    if engine is _default:
        return _IDENTITY_OF_DEFAULT
    return _identities.setdefault(engine, os.urandom(16).hex())


def _reduce(engine: Engine) -> tuple[Any, ...]:
    identity = _identity(engine)
    if identity != _IDENTITY_OF_DEFAULT:
        _engines[identity] = engine
    settings = (engine.memory, engine.memory_limit, engine.preset, engine.profile, engine.emulate)
    return _restore, (identity, *settings)


def _restore(
    identity: str,
    memory: int,
    limit: int,
    preset: str,
    profile: dict[str, Any] | None,
    emulate: tuple[int, int] | None,
) -> Engine:
    with _making:
        engine = _default if identity == _IDENTITY_OF_DEFAULT else _engines.get(identity)
        if engine is not None:
            return engine
        engine = Engine(memory, preset, profile=profile, emulate=emulate)
        if limit != memory:
            engine.limit_memory(limit)
        if identity == _IDENTITY_OF_DEFAULT:
            _shared.share(engine)
            set_default_engine(engine)
        else:
            _engines[identity] = engine
            _identities[engine] = identity
        return engine


if levels := os.environ.get("FORERUN_LOG"):
    log(levels)
copyreg.pickle(Engine, _reduce)
atexit.register(finish_engines)
os.register_at_fork(after_in_child=forked)
os.register_at_fork(after_in_child=_in_child)
