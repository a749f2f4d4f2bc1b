"""A run in a process of its own, to be killed, starved or watched."""

import multiprocessing
import os
import sys
from pathlib import Path
from typing import Any

_context = multiprocessing.get_context("forkserver")
_context.set_forkserver_preload(["fabricarlo.running", "tests.engine.victim"])


def start(text: str, path: Path, **options: Any) -> Any:
    """Begin a run of a spec; the process is not waited for."""
    process = _context.Process(target=_run, args=(text, str(path), options))
    process.start()
    return process


def finish(text: str, path: Any, **options: Any) -> None:
    """Run a spec to its end in a process of its own, and say so if it does not end well."""
    process = start(text, path, **options)
    process.join()
    assert process.exitcode == 0, process.exitcode


def _patch(patches: dict[str, Any]) -> None:
    """Set module:attribute to a value, for faults and for clocks."""
    import importlib

    for place, value in patches.items():
        module, _, name = place.partition(":")
        setattr(importlib.import_module(module), name, value)


def _slow(seconds: float) -> None:
    """Let every block take longer, so that something can happen meanwhile."""
    import time

    from fabricarlo.blocks import Worker

    compute = Worker.compute

    def slow(self: Any, *arguments: Any) -> Any:
        time.sleep(seconds)
        return compute(self, *arguments)

    Worker.compute = slow  # type: ignore[method-assign]


def _skew(seconds: float) -> None:
    """Let the clocks of this process be wrong."""
    import time

    now, steady = time.time, time.monotonic
    time.time = lambda: now() + seconds  # type: ignore[assignment]
    time.monotonic = lambda: steady() + abs(seconds)  # type: ignore[assignment]


def _run(text: str, path: str, options: dict[str, Any]) -> None:
    """Exit codes are those of the command line."""
    cache = options.pop("cache", None)
    limit = options.pop("file_size", None)
    checkpoint = options.pop("checkpoint", 3)
    log = options.pop("log", None)
    said = options.pop("said", None)
    os.environ.update(options.pop("environment", {}))
    slow, skew = options.pop("slow", 0.0), options.pop("skew", 0.0)
    patches = options.pop("patches", {})
    sys.stderr = open(log, "a") if log else open(os.devnull, "w")  # noqa: SIM115
    import jax

    import fabricarlo
    from fabricarlo import loop
    from fabricarlo.errors import FabricarloError
    from fabricarlo.interrupt import Interrupted

    if cache:
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    if limit:
        import resource
        import signal

        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
    loop.CHECKPOINT_BLOCKS = checkpoint
    _patch(patches)
    if slow:
        _slow(slow)
    if skew:
        _skew(skew)
    if said:
        from fabricarlo.progress import Events

        options["reporter"] = Events(open(said, "a"))  # noqa: SIM115
    try:
        fabricarlo.run(text, path, **options)
    except FabricarloError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(error.exit_code)
    except Interrupted as stop:
        sys.exit(128 + stop.number)
