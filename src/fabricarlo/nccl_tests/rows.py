"""Words of one line -> a row of an nccl-tests table, or the heading of one."""

import dataclasses
import re

from fabricarlo.nccl_tests.run import ELEMENT_SIZES, Measured, Row

NUMBER = re.compile(r"-?\d+(?:\.\d*)?(?:[eE][+-]?\d+)?")
INTEGER = re.compile(r"-?\d+")
MEASURES = ("time", "algbw", "busbw", "wrong")
TWICE = (*MEASURES, *MEASURES)


@dataclasses.dataclass(frozen=True)
class Heading:
    """Columns before `size`, and columns after `type`."""

    before: tuple[str, ...]
    after: tuple[str, ...]

    @property
    def readable(self) -> bool:
        """Whether times and bandwidths stand in it as nccl-tests prints them."""
        return self.after[-len(TWICE) :] == TWICE or self.after[-4:] == MEASURES


@dataclasses.dataclass(frozen=True)
class Entry:
    """A row with the words that say which run it belongs to."""

    row: Row
    element: str
    reduction: str | None
    root: int | None
    column: str | None
    label: str

    @property
    def run(self) -> tuple[str, str | None, int | None, str | None, str]:
        """What all rows of a run share."""
        return self.element, self.reduction, self.root, self.column, self.label


def heading(text: str) -> Heading | None:
    """The heading in a line, with or without its hash mark; None where there is none."""
    words = [word.strip("#").lower() for word in text.split()]
    words = ["wrong" if word == "error" else word for word in words if word]
    if "size" not in words or "type" not in words or "busbw" not in words:
        return None
    size, kind = words.index("size"), words.index("type")
    return Heading(tuple(words[:size]), tuple(words[kind + 1 :]))


def type_at(words: list[str]) -> int | None:
    """Where the element type of a row stands: after two integers, size and count."""
    for k in range(2, len(words)):
        if words[k].lower() in ELEMENT_SIZES:
            whole = all(re.fullmatch(r"\d+", word) for word in words[k - 2 : k])
            return k if whole else None
    return None


def entry(
    words: list[str], where: tuple[int, str], shape: Heading | None, *, row_label: bool
) -> Entry | None:
    """The row in these words; None where a number is missing, doubled or not a number.

    `where` is the line and who printed it; `row_label` says that the table has one more column
    of integers before the size.
    """
    k = type_at(words)
    if k is None:
        return None
    after = words[k + 1 :]
    measures = 4 if shape and shape.readable and shape.after[-len(TWICE) :] != TWICE else len(TWICE)
    named, numbers = after[:-measures], after[-measures:]
    if len(named) > 2 or (shape and shape.readable and len(after) != len(shape.after)):
        return None
    halves = [_half(numbers[i : i + 4]) for i in range(0, len(numbers), 4)]
    if len(numbers) != measures or "cut" in halves:
        return None
    roots = [int(word) for word in named if INTEGER.fullmatch(word)]
    reductions = [word.lower() for word in named if not INTEGER.fullmatch(word)]
    if len(roots) > 1 or len(reductions) > 1 or any(NUMBER.fullmatch(w) for w in reductions):
        return None
    found = [half if isinstance(half, Measured) else None for half in halves]
    size = int(words[k - 2])
    if not any(found) or any(half and size and half.time == 0 for half in found):
        return None
    row = Row(size, int(words[k - 1]), found[0], (*found, None)[1], where[0])
    return Entry(
        row=row,
        element=words[k].lower(),
        reduction=next((word for word in reductions if word != "none"), None),
        root=next((root for root in roots if root >= 0), None),
        column=words[k - 3] if row_label and k >= 3 else None,
        label=where[1],
    )


def bad_value(words: list[str], shape: Heading | None) -> str | None:
    """Which number of a row that has all its columns is none that can be measured."""
    k = type_at(words)
    if k is None:
        return None
    after = words[k + 1 :]
    if shape is not None and (not shape.readable or len(after) != len(shape.after)):
        return None
    if shape is None and len(after) != len(TWICE) + 2:
        return None
    twice = shape is None or shape.after[-len(TWICE) :] == TWICE
    for half in (after[-8:-4], after[-4:]) if twice else (after[-4:],):
        if half[:3] == ["N/A"] * 3:
            continue
        for name, word in zip(MEASURES[:3], half, strict=False):
            zero = name == "time" and int(words[k - 2]) > 0
            if NUMBER.fullmatch(word) and (float(word) > 0 or (float(word) == 0 and not zero)):
                continue
            return f"{name} is {word}"
    return None


def _half(words: list[str]) -> Measured | str | None:
    """Time, algbw, busbw and wrong; None where all are N/A, "cut" where they are no numbers."""
    if words[:3] == ["N/A"] * 3:
        return None
    wrong = words[3] if len(words) == 4 else ""
    good = all(NUMBER.fullmatch(word) for word in words[:3]) and len(words) == 4
    if not good or not (NUMBER.fullmatch(wrong) or wrong in ("N/A", "nan", "-nan")):
        return "cut"
    time, algbw, busbw = (float(word) for word in words[:3])
    if time < 0 or algbw < 0 or busbw < 0:
        return "cut"
    digits = min(len(word.partition(".")[2]) for word in words[1:3])
    return Measured(
        time=1e-6 * time,
        algbw=1e9 * algbw,
        busbw=1e9 * busbw,
        rounding=0.5e9 * 10.0**-digits,
        wrong=float(wrong) if NUMBER.fullmatch(wrong) else None,
    )
