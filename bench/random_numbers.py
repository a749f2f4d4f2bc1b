"""Quality battery of the random numbers: own checks, and dieharder where it is installed.

    python bench/random_numbers.py --report docs/random_numbers.md
    python bench/random_numbers.py --full        # every reliable test of dieharder, hours

Every check gives a p-value, small for a bad generator; a check fails below 1e-6.
The last two layouts are generators that are known to be good and bad, to judge the battery by.
"""

import argparse
import platform
import resource
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from importlib.metadata import version
from itertools import count
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF
from subprocess import DEVNULL, PIPE

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from numpy.typing import NDArray
from scipy import stats

from fabricarlo.sampling.addresses import stream_keys
from fabricarlo.sampling.scramble import scramble
from fabricarlo.sampling.sobol import reversed_words
from fabricarlo.sampling.threefry import threefry2x32

FAILS_BELOW = 1e-6
BLOCK = 2**20
POINT = 12345
Words = NDArray[np.uint32]
DIGESTS = np.concatenate(
    [stream_keys(seed, [f"stream {k}" for k in range(64)], 1, 0) for seed in range(64)], axis=1
)  # [stream, seed, word]


@dataclass(frozen=True)
class Result:
    """One p-value of one test on one layout."""

    layout: str
    test: str
    p_value: float

    @property
    def verdict(self) -> str:
        """fail below 1e-6, weak below 1 %, else pass."""
        return "fail" if self.p_value < FAILS_BELOW else "weak" if self.p_value < 0.01 else "pass"


def _numbers(block: int) -> Array:
    return jnp.arange(BLOCK, dtype=jnp.uint32) + jnp.uint32(block * BLOCK % 2**32)


def _interleaved(keys: Words, numbers: Array) -> Array:
    # word k belongs to key k mod 64 and sample k div 64
    k, n = numbers & jnp.uint32(63), numbers >> jnp.uint32(6)
    key = tuple(jnp.asarray(part)[k.astype(jnp.int32)] for part in keys.T)
    return threefry2x32((key[0], key[1]), (n, jnp.zeros_like(n)))[0]


def _one_stream(numbers: Array, word: int) -> Array:
    key = tuple(jnp.uint32(part) for part in DIGESTS[0, 0])
    return threefry2x32((key[0], key[1]), (numbers, jnp.zeros_like(numbers)))[word]


def _keys_at_a_point(numbers: Array) -> Array:
    point = reversed_words(jnp.full(1, POINT, jnp.uint32), np.array([1]))[0, 0]
    return scramble(point, (jnp.zeros_like(numbers), numbers))


def _keys_and_points(numbers: Array) -> Array:
    return scramble(reversed_words(numbers, np.array([1]))[0], (numbers, jnp.zeros_like(numbers)))


def _philox(numbers: Array) -> Array:
    key = jax.random.fold_in(jax.random.key(0, impl="rbg"), numbers[0])
    return jax.random.bits(key, numbers.shape)


LAYOUTS: dict[str, Callable[[Array], Array]] = {
    "random: one stream": lambda n: _one_stream(n, 0),
    "random: low words": lambda n: _one_stream(n, 1),
    "random: 64 streams in turn": lambda n: _interleaved(DIGESTS[:, 0], n),
    "random: 64 seeds in turn": lambda n: _interleaved(DIGESTS[0, :], n),
    "sobol: one point, keys 0, 1, 2 ...": _keys_at_a_point,
    "sobol: point and key together": _keys_and_points,
    "reference: Philox of XLA": _philox,
    "control: linear congruence": lambda n: n * jnp.uint32(1664525) + jnp.uint32(1013904223),
}


def chi_square(cells: NDArray[np.integer], size: int) -> float:
    """p-value that cells 0 .. size-1 are equally likely, both sides."""
    counts = np.bincount(cells.ravel(), minlength=size)
    statistic = np.sum((counts - cells.size / size) ** 2) / (cells.size / size)
    law = stats.chi2(size - 1)
    return min(1.0, 2 * min(float(law.sf(statistic)), float(law.cdf(statistic))))


def pairs(one: Words, other: Words) -> float:
    """Six leading bits of each, 4096 cells."""
    return chi_square((one >> 26) * np.uint32(64) + (other >> 26), 4096)


def birthdays(words: Words) -> float:
    """Marsaglia's birthday spacings: 2^12 of 2^32 days, repeated spacings are Poisson(4)."""
    rows = np.sort(words[: len(words) // 4096 * 4096].reshape(-1, 4096).astype(np.int64), axis=1)
    spacings = np.sort(np.diff(rows, axis=1), axis=1)
    law = stats.poisson(4.0 * len(rows))
    repeats = int(np.sum(np.diff(spacings, axis=1) == 0))
    return min(1.0, 2 * min(float(law.sf(repeats - 1)), float(law.cdf(repeats))))


def correlation(rows: NDArray[np.integer]) -> float:
    """Largest correlation among rows, after Bonferroni."""
    z = np.corrcoef(rows.astype(np.float64)) * np.sqrt(rows.shape[1])
    number = len(rows) * (len(rows) - 1) // 2
    worst = np.abs(z[np.triu_indices(len(rows), 1)]).max()
    return min(1.0, float(2 * number * stats.norm.sf(worst)))


def avalanche(function: Callable[..., Words], inputs: int) -> float:
    """Most unfair change of an output bit with an input bit, after Bonferroni."""
    base = np.random.default_rng(2).integers(0, 2**32, (inputs, 2**14), dtype=np.uint32)
    before, flips = np.atleast_2d(function(*base)), []
    for bit in range(32 * inputs):
        changed = base.copy()
        changed[bit // 32] ^= np.uint32(1 << (bit % 32))
        difference = np.atleast_2d(function(*changed)) ^ before
        flips += [np.sum((difference >> k) & 1, axis=1) for k in np.arange(32, dtype=np.uint32)]
    counts, law = np.stack(flips), stats.binom(2**14, 0.5)
    return min(1.0, 2 * counts.size * min(law.cdf(counts.min()), law.sf(counts.max() - 1)))


def own_checks(layout: str, words: Words) -> Iterator[Result]:
    """Checks of one sequence of words."""
    for shift in (0, 8, 16, 24):
        yield Result(layout, f"byte at bit {shift}", chi_square((words >> shift) & 255, 256))
    for lag in (1, 2, 64):
        yield Result(layout, f"pairs at lag {lag}", pairs(words[:-lag], words[lag:]))
    turned = (words << np.uint32(16)) | (words >> np.uint32(16))
    yield Result(
        layout,
        "low pairs at lag 1",
        pairs(turned[:-1] << np.uint32(10), turned[1:] << np.uint32(10)),
    )
    yield Result(layout, "birthday spacings", birthdays(words))
    yield Result(layout, "birthday spacings, halves swapped", birthdays(turned))


def relations() -> Iterator[Result]:
    """Checks between streams, seeds, replicates, key bits and counter bits."""
    cipher = jax.jit(lambda a, b, c, d: jnp.stack(threefry2x32((a, b), (c, d))))
    yield Result("random", "avalanche, key and counter", avalanche(lambda *w: cipher(*w), 4))
    points = np.asarray(reversed_words(jnp.full(1, POINT, jnp.uint32), np.arange(64)))
    digits = jax.jit(lambda a, b: scramble(jnp.full_like(a, int(points[1, 0])), (a, b)))
    yield Result("sobol", "avalanche, key", avalanche(lambda *w: digits(*w), 2))
    index = jnp.arange(2**14, dtype=jnp.uint32)[None]
    draw = jax.jit(lambda a, b: threefry2x32((a, b), (index, jnp.zeros_like(index)))[0])
    for name, keys in (("streams", DIGESTS[:, 0]), ("seeds", DIGESTS[0])):
        words = np.asarray(draw(keys[:, :1], keys[:, 1:]))
        yield Result("random", f"correlation of 64 {name}", correlation(words))
        yield Result("random", f"correlation of 64 {name}, low bits", correlation(words & 0xFFFF))
    keys = stream_keys(1, [f"stream {k}" for k in range(64)], 2**12, 0)
    words = np.asarray(jax.jit(scramble)(points, (keys[..., 0], keys[..., 1])))
    yield Result("sobol", "correlation of 64 dimensions over 4096 replicates", correlation(words))
    yield Result("sobol", "pairs of dimensions over replicates", pairs(words[:32], words[32:]))
    yield Result("sobol", "pairs of replicates", pairs(words[:, :-1], words[:, 1:]))


# p-samples of the tests that dieharder calls good: its own numbers, but 20 where one takes long
QUICK: dict[int, int] = dict.fromkeys((0, 3, 4, 8, 9, 10, 11, 12, 15, 16, 100, 102, 202, 203), 100)
QUICK |= {1: 20, 2: 20, 13: 20, 101: 20, 204: 1000, 205: 1, 206: 1, 207: 1, 208: 1, 209: 1}
CONTROL = {0: 100, 8: 100, 100: 100, 205: 1}
FULL = {test: max(rows, 100) if test < 205 else 1 for test, rows in QUICK.items()}
FULL |= {17: 100, 200: 100, 201: 1000}


def dieharder(layout: str, tests: dict[int, int]) -> Iterator[Result]:
    """Results of dieharder's tests, every one on the next stretch of the layout's words."""
    make = jax.jit(LAYOUTS[layout])
    blocks = count()
    for test, rows in tests.items():
        command = ["dieharder", "-g", "200", "-d", str(test), "-p", str(rows), "-c", ","]
        command += ["-D", "test_name", "-D", "ntuple", "-D", "pvalues"]
        # unbuffered: a buffer would be flushed into the closed pipe at the end
        with subprocess.Popen(command, bufsize=0, stdin=PIPE, stdout=PIPE, stderr=DEVNULL) as run:
            if run.stdin is None or run.stdout is None:
                raise RuntimeError(f"{command}: no pipe to dieharder")
            with suppress(BrokenPipeError):
                while run.poll() is None:
                    run.stdin.write(np.asarray(make(_numbers(next(blocks)))).tobytes())
            lines = run.stdout.read().decode().splitlines()
        for name, size, p_value in (map(str.strip, line.split(",")) for line in lines):
            yield Result(layout, f"{name} {size}", float(p_value))


def run(tests: dict[int, int]) -> list[Result]:
    """All checks; says what it does on the way."""
    results = list(relations())
    for layout, function in LAYOUTS.items():
        print(layout, flush=True)
        make = jax.jit(function)
        words = np.concatenate([np.asarray(make(_numbers(block))) for block in range(4)])
        results += own_checks(layout, words)
        if shutil.which("dieharder"):
            results += dieharder(layout, CONTROL if layout.startswith("control") else tests)
    return results


def _table(head: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines) + "\n"


def _summary(results: list[Result], layout: str) -> tuple[str, ...]:
    mine = [one for one in results if one.layout == layout]
    verdicts = [one.verdict for one in mine]
    smallest = min(mine, key=lambda one: one.p_value)
    counts = str(len(mine)), str(verdicts.count("weak")), str(verdicts.count("fail"))
    return layout, *counts, f"{smallest.p_value:.1e}", smallest.test


def _matrix(results: list[Result], layouts: list[str]) -> str:
    tests = list(dict.fromkeys(one.test for one in results if one.layout in layouts))
    values = {(one.layout, one.test): f"{one.p_value:.2g}" for one in results}
    rows = [(test, *(values.get((layout, test), "") for layout in layouts)) for test in tests]
    return _table(("test", *layouts), rows)


def report(results: list[Result], seconds: float) -> str:
    """The results as a page."""
    page = (Path(__file__).parent / "random_numbers.md.in").read_text(encoding="utf-8")
    tool = (
        shutil.which("dieharder")
        and subprocess.run(["dieharder", "-l"], capture_output=True, text=True, check=False)
        .stdout.split("version")[1]
        .split()[0]
    )
    versions = ", ".join(f"{name} {version(name)}" for name in ("jax", "numpy", "scipy"))
    head = ("layout", "p-values", "weak", "fail", "smallest", "in")
    return page.format(
        command=" ".join(["python", *sys.argv]),
        versions=f"Python {platform.python_version()}, {versions}, dieharder {tool or 'not found'}",
        seconds=f"{seconds:.0f}",
        summary=_table(head, [_summary(results, name) for name in ("random", "sobol", *LAYOUTS)]),
        relations=_table(
            ("of", "check", "p"),
            [
                (one.layout, one.test, f"{one.p_value:.2g}")
                for one in results
                if one.layout not in LAYOUTS
            ],
        ),
        matrix=_matrix(results, list(LAYOUTS)),
    )


def main() -> int:
    """Run the battery; exit code 1 if a generator fails or the control passes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--report", type=Path, help="write the results to this file")
    parser.add_argument("--full", action="store_true", help="all reliable tests of dieharder")
    arguments = parser.parse_args()
    if not shutil.which("dieharder"):
        print("dieharder is not installed (Debian: apt-get install dieharder): own checks only")
    results = run(FULL if arguments.full else QUICK)
    used = [resource.getrusage(who) for who in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    text = report(results, sum(one.ru_utime + one.ru_stime for one in used))
    print(text)
    if arguments.report:
        arguments.report.write_text(text, encoding="utf-8")
    failed = {one.layout.split(":")[0] for one in results if one.verdict == "fail"}
    return 0 if failed == {"control"} else 1


if __name__ == "__main__":
    sys.exit(main())
