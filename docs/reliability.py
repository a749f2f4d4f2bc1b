"""Write docs/reliability.md from what the tests of faults did.

export FABRICARLO_RELIABILITY=faults.jsonl FABRICARLO_KILLS=100 FABRICARLO_LONG_TESTS=1
python -m pytest -o faulthandler_timeout=3600 tests/engine
python docs/reliability.py faults.jsonl

Runs of single tests may add to the same file.
"""

import json
import sys
from collections import Counter
from pathlib import Path

PAGE = Path(__file__).parent / "reliability.md"
HEAD = """<!-- written by docs/reliability.py from runs of the tests -->
# What happens when things break

Every line is a fault that the tests inject into the real program: processes that are killed or
frozen, file systems that fill up, an S3 server behind a proxy that fails, a Slurm whose nodes die.
After each, the store is compared bit by bit with that of a run that was left alone. A promise that
did not hold would have failed the test, and would not be in this table.

| fault | how often injected | promise that was checked | blocks lost or different | test |
|---|---|---|---|---|
"""
TAIL = """
Not covered: power loss that makes a disk forget what it said it had written (a file system that
lies is caught by `verify` only), two machines with the same host name, boot and process numbers,
and object stores other than the S3 of moto.
"""


def page(lines: list[str]) -> str:
    """The table of the faults in a file of one JSON object a line."""
    times: Counter[tuple[str, str, str]] = Counter()
    for line in lines:
        found = json.loads(line)
        times[found["fault"], found["promise"], found["test"]] += found["times"]
    rows = [
        f"| {fault} | {count:,} | {promise} | none | `{test}.py` |"
        for (fault, promise, test), count in sorted(times.items())
    ]
    return HEAD + "\n".join(rows) + "\n" + TAIL


if __name__ == "__main__":
    PAGE.write_text(page(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines()), "utf-8")
