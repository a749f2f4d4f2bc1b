"""The shipped sweeps through the model, one configuration a cell."""

import itertools
import math
from collections.abc import Iterator
from pathlib import Path

import jax.numpy as jnp
import pytest
from jax import Array

from fabric_kernels import catalogue
from fabric_kernels.model import Model
from fabric_kernels.uniform import Uniform
from fabricarlo.laws import quantile
from fabricarlo.spec import load_spec
from fabricarlo.sweep import Settings, Sweep
from fabricarlo.written.names import declared
from fabricarlo.written.settings import merged

SWEEPS = Path(__file__).resolve().parents[2] / "sweeps"
MEDIAN = Uniform(jnp.asarray([False]), jnp.asarray([0.5], jnp.float32))


def cells(sweep: Sweep) -> Iterator[tuple[tuple[float | str, ...], Settings]]:
    pairs = [list(zip(a.labels, a.settings, strict=True)) for a in sweep.axes]
    for picked in itertools.product(*pairs):
        settings = sweep.settings
        for _, later in picked:
            settings = merged(settings, later)
        yield tuple(label for label, _ in picked), settings


def at_the_medians(sweep: Sweep, settings: Settings) -> dict[str, Array]:
    """Every output where each uniform is 1/2."""
    chosen = {q: settings.choices.get(q, next(iter(a))) for q, a in catalogue.ANSWERS.items()}
    model = Model(*(catalogue.ANSWERS[q][a] for q, a in chosen.items()))
    values = {n: q.default for n, q in declared().items() if q.default is not None}
    values |= settings.values
    given = {n: jnp.asarray([v], jnp.float32) for n, v in values.items() if n in model.owner}
    for draw in sweep.draws:
        numbers = {n: jnp.asarray(v) for n, v in draw.law.prepared().items()}
        drawn, name = quantile(draw.law.signature, numbers, MEDIAN), draw.quantity
        if draw.relation == "is":
            given[name] = drawn
        elif name in given:
            given[name] = given[name] * drawn if draw.relation == "times" else given[name] + drawn
    uniforms = {slot.stream: MEDIAN for slot in model.slots(sweep.outputs, given)}
    return model(given, uniforms, sweep.outputs)


def test_the_seed_document_is_reproduced_and_corrected() -> None:
    sweep = load_spec(SWEEPS / "seed_document.yaml")
    found = {
        labels[0]: float(at_the_medians(sweep, settings)["allreduce_time"][0])
        for labels, settings in cells(sweep)
    }
    ranks, payload, hop = 100_000, 1.8e12 * 2, 1.2e-6
    share = 2 * (ranks - 1) / ranks * payload
    # bytes over bits per second, as it was printed; over bytes per second; with a ring's hops
    printed = share / 800e9 + math.log2(ranks) * hop
    assert round(printed, 5) == 8.99993
    assert found == {
        "seed_document_as_written": pytest.approx(printed, rel=1e-6),
        "seed_document": pytest.approx(share / 100e9 + math.log2(ranks) * hop, rel=1e-6),
        "ring": pytest.approx(share / 100e9 + 2 * (ranks - 1) * hop, rel=1e-6),
    }


def test_the_first_look_is_a_job_that_someone_would_run() -> None:
    sweep = load_spec(SWEEPS / "first_look.yaml")
    assert math.prod(len(axis.labels) for axis in sweep.axes) == 12
    assert (sweep.samples, sweep.keep.samples) == (1_000_000, True)
    for labels, settings in cells(sweep):
        result = {name: float(value[0]) for name, value in at_the_medians(sweep, settings).items()}
        assert all(math.isfinite(value) for value in result.values()), labels
        assert result["step_time_compute"] > 0.6 * result["step_time"]
        assert 0.25 < result["model_flop_utilisation"] < 0.5
        parts = [v for name, v in result.items() if name.startswith("step_time_")]
        assert sum(parts) == pytest.approx(result["step_time"], rel=1e-6)
