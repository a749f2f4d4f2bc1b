"""Peak memory of runs that keep summaries only: does it grow with the number of samples?

    python -m bench.memory [--largest N] [--json FILE]

Every run is a process of its own, on a light model, so that 10^8 samples end in minutes. What is
reported is the highest resident set of the whole process, from import to the finished store.
"""

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path

from bench.sides import LIGHT

SIZES = (10**5, 10**6, 10**7, 10**8)  # samples, over both programs
FLAT = 1.05

CHILD = """
import resource, sys, tempfile
import fabricarlo
spec, samples = sys.argv[1:]
with tempfile.TemporaryDirectory() as where:
    fabricarlo.run(spec, where + "/store.zarr", overrides=[f"samples={samples}"])
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(samples: int) -> float:
    """Highest resident set, in MiB, of a run of this many samples."""
    command = [sys.executable, "-c", CHILD, str(LIGHT), str(samples // 2)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    kib = int(done.stdout.split()[-1])
    return kib / 1024 / (1024 if sys.platform == "darwin" else 1)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--largest", type=int, default=SIZES[-1])
    parser.add_argument("--json", type=Path, help="write the results to this file")
    asked = parser.parse_args()
    found: dict[int, float] = {}
    print("| samples | peak memory, MiB | over the first | s |\n|---|---|---|---|")
    for samples in (n for n in SIZES if n <= asked.largest):
        start = time.monotonic()
        found[samples] = peak(samples)
        growth = found[samples] / found[SIZES[0]]
        taken = time.monotonic() - start
        print(f"| {samples:,} | {found[samples]:.0f} | {growth:.3f} | {taken:.0f} |", flush=True)
    growth = max(found.values()) / min(found.values())
    met = "met" if growth <= FLAT else "not met"
    print(f"largest over smallest: {growth:.3f}, goal <= {FLAT}: {met}")
    if asked.json:
        asked.json.write_text(json.dumps({"peak_mib": found, "growth": growth}), encoding="utf-8")


if __name__ == "__main__":
    main()
