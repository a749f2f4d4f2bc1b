"""The text of a log without what terminals, launchers and editors add to it."""

import dataclasses
import re
from collections.abc import Iterator
from pathlib import Path

TERMINAL = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]|\x1b\][^\x07]*\x07|[\x00-\x08\x0e-\x1f\ufeff]")
PLACE = re.compile(r"(?:(?<=N/A)|(?<!N/))[A-Za-z_~][\w:~]{0,255}\(\),\s*[\w./-]+:\d+,?")
"""`function(), file.cc:12,` that some builds print before every piece of a line."""
MPI_LABEL = re.compile(r"\[(\d+(?:,\d+)?)\](?:<std(?:out|err|diag)>)?:?")
"""`[1,0]<stdout>:` of mpirun --tag-output, or `[0]` of other launchers."""
RANK_LABEL = re.compile(r"^\s*(\d+):\s")
"""`0: ` of srun --label."""
MESSAGE = re.compile(
    r"(?:[A-Za-z][\w.-]{0,255}:\d+:\d+\s+)?(?:\[[\d,]+\]\s+)?(?:\S{1,200}\(\),?\s+\S{1,200}\s+)?"
    r"NCCL (?:INFO|WARN|TRACE|ABORT)\b.*"
)
"""A line of the library itself, with `host:process:thread [device]` before it."""

LONGEST = 2000
"""Characters; no row of a table is longer, whatever stands between its numbers."""


@dataclasses.dataclass(frozen=True)
class Line:
    """One line: its number in the file, the label of who printed it, and its text."""

    number: int
    label: str
    text: str


def text_of(path: Path) -> str:
    """The characters of a log in whatever encoding editors save."""
    data = path.read_bytes()
    wide = data.startswith((b"\xff\xfe", b"\xfe\xff"))
    text = data.decode("utf-16" if wide else "utf-8-sig", errors="replace")
    return text.replace("&lt;", "<").replace("&gt;", ">")


def lines_of(text: str) -> Iterator[Line]:
    """Lines with labels, terminal codes, library messages and table bars taken out."""
    for number, raw in enumerate(text.splitlines(), start=1):
        if len(raw) > LONGEST:
            continue
        plain = TERMINAL.sub("", raw)
        plain = MESSAGE.sub("", plain) if "NCCL " in plain else plain
        label, rest = _unlabelled(PLACE.sub(" ", plain) if "()" in plain else plain)
        yield Line(number, label, rest.replace("|", " ").strip(" \t>`"))


def _unlabelled(text: str) -> tuple[str, str]:
    """The label at the start of a line, and the line without any copy of it."""
    if found := RANK_LABEL.match(text):
        label = found.group(1)
        return label, re.sub(rf"{label}:\s", " ", text)
    start = MPI_LABEL.match(text.lstrip())
    if start is None:
        return "", text
    return start.group(1), re.sub(rf"\[{start.group(1)}\](?:<std(?:out|err|diag)>)?:?", " ", text)
