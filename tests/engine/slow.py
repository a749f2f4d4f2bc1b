"""`fabricarlo` with small blocks that take their time: python slow.py FILE ARGUMENTS...

FILE holds the seconds that a block takes longer; it is read before every block.
"""

import os
import sys
import time
from pathlib import Path
from typing import Any


def main() -> None:
    """Patch, then run the command line."""
    import jax

    from fabricarlo import cli, loop, running
    from fabricarlo.blocks import Worker

    seconds, compute = Path(sys.argv[1]), Worker.compute
    if cache := os.environ.get("FABRICARLO_TEST_CACHE"):
        jax.config.update("jax_compilation_cache_dir", cache)
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)

    def slow(self: Any, *arguments: Any) -> Any:
        time.sleep(float(seconds.read_text()))
        return compute(self, *arguments)

    Worker.compute = slow  # type: ignore[method-assign]
    running.BLOCK, loop.CHECKPOINT_BLOCKS = 2**15, 2
    sys.argv = ["fabricarlo", *sys.argv[2:]]
    cli.main()


if __name__ == "__main__":
    main()
