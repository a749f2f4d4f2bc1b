"""What the tests of faults did and lost, for the table of docs/reliability.md."""

import json
import os

RECORD = os.environ.get("FABRICARLO_RELIABILITY")


def kept(fault: str, promise: str, times: int, test: str) -> None:
    """A fault was injected so often, and the promise held: called after the checks.

    FABRICARLO_RELIABILITY names a file that collects one JSON object a call; without it nothing
    is written.
    """
    if RECORD:
        with open(RECORD, "a", encoding="utf-8") as file:
            line = {"fault": fault, "promise": promise, "times": times, "test": test}
            file.write(json.dumps(line) + "\n")
