"""The dense workload: its split, its work, its refusals."""

import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fabric_kernels.catalogue import REFUSALS
from fabric_kernels.inputs import Job, ScaleUp
from fabric_kernels.workload.dense import dense, dense_refusal
from tests.answers import answer, record_of
from tests.reference import step

LLAMA = {
    "gpus": 16384,
    "parameters": 405e9,
    "tensor_parallel": 8,
    "pipeline_parallel": 16,
    "microbatches": 16,
    "microbatch_size": 1,
    "sequence_length": 8192,
    "interleave": 1,
    "gradient_element_size": 4,
    "compute_efficiency": 0.5,
    "peak_flops": 989e12,
    "thermal_design_power": 700,
    "power_cap": 700,
}


def refusal(**changes: float) -> str | None:
    given_ = {"nvlink_domain": 8.0, "nvlink_rate": 1e11, **LLAMA, **changes}
    job, scale_up = (record_of(kind, given_, np.float32) for kind in (Job, ScaleUp))
    return dense_refusal(job, scale_up)


def test_agrees_with_the_plain_reference():
    found = answer("workload", "dense", LLAMA)
    assert found["data_parallel"] == step.data_parallel(LLAMA) == 128
    assert found["concurrent_groups"] == 128
    assert found["payload"] == pytest.approx(step.payload(LLAMA), rel=1e-12)
    assert found["tokens_per_step"] == step.tokens(LLAMA) == 128 * 16 * 8192
    assert found["full_clock_compute_time"] == pytest.approx(
        step.full_clock_compute(LLAMA), rel=1e-12
    )
    assert found["bubble_share"] == pytest.approx(15 / 16, rel=1e-12)


def test_no_pipeline_no_bubble():
    assert answer("workload", "dense", LLAMA | {"pipeline_parallel": 1})["bubble_share"] == 0


@given(st.integers(1, 2**20), st.sampled_from([1, 2, 3, 8, 24, 72]), st.sampled_from([1, 5, 16]))
def test_a_split_is_whole_or_there_is_none(gpus: int, tensor: int, pipeline: int):
    split = {"gpus": gpus, "tensor_parallel": tensor, "pipeline_parallel": pipeline}
    found = answer("workload", "dense", LLAMA | split, dtype=np.float32)
    if gpus % (tensor * pipeline) == 0:
        assert found["data_parallel"] == gpus // (tensor * pipeline)
        assert np.isfinite(found["full_clock_compute_time"])
    else:
        assert np.isnan(found["data_parallel"])
        assert np.isnan(found["full_clock_compute_time"])


def test_compute_time_is_that_of_all_work_on_all_gpus():
    """t0 does not depend on how the GPUs are split, as long as the tokens are the same."""
    one = answer("workload", "dense", LLAMA)
    halved = {"pipeline_parallel": 8, "microbatches": 8}
    other = answer("workload", "dense", LLAMA | halved)
    assert one["tokens_per_step"] == other["tokens_per_step"]
    assert one["full_clock_compute_time"] == pytest.approx(
        other["full_clock_compute_time"], rel=1e-12
    )


def test_refusals_say_what_fits():
    assert refusal() is None
    uneven = refusal(gpus=16400)
    assert uneven is not None
    assert "gpus is 16400" in uneven
    assert "set gpus to 16384 or 16512" in uneven
    few = refusal(gpus=64)
    assert few is not None
    assert few.endswith("set gpus to 128.")
    wide = refusal(nvlink_domain=4.0)
    assert wide is not None
    assert "tensor_parallel is 8" in wide
    assert "4 or less" in wide


def test_the_refusal_belongs_to_its_answer():
    assert REFUSALS[dense] is dense_refusal


def test_runs_on_lanes_of_any_rank():
    lanes = {name: np.full((2, 3), value) for name, value in LLAMA.items()}
    found = answer("workload", "dense", lanes | {"gpus": [[16384, 32768, 1000]]})
    assert found["data_parallel"].shape == (2, 3)
    assert jnp.isnan(found["data_parallel"][:, 2]).all()
