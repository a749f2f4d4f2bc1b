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


def _run(text: str, path: str, options: dict[str, Any]) -> None:
    """Exit codes are those of the command line."""
    cache = options.pop("cache", None)
    limit = options.pop("file_size", None)
    checkpoint = options.pop("checkpoint", 3)
    log = options.pop("log", None)
    sys.stderr = open(log, "a") if log else open(os.devnull, "w")  # noqa: SIM115
    import jax

    import fabricarlo
    from fabricarlo import loop
    from fabricarlo.errors import StoreError
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
    try:
        fabricarlo.run(text, path, **options)
    except StoreError as error:
        print(error, file=sys.stderr, flush=True)
        sys.exit(1 if error.resumable else 2)
    except Interrupted as stop:
        sys.exit(128 + stop.number)
