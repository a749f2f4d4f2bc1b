"""The slow references against the tables and against closed forms: they are right on their own."""

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy.stats import qmc

from tests.agreement import assert_mean, assert_within_errors
from tests.kernels.thermal_cases import SOME
from tests.reference import (
    event_hierarchical,
    event_ring,
    order_statistics,
    packet_loss,
    step,
    thermal,
    thermal_points,
)
from tests.reference import random_words as words
from tests.tables import reference_table

MIXTURE = {"eps": 0.001, "mu": 0.0, "sigma": 0.25, "shift": 3.0, "scale": 10.0}


def parsed(text: str) -> dict[str, float]:
    return {name: float(value) for name, value in (part.split("=") for part in text.split(";"))}


def test_quantiles_of_the_largest_are_those_of_the_table() -> None:
    two_groups = ({"mu": 0.0, "sigma": 0.25}, {"mu": 0.2, "sigma": 0.25})
    for row in reference_table("maxn_quantiles.csv"):
        count, probability = int(row["N"]), row["q"]
        if row["law"] == "mixture":
            value = order_statistics.largest_spiked_quantile(MIXTURE, count, probability)
        elif row["law"] == "two_groups":
            value = order_statistics.two_group_quantile((1014, 10), two_groups, probability)
        else:
            law = parsed(row["params"])
            value = order_statistics.largest_quantile(row["law"], law, count, probability)
        # both are correctly rounded from 40 digits, up to the last printed digit
        assert value == pytest.approx(float(row["value"]), rel=1e-15, abs=1e-30), row


def test_moments_of_the_largest_are_those_of_the_table() -> None:
    for row in reference_table("maxn_moments.csv")[::4]:  # every law, every N
        law = parsed(row["params"])
        mean, deviation = order_statistics.largest_moments(row["law"], law, int(row["N"]))
        # the table has 10 significant digits
        assert mean == pytest.approx(float(row["mean"]), rel=1e-9, abs=1e-9), row
        assert deviation == pytest.approx(float(row["sd"]), rel=1e-9), row


def test_moments_of_a_single_spiked_hop_are_closed_form() -> None:
    mean, deviation = order_statistics.spiked_moments(MIXTURE, 1)
    body, spike = math.exp(0.25**2 / 2), 13.0
    assert mean == pytest.approx(0.999 * body + 0.001 * spike, rel=1e-8)
    second = 0.999 * math.exp(2 * 0.25**2) + 0.001 * (spike**2 + 10.0**2)
    assert deviation == pytest.approx(math.sqrt(second - mean**2), rel=1e-8)


@pytest.mark.parametrize("count", [4, 16])
def test_ring_recursion_has_the_mean_of_the_table(count: int) -> None:
    steps = 2 * (count - 1)
    generator = np.random.default_rng(20)
    noise = generator.exponential(size=(4000, steps, count))
    finish = event_ring.ring_finish(noise)
    rows = {
        row["stat"]: row
        for row in reference_table("ring_maxplus.csv")
        if row["N"] == str(count) and row["law"] == "exp"
    }
    spread = float(finish.std() / math.sqrt(finish.size))
    table = rows["mean"]
    assert_within_errors(
        float(finish.mean()), float(table["value"]), (spread, float(table["stderr"]))
    )
    # a barrier after every step is another model and must not pass for the ring
    barrier = float(event_ring.barrier_finish(noise).mean())
    with pytest.raises(AssertionError):
        assert_within_errors(barrier, float(table["value"]), (spread, float(table["stderr"])))


def test_barrier_step_waits_for_the_mean_of_the_largest() -> None:
    noise = np.random.default_rng(21).exponential(size=(2000, 6, 8))
    mean, deviation = order_statistics.largest_moments("exp", {"scale": 1.0}, 8)
    assert_mean(event_ring.barrier_finish(noise), 6 * mean, math.sqrt(6) * deviation)


def test_single_port_ring_takes_every_step_in_turn() -> None:
    cluster = event_ring.Cluster(5, 1, 1.0, 50e9, 0.0, 3e-6)
    run = event_ring.all_reduce(cluster, 1e9, 1)
    assert run.finish == pytest.approx(8 * (3e-6 + 1e9 / 5 / 50e9), rel=1e-12)
    assert run.fabric_messages == 8 * 5


def test_hierarchical_run_adds_its_stages() -> None:
    cluster = event_ring.Cluster(12, 4, 450e9, 50e9, 1e-6, 5e-6)
    run = event_hierarchical.all_reduce(cluster, 1e9)
    inside, across = 1e-6 + 1e9 / 4 / 450e9, 5e-6 + 1e9 / 12 / 50e9
    assert run.finish == pytest.approx(2 * 3 * inside + 2 * 2 * across, rel=1e-12)
    assert run.fabric_messages == 2 * 2 * 12


def test_go_back_n_repeats_after_a_round_trip_and_two_packets() -> None:
    assert [packet_loss.one_loss(50, 10, 400, packet) for packet in (0, 20, 48)] == [12, 12, 12]
    assert packet_loss.one_loss(50, 10, 400, 49) == 400
    pair = packet_loss.go_back_n(50, 10, 400, lambda j, n: (j, n) in {(20, 0), (21, 0)})
    assert pair == 50 + 10 + 12 + 1  # the request itself went missing with the second packet


def test_go_back_n_has_the_mean_of_the_table() -> None:
    generator = np.random.default_rng(22)
    runs = [packet_loss.sampled_go_back_n(1000, 62, 2000, 1e-2, generator)[0] for _ in range(300)]
    [row] = [
        row
        for row in reference_table("loss_stall.csv")
        if row["scheme"] == "gbn_renak"
        and row["params"] == "M=1000;R=62;W=64;T0=2000;p=0.01"
        and row["stat"] == "mean"
    ]
    spread = float(np.std(runs) / math.sqrt(len(runs)))
    assert_within_errors(float(np.mean(runs)), float(row["value"]), (spread, float(row["stderr"])))


@pytest.mark.parametrize(("points", "span", "mean"), [(2, 2.0, 19 / 12), (2, 1.0, 4 / 3)])
def test_two_stalls_follow_each_other_as_often_as_the_geometry_says(
    points: int, span: float, mean: float
) -> None:
    lengths = packet_loss.chain_lengths(points, span, 40_000, np.random.default_rng(23))
    assert_mean(lengths, mean, math.sqrt((mean - 1) * (2 - mean)))


@pytest.mark.parametrize("expected", [1.0, 10.0, 100.0])
def test_ring_of_stalls_has_the_mean_of_the_table(expected: float) -> None:
    generator = np.random.default_rng(24)
    stalls = packet_loss.ring_stalls(64, expected, 2000, generator, repeated=False)
    [row] = [
        row
        for row in reference_table("collective_stall.csv")
        if row["case"] == "ring_stalls_no_barrier"
        and row["params"] == f"N=64;expected_stalls={expected:g}"
    ]
    spread = float(stalls.std() / math.sqrt(stalls.size))
    assert_within_errors(float(stalls.mean()), float(row["value"]), (spread, float(row["stderr"])))


def worked_case(model: str, given: dict[str, Any]) -> tuple[thermal.Chip, thermal.Medium]:
    if model == "gpu_fixed_point_raw":
        return thermal.Chip(
            given["P0_W"], given["L0_W"], given["D_W"], given["P_cap_W"], given["T_lim_C"],
            given["T_shut_C"], given["T0_C"], given["beta"], clock_floor=given["phi_min"],
        ), thermal.Medium(given["T_in_C"], given["R_ji_K_per_W"])  # fmt: skip
    part = thermal.chip(given["tdp_W"], given["P_cap_W"])
    if model == "air_rack":
        return part, thermal.air(
            thermal.Air(given["T_supply_C"], given["n_gpu"], given["P_other_W"])
        )
    part = thermal.replace(part, dynamic=part.dynamic * given["activity"])
    if "V_lpm" not in given:
        return part, thermal.Medium(given["T_in_C"], given["R_ji_K_per_W"])
    plate = thermal.Plate(given["T_in_C"], given["V_lpm"] / 6e4, given["R_pkg"], given["R_tim"])
    return part, thermal.single_phase(plate)


def test_governed_points_are_those_of_the_worked_cases() -> None:
    checked = 0
    for row in reference_table("thermal_cases.csv"):
        if row["model"] not in ("gpu_fixed_point", "gpu_fixed_point_raw", "air_rack"):
            continue
        expected = json.loads(row["expected_json"])
        point = thermal.governed(*worked_case(row["model"], json.loads(row["params_json"])))
        assert point.status == expected["status"].lower(), row
        assert point.clock == pytest.approx(expected["phi"], rel=1e-9), row
        if expected["T_j_C"] is not None:
            assert point.temperature == pytest.approx(expected["T_j_C"], rel=1e-9), row
            assert point.power == pytest.approx(expected["P_W"], rel=1e-9), row
        checked += 1
    assert checked >= 19


def test_many_points_are_those_of_single_ones() -> None:
    chip, limits, medium = SOME
    found = thermal_points.governed(thermal_points.Gpus(*chip, *limits, *medium))
    for lane in range(0, len(found.clock), 3):
        c, held = [x[lane] for x in chip], [x[lane] for x in limits]
        part = thermal.Chip(
            c[0], c[1], c[4], held[0], held[1], held[2], c[2], c[3], c[5], c[6], c[7]
        )
        truth = thermal.governed(part, thermal.Medium(medium[0][lane], medium[1][lane]))
        assert found.status[lane] == truth.status
        assert found.clock[lane] == pytest.approx(truth.clock, abs=1e-14)
        if truth.status not in ("runaway", "trip"):
            assert found.temperature[lane] == pytest.approx(truth.temperature, abs=1e-10)


def test_population_is_solved_like_its_parts() -> None:
    part, plate = thermal.chip(1400, 1400), thermal.Plate(45, 2.1 / 6e4)
    scores = np.random.default_rng(25).standard_normal((40, 5))
    together = thermal.clocks(part, plate, thermal.Spreads(), scores)
    for row, clock in zip(scores, together, strict=True):
        made = thermal.part_of(part, plate, thermal.Spreads(), row)
        assert clock == pytest.approx(thermal.governed(*made).clock, abs=1e-11)


def test_slowest_of_72_is_that_of_the_worked_cases() -> None:
    generator = np.random.default_rng(27)
    rows = [r for r in reference_table("thermal_cases.csv") if r["model"] == "slowest_of_N"]
    liquid = [row for row in rows if "air" not in row["params_json"]]
    assert len(liquid) == 3
    for row in liquid:
        given, stated = json.loads(row["params_json"]), json.loads(row["expected_json"])["phi_N72"]
        plate = thermal.Plate(given["T_in"], given["V"] / 6e4)
        scores = generator.standard_normal((120, 72, 5))
        part = thermal.chip(given["tdp_W"], given["tdp_W"])
        clocks = thermal.slowest_clocks(part, plate, thermal.Spreads(), scores)
        error = 4.89 * float(clocks.std()) / math.sqrt(clocks.size)
        # the stated clock is series-FORM: up to 0.7 % optimistic against brute force
        assert -error < stated - clocks.mean() < 0.007 * stated + error, row


def test_threefry_gives_the_known_answers_of_random123() -> None:
    ones = 2**32 - 1
    assert words.threefry((0, 0), (0, 0)) == (0x6B200159, 0x99BA4EFE)
    assert words.threefry((ones, ones), (ones, ones)) == (0x1CB996FC, 0xBB002BE7)
    pi = words.threefry((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3))
    assert pi == (0xC4923A9C, 0x483DF7A0)


@pytest.mark.parametrize("dimension", [0, 1, 17, 63])
def test_sobol_words_are_those_of_scipy_in_another_order(dimension: int) -> None:
    theirs = qmc.Sobol(dimension + 1, scramble=False, bits=32).random(128)[:, dimension]
    ours = [words.sobol(i ^ i >> 1, dimension) for i in range(128)]  # SciPy counts in Gray code
    assert ours == [int(point * 2**32) for point in theirs]


def test_only_a_nested_scramble_is_taken_for_one() -> None:
    before = [words.sobol(i, 5) for i in range(64)]
    after = words.nested_scramble(before, np.random.default_rng(26))
    words.tree_flips(before, after)
    assert sorted(word >> 26 for word in after) == list(range(64))  # still one point a stratum
    multiplied = [word * 2_654_435_761 % 2**32 for word in before]
    with pytest.raises(ValueError, match="flips both ways"):
        words.tree_flips(before, multiplied)


CLUSTER = {
    "gpus": 1024.0, "tensor_parallel": 8.0, "pipeline_parallel": 4.0, "nvlink_domain": 8.0,
    "parameters": 1e12, "gradient_element_size": 2.0, "microbatches": 16.0, "microbatch_size": 1.0,
    "sequence_length": 8192.0, "interleave": 1.0, "compute_efficiency": 0.5, "peak_flops": 1e15,
    "compute_bound_share": 0.85, "nvlink_rate": 9e11, "nvlink_latency": 1e-6, "link_rate": 5e10,
    "payload_fraction": 1.0, "routing_efficiency": 1.0, "oversubscription": 1.0,
    "switch_latency": 3e-7, "adapter_latency": 1.5e-6, "error_correction_latency": 1.2e-7,
    "cable_length": 30.0, "switch_radix": 64.0,
}  # fmt: skip


def test_step_worked_by_hand() -> None:
    made = step.step(CLUSTER, step.Effects(slowest_clock_fraction=0.8), step.Overlap())
    # 32 ranks, one a domain, exchange 62.5 GB over 50 GB/s: 2 x 31/32 x 1.25 s
    assert made["step_time_bandwidth"] == pytest.approx(2 * 31 / 32 * 1.25)
    # 32 x 16 x 8192 tokens, 6e12 flops each, on 1024 GPUs at half of 1e15
    compute = 6e12 * 32 * 16 * 8192 / (1024 * 0.5e15)
    assert made["step_time_compute"] == pytest.approx(compute)
    # two tiers of 64 ports reach 2048: 4 links, 3 switches
    hop = 1.5e-6 + 4 * (30 * 4.9e-9 + 1.2e-7) + 3 * 3e-7
    assert made["step_time_latency"] == pytest.approx(62 * hop, rel=1e-6)
    assert made["compute_time"] == pytest.approx(compute * (0.15 + 0.85 / 0.8))
    assert made["bubble"] == pytest.approx(3 / 16 * made["compute_time"])


def test_window_hides_all_but_the_last_bucket() -> None:
    full = step.step(CLUSTER, step.Effects(), step.Overlap())["allreduce_time"]
    for window, exposed in [(0.0, full), (full / 2, full / 2), (2 * full, full / 4)]:
        made = step.step(CLUSTER, step.Effects(), step.Overlap(window, 4))
        # four calls pay the latency four times: 0.1 % here
        assert made["exposed_communication_time"] == pytest.approx(exposed, rel=2e-3)
        assert sum(made[f"step_time_{part}"] for part in step.PARTS) == pytest.approx(
            made["step_time"], rel=1e-14
        )
