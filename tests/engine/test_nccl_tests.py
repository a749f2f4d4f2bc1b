"""Logs written here in every form that published ones have; what they say must not change."""

import dataclasses
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabricarlo.errors import FabricarloError
from fabricarlo.nccl_tests import Run, bus_factor, read_log, read_text

SIZES = tuple(2**k for k in range(3, 31, 3))
FLAT = ("all_reduce", "broadcast", "reduce", "sendrecv")
COLUMNS = "size count type redop root time algbw busbw #wrong time algbw busbw #wrong"
UNITS = "(B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)"


def seconds(size: int) -> float:
    """Time of one message, as if 20 us and 100 GB/s were all there is."""
    return 20e-6 + size / 100e9


def half(size: int, factor: float, wrong: str = "0") -> str:
    micro = 1e6 * seconds(size)
    digits = 2 if micro < 100 else 1 if micro < 10000 else 0
    rate = size / seconds(size) / 1e9
    return f"{micro:.{digits}f} {rate:.2f} {rate * factor:.2f} {wrong}"


def row(size: int, ranks: int, operation: str, named: str = "", wrong: str = "0") -> str:
    """One row as nccl-tests prints it, for the sizes that a whole number of ranks divides."""
    share = 1 if operation in FLAT else ranks
    size = size // (4 * share) * (4 * share)
    reduces = operation in ("all_reduce", "reduce", "reduce_scatter")
    named = named or f"{'sum' if reduces else 'none'} -1"
    measured = half(size, bus_factor(operation, ranks), wrong)
    return f"  {size}  {size // 4 // share}  float  {named}  {measured}  {measured}"


def table(ranks: int = 16, operation: str = "all_reduce", named: str = "") -> list[str]:
    rows = [row(size, ranks, operation, named) for size in SIZES]
    end = ["# Out of bounds values : 0 OK", "# Avg bus bandwidth    : 12.3"]
    return [f"# {COLUMNS}", f"# {UNITS}", *rows, *end]


def only(text: str) -> Run:
    runs = read_text(text)
    assert len(runs) == 1, runs
    return runs[0]


def numbers(run: Run) -> list[tuple[object, ...]]:
    """What a run measured, without where it stood."""
    return [(r.size, r.count, r.out_of_place, r.in_place) for r in run.rows]


PLAIN = only("\n".join(table()))


def test_a_plain_table():
    assert (PLAIN.operation, PLAIN.ranks, PLAIN.ranks_range) == ("all_reduce", 16, (16, 16))
    assert (PLAIN.element, PLAIN.element_size, PLAIN.reduction) == ("float", 4, "sum")
    assert PLAIN.accepted
    assert not PLAIN.notes
    assert [r.size for r in PLAIN.rows] == list(SIZES)
    for r in PLAIN.rows:
        assert r.least_time == pytest.approx(seconds(r.size), rel=3e-3)
        assert [h.wrong for h in r.halves] == [0, 0]


LOUD = (
    "host-1:12:34 [0] NCCL INFO Launch mode Parallel",
    "ncclIbInit(), transport/net_ib.cc:615, NCCL rdma dev_num:4",
    "[host95:07511] 3 more processes have sent help message help-mpi.txt / no device params",
    "...",
    "",
)
VARIANTS = {
    "carriage returns": lambda lines: "\r\n".join(lines),
    "byte-order mark and colours": lambda lines: "\ufeff\x1b[32m" + "\n".join(lines) + "\x1b[0m",
    "srun label": lambda lines: "\n".join(f"0: {line}" for line in lines),
    "srun label with blanks": lambda lines: "\n".join(f" 0: {line}" for line in lines),
    "mpirun label": lambda lines: "\n".join(f"[1,0]<stdout>:{line}" for line in lines),
    "mpirun label with blanks": lambda lines: "\n".join(f"  [1,0]<stdout>: {x}" for x in lines),
    "escaped mpirun label": lambda lines: "\n".join(f"[1,0]&lt;stdout&gt;:{x}" for x in lines),
    "label inside the line": lambda lines: "\n".join(
        f"[0]{line.replace('-1  ', '-1[0] ')}" for line in lines
    ),
    "srun label inside the line": lambda lines: "\n".join(
        f"0: {line.replace('-1  ', '-10: ')}" for line in lines
    ),
    "functions inside the line": lambda lines: "\n".join(
        f"run(), common.cu:1084, {line.replace('-1  ', '-1BenchTime(), common.cu:7, ')}"
        for line in lines
    ),
    "no hash marks": lambda lines: "\n".join(line.replace("#", "") for line in lines),
    "no heading": lambda lines: "\n".join(line for line in lines if "#" not in line),
    "no end": lambda lines: "\n".join(lines[:-2]),
    "markdown": lambda lines: "\n".join(f"> | {' | '.join(line.split())} |" for line in lines),
    "device list of other ranks": lambda lines: "\n".join(
        ["#  Rank 143 Group 0 Pid 14840 on host device 3 [0x01] NVIDIA GPU", *lines]
    ),
    "messages between rows": lambda lines: "\n".join(x for line in lines for x in (line, *LOUD)),
    "messages inside a row": lambda lines: "\n".join(
        line.replace("-1  ", f"-1{LOUD[0]}\n") for line in lines
    ),
    "tabs": lambda lines: "\n".join("\t".join(line.split()) for line in lines),
    "a name before": lambda lines: "\n".join(["./all_reduce_perf -b 8 -e 1G -f 2", *lines]),
    "a name behind": lambda lines: "\n".join(
        [*lines, "# Collective test concluded: all_reduce_perf"]
    ),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_variant_says_the_same(variant: str):
    run = only(VARIANTS[variant](table()))
    assert numbers(run) == numbers(PLAIN)
    assert dataclasses.replace(run, rows=()) == dataclasses.replace(PLAIN, rows=())


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_encodings(tmp_path: Path, encoding: str):
    path = tmp_path / "log.txt"
    path.write_text("\n".join(table()), encoding=encoding)
    assert read_log(path) == [PLAIN]


def test_a_missing_log_is_refused(tmp_path: Path):
    with pytest.raises(FabricarloError, match="cannot be read"):
        read_log(tmp_path / "none.txt")


@pytest.mark.parametrize("ranks", [2, 3, 8, 72, 96, 128, 1000])
@pytest.mark.parametrize("operation", ["all_reduce", "all_gather", "reduce_scatter"])
def test_ranks_follow_from_the_numbers(operation: str, ranks: int):
    run = only("\n".join(table(ranks, operation)))
    low, high = run.ranks_range or (0, 0)
    assert run.operation == operation
    assert low <= ranks <= high
    assert high <= 1.5 * low
    if ranks < 100 or operation != "all_reduce":
        assert run.ranks == ranks


@pytest.mark.parametrize("operation", ["broadcast", "sendrecv"])
def test_what_tells_no_ranks(operation: str):
    named = "none 0" if operation == "broadcast" else "none -1"
    run = only("\n".join(table(8, operation, named)))
    assert (run.operation, run.ranks, run.accepted) == (operation, None, True)


def test_a_reduction_to_one_rank():
    assert only("\n".join(table(8, "reduce", "sum 0"))).operation == "reduce"


def test_small_sizes_tell_no_ranks():
    lines = table()
    run = only("\n".join(lines[:4]))
    assert (run.operation, run.ranks, run.ranks_range) == ("all_reduce", None, None)
    assert run.accepted


OLD = "size count type redop time algbw busbw error time algbw busbw error"


def test_old_layouts():
    """No root column, an error in place of the wrong elements; a root under `redop`; neither."""
    old = table(8, "all_reduce", "sum")
    run = only("\n".join([f"# {OLD}", *old[1:]]).replace(" 0  ", " 2e-07  "))
    assert (run.operation, run.ranks) == ("all_reduce", 8)
    assert run.rows[0].halves[0].wrong == 2e-7
    rooted = only("\n".join([f"# {OLD}", *table(8, "broadcast", "0")[1:]]))
    assert rooted.operation == "broadcast"
    assert len(rooted.rows) == len(SIZES)
    bare = [line.replace("none -1", "") for line in table(8, "all_gather", "none -1")]
    run = only("\n".join([f"# {OLD.replace('redop ', '')}", *bare[1:]]))
    assert (run.operation, run.ranks, len(run.rows)) == ("all_gather", 8, len(SIZES))


def test_unchecked_results():
    run = only("\n".join(table()).replace(" 0  ", " N/A  "))
    assert [r.size for r in run.rows] == list(SIZES)
    assert {r.out_of_place.wrong for r in run.rows if r.out_of_place} == {None}
    assert {r.in_place.wrong for r in run.rows if r.in_place} == {0}


def test_in_place_may_be_missing():
    lines = [
        " ".join([*line.split()[:-4], "N/A", "N/A", "N/A", "N/A"]) if "float" in line else line
        for line in table(8, "all_gather")
    ]
    run = only("\n".join(lines))
    assert {r.in_place for r in run.rows} == {None}
    assert (run.operation, run.ranks) == ("all_gather", 8)


def test_zero_sizes_come_first():
    zero = "0 0 float none -1 0.13 0.00 0.00 0 0.12 0.00 0.00 0"
    lines = table(8, "all_gather")
    run = only("\n".join([*lines[:2], *[zero] * 5, *lines[2:]]))
    assert [r.size for r in run.rows][:6] == [0] * 6  # 8 B are no part for every rank either
    assert run.ranks == 8


def test_wrong_elements_are_told():
    lines = table()
    lines[-3] = lines[-3][:-1] + "7"
    assert any("wrong elements" in note for note in only("\n".join(lines)).notes)


def test_a_size_that_is_no_multiple_of_the_ranks():
    """Versions that print the size asked for, above the count of every rank."""
    times = [(size, 1e6 * seconds(size)) for size in SIZES[4:]]
    rows = [
        f"{s} {s // 4 // 12} float none -1 "
        + 2 * f"{t:.3f} {s / t / 1e3:.2f} {s / t / 1e3 * 11 / 12:.2f} 0 "
        for s, t in times
    ]
    run = only("\n".join(rows))
    assert (run.operation, run.ranks, run.accepted) == ("all_gather", 12, True)
    assert len(run.rows) == len(times)


def test_a_name_decides_between_equal_numbers():
    lines = table(8, "alltoall")
    assert only("\n".join(["# Collective test starting: alltoall_perf", *lines])).operation == (
        "alltoall"
    )
    unnamed = only("\n".join(lines))
    assert unnamed.operation == "all_gather"
    assert any("alltoall" in note for note in unnamed.notes)
    assert "alltoall" in unnamed.alternatives


def test_a_wrong_name_does_not_decide():
    run = only("\n".join(["./all_reduce_perf -b 8", *table(8, "all_gather")]))
    assert run.operation == "all_gather"
    assert any("names all_reduce" in note for note in run.notes)


def test_several_tables():
    runs = read_text("\n".join([*table(16), "", "some words", *table(8, "reduce_scatter")]))
    assert [(r.operation, r.ranks) for r in runs] == [("all_reduce", 16), ("reduce_scatter", 8)]
    assert all(r.accepted for r in runs)


def test_several_types_in_one_table():
    lines = table()
    double = [
        " ".join(
            "double" if w == "float" else str(int(w) // 2) if k == 1 else w
            for k, w in enumerate(line.split())
        )
        for line in lines[2:-2]
    ]
    rows = [x for pair in zip(lines[2:-2], double, strict=True) for x in pair]
    runs = read_text("\n".join([*lines[:2], *rows, *lines[-2:]]))
    assert [(r.element, r.element_size, r.ranks) for r in runs] == [
        ("float", 4, 16),
        ("double", 8, 16),
    ]


def test_a_column_of_the_reporter_divides_the_table():
    rows = [f"{k} {row(2**30, 8 * k, 'all_reduce')}" for k in (1, 2, 3, 4)]
    runs = read_text("\n".join([f"p4dn {COLUMNS}", *rows]))
    assert [(r.column, r.ranks) for r in runs] == [("1", 8), ("2", 16), ("3", 24), ("4", 32)]
    assert all(r.accepted for r in runs)


def test_a_repeated_test_is_no_interleaved_one():
    lines = table()
    assert only("\n".join([*lines[:-2], *lines[2:]])).accepted


CUTS = {
    "inside a number that still is one": lambda line: line.rsplit(maxsplit=2)[0][:-1],
    "after the count": lambda line: " ".join(line.split()[:2]),
    "inside the count": lambda line: line.split()[0] + " " + line.split()[1][:3],
    "after the type": lambda line: " ".join(line.split()[:3]),
    "before the last column": lambda line: line.rsplit(maxsplit=1)[0],
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_cut_last_row_is_left_out(cut: str):
    lines = table()[:-2]
    run = only("\n".join([*lines[:-1], CUTS[cut](lines[-1])]))
    assert numbers(run) == numbers(PLAIN)[:-1]
    assert any("not all columns" in note for note in run.notes)
    assert run.accepted


BAD = {
    "time is -12.3": (5, "-12.3"),
    "time is nan": (5, "nan"),
    "time is -nan": (9, "-nan"),
    "time is inf": (9, "inf"),
    "time is 0.00": (5, "0.00"),
    "algbw is -1": (6, "-1"),
    "busbw is NaN": (11, "NaN"),
}


@pytest.mark.parametrize("why", BAD)
def test_a_value_that_cannot_be_is_named(why: str):
    place, word = BAD[why]
    lines = table()
    words = lines[3].split()
    words[place] = word
    bad = " ".join(words)
    for around in (lines, lines[2:]):  # with its heading and without
        text = "\n".join(bad if line == lines[3] else line for line in around)
        run = only(text)
        number = text.splitlines().index(bad) + 1
        assert f"line {number} left out: {why}" in run.notes
        assert len(run.rows) == len(PLAIN.rows) - 1
    [alone] = read_text("\n".join([*lines[:2], bad]))
    assert alone.refusals == (f"a heading and no row that can be used: line 3: {why}",)


WHOLE_LOG = "\n".join(table())


@given(st.integers(0, len(WHOLE_LOG)))
def test_a_log_cut_anywhere_holds_no_number_that_was_not_there(place: int):
    for part in (WHOLE_LOG[:place], WHOLE_LOG[place:]):
        for run in read_text(part):
            assert run.refusals or set(numbers(run)) <= set(numbers(PLAIN)), part


@given(st.text("0123456789.-eEfloatsum N/A#|[]:>\n\t(),_", max_size=300))
def test_any_text_is_read_or_refused(text: str):
    for run in read_text(f"{COLUMNS}\n{text}"):
        assert run.refusals or run.rows


def test_a_row_that_is_not_size_over_time_is_left_out():
    lines = table()
    words = lines[-3].split()
    words[5] = str(float(words[5]) * 1.1)
    run = only("\n".join([*lines[:-3], " ".join(words), *lines[-2:]]))
    assert numbers(run) == numbers(PLAIN)[:-1]
    assert any("algbw is not size / time" in note for note in run.notes)


def without_bus(line: str) -> str:
    words = line.split()
    if "float" in words:
        words[7] = words[11] = "0.00"
    return " ".join(words)


def shrunk_bus(line: str) -> str:
    words = line.split()
    if "float" in words:
        words[7] = words[11] = f"{float(words[6]) * 0.997:.2f}"
    return " ".join(words)


def slow_clock(line: str) -> str:
    words = line.split()
    if "float" in words:
        words[5] = words[9] = str(float(words[5]) * 1.3)
    return " ".join(words)


def interleaved(lines: list[str]) -> list[str]:
    rows = lines[2:-2]
    late = [x for pair in zip(rows[3:], rows[:-3], strict=True) for x in pair]
    return [*lines[:2], *rows[:3], *lines[:2], *late, *rows[-3:], *lines[-2:] * 2]


def lockstep(lines: list[str]) -> list[str]:
    return [x for line in lines for x in (line, line)]


REFUSED = {
    "one rank": ([without_bus(x) for x in table()], "busbw is 0"),
    "made up": ([shrunk_bus(x) for x in table()], "impossible"),
    "no such ranks": (
        [f"{2**30} {2**28} float sum -1 10737 100.00 110.00 0 10737 100.00 110.00 0"],
        "fits no number of ranks",
    ),
    "mixed ranks": (table()[:-2] + table(32)[2:], "differs from row to row"),
    "another clock": ([slow_clock(x) for x in table()], "algbw is not size / time"),
    "interleaved": (interleaved(table()), "interleaved"),
    "in lockstep": (lockstep(table()), "interleaved"),
    "no rows": (table()[:2], "no rows"),
    "only a cut row": ([*table()[:2], "8 2 float sum -1 12."], "only cut rows"),
    "crashed": (["# nThread 1 nGpus 1 minBytes 8", "# Using devices"], "ended before"),
    "other columns": (
        ["size\ttype\tredop\tbusbw\talgo", "33554432\tfloat\tsum\t127.38\tTREE"],
        "other columns",
    ),
    "no log": (["Dear all,", "the network is slow."], "no table"),
    "nothing": ([""], "no table"),
    "only zero sizes": (
        [COLUMNS, "0 0 float sum -1 0.13 0.00 0.00 0 0.12 0.00 0.00 0"],
        "no row has a size",
    ),
    "count of another type": ([x.replace("float", "double") for x in table()], "no whole multiple"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_measurement_is_refused_with_a_reason(case: str):
    lines, reason = REFUSED[case]
    runs = read_text("\n".join(lines))
    assert runs
    for run in runs:
        assert any(reason in why for why in run.refusals), run.refusals


def test_labels_keep_two_processes_apart():
    """Two processes that print at once are two tables where a label tells them apart."""
    first, second = table(8), table(16)
    lines = [x for a, b in zip(first, second, strict=True) for x in (f"0: {a}", f"1: {b}")]
    runs = read_text("\n".join(lines))
    assert [(r.ranks, r.accepted) for r in runs] == [(8, True), (16, True)]


def test_the_old_bandwidth_convention():
    """algbw of one rank's part: size / time is n times as much, busbw is algbw (n - 1)."""
    rate = 2**26 / seconds(2**26) / 2e9
    text = f"{2**26} {2**26 // 8} float {1e6 * seconds(2**26):.1f} {rate:.2f} {rate:.2f} 0e+00"
    words = text.split()
    run = only(" ".join([*words, *words[3:]]))
    assert (run.operation, run.ranks, run.accepted) == ("all_gather", 2, True)
    assert any("old bandwidth convention" in note for note in run.notes)


def test_an_unknown_collective_has_no_bus_factor():
    with pytest.raises(FabricarloError, match="no collective of nccl-tests"):
        bus_factor("all_shout", 8)
