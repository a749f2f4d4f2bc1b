"""Specs that are right, and what becomes of them."""

import json
import math
from pathlib import Path
from statistics import NormalDist

import pytest

from fabricarlo.errors import SpecError
from fabricarlo.laws import make
from fabricarlo.spec import load_spec, resolved
from fabricarlo.sweep import Draw

HEAD = """\
schema_version: 1
sweep: small
seed: 7
samples: 1_000_000
outputs: [step_time, allreduce_time]
"""

FULL = """\
schema_version: 1
sweep: full
description: a question
seed: 0x10
samples: 1e6
sampler: random
replicates: 4
base: [gpu/h100, gpu/b200, workload/dense-2t]
set:
  link_rate: 800 Gbit/s
  cable_length: 40  # in its own unit
  collective: ring
  hop_latency: 2 us  # computed otherwise
axes:
  gpus: [65536, 131_072]
  cooling: [cooling/air, cooling/single-phase-45c]
  loss: [go_back_n, link_retry]
  adapter_latency: [600 ns, 1.5 us]
draws:
  switch_latency: {lognormal: {median: 600 ns, p99: 1.5 us}}
  packet_loss_rate: {loguniform: {low: 1e-9, high: 1e-5}}
  air_supply_temperature: {plus: {normal: {mean: 0 K, deviation: 1 K}}}
  activity: {times: {uniform: {low: 90 %, high: 1.0}}}
copula:
  - {draws: [switch_latency, packet_loss_rate], correlation: 0.5}
  - draws: [activity, air_supply_temperature]
    correlation: [[1, -0.25], [-0.25, 1]]
independent: [gpus]
design: sensitivity
steps: 1
outputs: [step_time, gpu_power]
keep: {samples: {every: 10}, quantiles: [0.5, 0.999], codec: blosc-zstd, mantissa_bits: 13}
"""


def test_a_short_spec_has_the_documented_defaults() -> None:
    sweep = load_spec(HEAD)
    assert (sweep.name, sweep.seed, sweep.samples) == ("small", 7, 1_000_000)
    assert (sweep.sampler, sweep.replicates, sweep.steps, sweep.design) == ("sobol", 8, 1, None)
    assert sweep.outputs == ("step_time", "allreduce_time")
    assert sweep.keep.quantiles == (0.01, 0.5, 0.9, 0.99, 0.999)
    assert not sweep.keep.samples
    assert (sweep.axes, sweep.draws, sweep.copulas) == ((), (), ())
    # defaults of quantities stay with their declaration
    assert sweep.settings.values == {}


def test_a_full_spec_is_read_in_si() -> None:
    sweep = load_spec(FULL)
    fixed = sweep.settings
    assert (sweep.seed, sweep.samples, sweep.replicates) == (16, 1_000_000, 4)
    assert fixed.values["link_rate"] == 1e11
    assert fixed.values["cable_length"] == 40
    assert fixed.values["hop_latency"] == 2e-6
    assert fixed.values["power_cap"] == 1000  # the later preset wins
    assert fixed.choices == {"collective": "ring"}
    assert [d.quantity for d in sweep.draws] == [
        "switch_latency",
        "packet_loss_rate",
        "air_supply_temperature",
        "activity",
    ]
    assert sweep.draws[0].law == make("lognormal", {"median": 6e-7, "p99": 1.5e-6})
    assert sweep.draws[3] == Draw("activity", make("uniform", {"low": 0.9, "high": 1.0}), "times")
    assert sweep.copulas[0].correlation == ((1.0, 0.5), (0.5, 1.0))
    assert sweep.copulas[1].quantities == ("activity", "air_supply_temperature")
    assert (sweep.keep.samples, sweep.keep.every) == (True, 10)
    assert (sweep.keep.codec, sweep.keep.mantissa_bits) == ("blosc-zstd", 13)


def test_axes_are_numbers_presets_or_answers() -> None:
    gpus, cooling, loss, adapter = load_spec(FULL).axes
    assert (gpus.labels, gpus.unit, gpus.structural) == ((65536.0, 131072.0), "1", False)
    assert gpus.settings[1].values == {"gpus": 131072.0}
    assert (cooling.labels, cooling.unit) == (("air", "single-phase-45c"), None)
    assert cooling.structural
    assert cooling.settings[1].choices["cooling"] == "single_phase"
    assert cooling.settings[1].values["coolant_supply_temperature"] == 45.0
    assert loss.labels == ("go_back_n", "link_retry")
    assert loss.settings[0].choices == {"loss": "go_back_n"}
    assert (adapter.labels, adapter.unit) == ((6e-7, 1.5e-6), "s")


def test_numbers_are_those_of_yaml_1_2() -> None:
    text = HEAD + "set: {parameters: 8e11, packet_loss_rate: 1e-7, gpus: 1_000, cable_length: 0x10}"
    values = load_spec(text).settings.values
    assert values == {
        "parameters": 8e11,
        "packet_loss_rate": 1e-7,
        "gpus": 1000.0,
        "cable_length": 16.0,
    }


def test_no_is_a_text() -> None:
    sweep = load_spec(HEAD.replace("small", "no") + "description: no\n")
    assert (sweep.name, sweep.description) == ("no", "no")


def test_empty_blocks_are_as_good_as_none() -> None:
    assert load_spec(HEAD + "set:\naxes:\ndraws:\nbase:\nkeep:\n").keep == load_spec(HEAD).keep


def test_a_file_and_its_text_give_the_same_sweep(tmp_path: Path) -> None:
    path = tmp_path / "full.yaml"
    path.write_text("\ufeff" + FULL, encoding="utf-8")
    sweep = load_spec(path)
    assert sweep.path == str(path)
    assert resolved(sweep) == resolved(load_spec(str(path))) == resolved(load_spec(FULL))


P99 = "draws.switch_latency.lognormal.p99"
SIGMA = math.log(3e-6 / 6e-7) / NormalDist().inv_cdf(0.99)
OVERRIDES = [
    ("link_rate=400 Gbit/s", lambda s: s.settings.values["link_rate"], 5e10),
    ("set.link_rate='400 Gbit/s'", lambda s: s.settings.values["link_rate"], 5e10),
    ("power_cap=500 W", lambda s: s.settings.values["power_cap"], 500.0),
    ("samples=1000", lambda s: s.samples, 1000),
    ("sampler=sobol", lambda s: s.sampler, "sobol"),
    ("path=fat_tree", lambda s: s.settings.choices["path"], "fat_tree"),
    ("keep.samples=false", lambda s: s.keep.samples, False),
    ("axes.gpus=[1024, 2048]", lambda s: s.axes[0].labels, (1024.0, 2048.0)),
    (f"{P99}=3 us", lambda s: s.draws[0].law["sigma"], pytest.approx(SIGMA)),
    ("draws.cable_length={constant: 3}", lambda s: s.draws[-1].quantity, "cable_length"),
]


@pytest.mark.parametrize(("override", "read", "value"), OVERRIDES, ids=[o[0] for o in OVERRIDES])
def test_an_override_replaces_one_key(override: str, read, value: object) -> None:
    sweep = load_spec(FULL, [override])
    assert read(sweep) == value
    assert resolved(sweep) != resolved(load_spec(FULL)) or override.startswith("samples")


def test_the_last_override_of_a_key_counts() -> None:
    sweep = load_spec(FULL, ["cable_length=1 m", "cable_length=2 m"])
    assert sweep.settings.values["cable_length"] == 2


def test_the_text_is_kept_as_written() -> None:
    assert load_spec(FULL, ["samples=8"]).text == FULL


NOISE = [
    ("description: a question", "description: another"),
    ("samples: 1e6", "samples: 64"),
    ("link_rate: 800 Gbit/s", "link_rate: 100 GB/s   # the same"),
    ("cable_length: 40  # in its own unit", "cable_length: 40 m"),
    ("  collective: ring\n  hop_latency: 2 us", "  hop_latency: 2 us\n  collective: ring"),
    ("{low: 1e-9, high: 1e-5}", "{high: 1.0e-5, low: 0.000000001}"),
]  # fmt: skip
SIGNAL = [
    ("seed: 0x10", "seed: 17"),
    ("800 Gbit/s", "801 Gbit/s"),
    ("p99: 1.5 us", "p99: 1.6 us"),
    ("collective: ring", "collective: hierarchical"),
    ("correlation: 0.5", "correlation: 0.4"),
    ("[65536, 131_072]", "[131_072, 65536]"),
    ("every: 10", "every: 20"),
    ("outputs: [step_time, gpu_power]", "outputs: [gpu_power, step_time]"),
]


@pytest.mark.parametrize(("old", "new"), NOISE)
def test_what_changes_no_number_is_not_in_the_resolved_content(old: str, new: str) -> None:
    assert old in FULL
    assert resolved(load_spec(FULL.replace(old, new))) == resolved(load_spec(FULL))


@pytest.mark.parametrize(("old", "new"), SIGNAL)
def test_what_changes_a_number_is_in_the_resolved_content(old: str, new: str) -> None:
    assert old in FULL
    assert resolved(load_spec(FULL.replace(old, new))) != resolved(load_spec(FULL))


def test_resolved_content_is_json_also_with_an_open_end() -> None:
    law = "draws: {cable_length: {truncated_normal: {mean: 30 m, deviation: 5 m, low: 3 m}}}"
    content = resolved(load_spec(HEAD + law))
    assert content == json.loads(json.dumps(content, allow_nan=False))
    assert content["draws"][0]["law"]["high"] == "inf"


def test_a_quantile_table_may_be_a_csv_beside_the_spec(tmp_path: Path) -> None:
    (tmp_path / "latency.csv").write_text("probability,value\n0,500 ns\n0.5,6e-7\n1,2 us\n")
    path = tmp_path / "spec.yaml"
    path.write_text(HEAD + "draws: {switch_latency: {empirical: {csv: latency.csv}}}\n")
    law = load_spec(path).draws[0].law
    assert (law["probabilities"], law["values"]) == ((0.0, 0.5, 1.0), (5e-7, 6e-7, 2e-6))


def test_a_spread_of_a_temperature_is_in_kelvin() -> None:
    text = "draws: {air_supply_temperature: {normal: {mean: 25 degC, deviation: 1 K}}}"
    assert load_spec(HEAD + text).draws[0].law["deviation"] == 1.0
    with pytest.raises(SpecError, match="is a temperature"):
        load_spec(HEAD + text.replace("1 K", "1 degC"))
