"""The benchmarks: their rival gives the product's numbers, and what they count is counted right."""

from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from numpy.typing import NDArray

import fabricarlo
from bench import mirror_builder
from bench.counted import Module, Work, compilations, traced
from bench.gpu import CLOSE, distances
from bench.numpy_mirror import Mirror
from bench.sides import LIGHT
from fabricarlo.engine import Engine
from fabricarlo.plan import Plan

TILE = 2**11
RICH = """
schema_version: 1
sweep: mirror
seed: 3
samples: 2048
base: [gpu/b200, fabric/roce-800g, workload/dense-405b]
set: {gpus: 16384, data_jitter_stall: 0 s}
draws:
  link_rate: {pert: {low: 700 Gbit/s, mode: 780 Gbit/s, high: 800 Gbit/s}}
  routing_efficiency: {uniform: {low: 0.8, high: 0.98}}
  retransmission_timeout: {discrete: {values: [67.1 ms, 1.07 s, 4.29 s], weights: [0.3, 0.3, 0.4]}}
  packet_loss_rate: {lognormal: {median: 1e-10, sigma: 2}}
copula:
  - {draws: [link_rate, routing_efficiency], correlation: 0.5}
outputs: [allreduce_time, bus_bandwidth, data_loss_stall]
"""


@cache  # programs compile once for all tests
def engine_of(spec: str | Path, *overrides: str) -> Engine:
    plan = Plan(fabricarlo.load_spec(spec, list(overrides)), block=2**14, tile=TILE)
    return Engine(plan, jax.local_devices()[:1])


@pytest.fixture(scope="module")
def tile() -> tuple[Plan, dict[str, NDArray], list[NDArray]]:
    """A plan, the outputs of its first tile, and the uniforms behind them in the mirror's order."""
    engine = engine_of(RICH)
    points, deep, *_ = Work.of(engine, engine.plan.layout.at(0)).programs["draw"][1]
    uniforms = engine.program(engine.plan.variants[0]).uniforms(points, deep)
    flat = [np.asarray(a).reshape(-1) for u in uniforms for a in (u.upper, u.distance)]
    outputs = next(engine.tiles(engine.plan.layout.at(0))).outputs
    return engine.plan, {n: np.asarray(a).reshape(-1) for n, a in outputs.items()}, flat


def worst(tile: tuple[Plan, dict[str, NDArray], list[NDArray]]) -> float:
    """Largest relative distance of the mirror from the product over outputs, in the closest 99.9 %
    of the lanes: the others may lie at a threshold."""
    plan, outputs, flat = tile
    given = [a.copy() if a.dtype == bool else a.astype(np.float64) for a in flat]
    found = Mirror(plan, 0).evaluate(given, TILE)
    scale = {n: np.maximum(np.abs(a), 1e-30) for n, a in outputs.items()}
    return max(np.quantile(np.abs(found[n] - a) / scale[n], 0.999) for n, a in outputs.items())


def test_the_mirror_gives_the_numbers_of_the_product(tile):
    assert worst(tile) < 1e-4


def test_a_wrong_mirror_would_be_seen(tile, monkeypatch):
    def wrong(x: NDArray, out: NDArray | None = None) -> NDArray:
        return np.multiply(np.exp(x), 1.001, out=out)

    monkeypatch.setitem(mirror_builder.FUNCTIONS, "exp", wrong)
    assert worst(tile) > 1e-4


def test_the_mirror_uses_its_memory_again(tile):
    mirror, generator = Mirror(tile[0], 0), np.random.Generator(np.random.SFC64(1))
    kept = []
    for _ in range(3):
        mirror.release(mirror.evaluate(mirror.draw(generator, 512), 512))
        kept.append(len(mirror._memory._float))
    assert kept[1] == kept[2], "every chunk left more arrays behind"


def test_the_mirror_draws_both_ends_alike():
    mirror = Mirror(engine_of(RICH).plan, 0)
    upper, distance = mirror.draw(np.random.Generator(np.random.SFC64(1)), 2**16)[:2]
    assert distance.min() > 0
    assert distance.max() <= 0.5
    # a fair coin is 5 deviations off less often than 1e-6
    assert abs(upper.mean() - 0.5) < 5 * 0.5 / 2**8


TEXT = """
HloModule made_up

%doubled (p: u32[2,8]) -> u32[2,8] {
  %p = u32[2,8]{1,0} parameter(0)
  %once = u32[2,8]{1,0} xor(%p, %p), metadata={op_name="a (b)"}
  %row = u32[1,8]{1,0} slice(%once), slice={[0:1], [0:8]}
  %flat = u32[8]{0} bitcast(%row)
  %rows = u32[2,8]{1,0} broadcast(%flat), dimensions={1}
  ROOT %sum = u32[2,8]{1,0} add(%once, %rows)
}

%key (k: u32[2], p: u32[2,8]) -> u32[2,8] {
  %k = u32[2]{0} parameter(0)
  %p.1 = u32[2,8]{1,0} parameter(1)
  %hashed = u32[2]{0} xor(%k, %k)
  %keys = u32[2,8]{1,0} broadcast(%hashed), dimensions={0}
  ROOT %used = u32[2,8]{1,0} xor(%p.1, %keys)
}

%turn (t: (s32[], u32[2,8])) -> (s32[], u32[2,8]) {
  %t = (s32[], u32[2,8]{1,0}) parameter(0)
  %x = u32[2,8]{1,0} get-tuple-element(%t), index=1
  %y = u32[2,8]{1,0} fusion(%x), kind=kLoop, calls=%doubled
  ROOT %both = (s32[], u32[2,8]{1,0}) tuple(%t, %y)
}

ENTRY %main (k.1: u32[2], p.2: u32[2,8]) -> u32[2,8] {
  %k.1 = u32[2]{0} parameter(0)
  %p.2 = u32[2,8]{1,0} parameter(1)
  %f = u32[2,8]{1,0} fusion(%k.1, %p.2), kind=kLoop, calls=%key
  %w = (s32[], u32[2,8]{1,0}) while(%f), body=%turn, x={"known_trip_count":{"n":"3"}}
  ROOT %out = u32[2,8]{1,0} get-tuple-element(%w), index=1
}
"""


def test_evaluations_follow_what_a_fusion_reads():
    # by hand: in `key` 16, and 2 of the key, which leaves the loop over columns;
    # in `doubled` 16 for the sum and 16 for the row that is spread again, three times
    assert Module.of(TEXT).evaluations("xor") == 16 + 2 + 3 * 32
    assert Module.of(TEXT).kernels() == 1 + 3


def test_traced_operations_are_counted_in_loops_and_calls():
    def turn(_: int, x: jax.Array) -> jax.Array:
        return jax.jit(lambda y: y ^ (y >> jnp.uint32(1)))(x)

    made = jax.make_jaxpr(lambda x: jax.lax.fori_loop(0, 5, turn, x))(np.zeros(7, np.uint32))
    assert traced(made.jaxpr, "xor") == 5 * 7


def test_one_program_without_readers_does_its_work_once():
    from fabricarlo.sampling.threefry import threefry2x32

    given = (jnp.arange(64, dtype=jnp.uint32),) * 4
    program = jax.jit(lambda a, b, c, d: threefry2x32((a, b), (c, d))[0])
    work = Work(64, {"words": (program, given)})
    assert work.repeated() <= 1


@pytest.mark.parametrize(("sampler", "most"), [("sobol", 1.3), ("random", 2.0)])
def test_random_numbers_are_not_computed_much_more_often_than_written(sampler: str, most: float):
    """The goals of docs/performance.md."""
    engine = engine_of(RICH, *([] if sampler == "sobol" else [f"sampler={sampler}"]))
    assert Work.of(engine, engine.plan.layout.at(0)).repeated() <= most


@pytest.fixture(scope="module")
def kept(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A sweep with its samples: two programs with two outputs, and one draw that they share."""
    where = tmp_path_factory.mktemp("kept") / "a"
    keep = ["samples=32768", "keep.samples=true"]
    fabricarlo.run(LIGHT, where, overrides=keep, block=2**14, tile=TILE)
    return where


def compiled(samples: int) -> int:
    overrides = [f"samples={samples}", "axes.collective=[ring]"]  # one program
    with compilations() as found:
        fabricarlo.run(LIGHT, overrides=overrides, block=2**14, tile=TILE)
    return len(found)


@pytest.mark.usefixtures("kept")  # compiles what all sweeps share
def test_compilations_of_a_sweep_do_not_grow_with_its_samples():
    few = compiled(2**13)
    assert few > 0
    assert compiled(2**16) == few


def test_a_kept_sample_is_four_bytes_a_variable(kept: Path):
    names = ("allreduce_time", "bus_bandwidth", "link_rate")
    chunks = [p for name in names for p in (kept / "samples" / name / "c").rglob("*")]
    sizes = [p.stat().st_size for p in chunks if p.is_file()]
    assert sum(sizes) == 4 * 32768 * (2 * 2 + 1)


def test_distances_count_ulps_and_what_is_no_number():
    one = np.array([1, 1, 0, np.nan, 2**20], np.float32)
    near = one + np.array([0, 3 * 2**-23, 0, 0, 0], np.float32)
    assert distances(one, near) == {"median": 0, "most": 3, "largest": 3, "beyond": 0}
    lost = one.copy()
    lost[4] = np.nan
    assert distances(one, lost)["beyond"] == pytest.approx(1 / 5)
    # of five, zero and what is no number in both stay equal
    assert distances(one, one * np.float32(1 + 2 * CLOSE))["beyond"] == pytest.approx(3 / 5)
