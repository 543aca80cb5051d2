"""Refuses interpreters that the compiled part does not work in, before it is loaded."""

import importlib
import sysconfig


def _is_main() -> bool:
    """Whether this is the interpreter that the process began with."""
    for name in ("_interpreters", "_xxsubinterpreters"):
        try:
            interpreters = importlib.import_module(name)
        except ImportError:
            continue
        return bool(interpreters.get_current() == interpreters.get_main())
    return True


if sysconfig.get_config_var("Py_GIL_DISABLED"):
    raise ImportError("forerun: the free-threaded build of CPython is not supported")
if not _is_main():
    raise ImportError(
        "forerun: subinterpreters are not supported; with mod_wsgi set WSGIApplicationGroup %{GLOBAL}"
    )
