"""Presets: every number with its source, no two kinds that meet, complete together."""

import itertools
import re

import pytest

from fabric_kernels import catalogue
from fabric_kernels.model import Model
from fabricarlo.catalog import EVIDENCE, Preset, presets
from fabricarlo.errors import SpecError
from fabricarlo.spec import load_spec
from fabricarlo.written.document import parse
from fabricarlo.written.names import declared
from fabricarlo.written.settings import merged
from tests.tables import reference_table

PRESETS = presets()
KINDS = (
    "calibration", "cooling", "fabric", "gpu", "optics", "rack", "recovery", "site", "supply",
    "workload",
)  # fmt: skip
SHARED = {
    ("calibration", "gpu"): {"ring_rate", "reduction_rate"},
    ("calibration", "rack"): {"ring_rate", "reduction_rate"},
    ("cooling", "supply"): {"air_supply_temperature", "coolant_supply_temperature"},
    ("fabric", "recovery"): {"loss"},
}
"""What two kinds both set, since one builds on the other or takes the place of a part of it."""


def of_kind(kind: str) -> list[Preset]:
    return [p for name, p in PRESETS.items() if name.startswith(f"{kind}/")]


def test_the_promised_presets_exist() -> None:
    rates = (400, 800, 1600)
    coolings = ("air-cooled", "cold-plates", "chilled-plates", "boiling-plates", "air", "two-phase")
    racks = ("h100", "b200", "gb200", "gb300")
    assert set(PRESETS) == {
        *(f"gpu/{n}" for n in ("a100", "h100", "h200", "b200", "gb200-nvl72", "gb300-nvl72")),
        "gpu/mi300x",
        "fabric/roce-400g", "fabric/roce-800g", "fabric/infiniband-ndr", "fabric/infiniband-xdr",
        "fabric/roce-1600g", "fabric/infiniband-ndr-sharp", "fabric/infiniband-xdr-sharp",
        *(f"fabric/roce-{kind}-{rate}g" for kind in ("dcqcn", "dctcp", "pfc", "trimming")
          for rate in rates),
        *(f"cooling/{name}" for name in coolings),
        *(f"cooling/single-phase-{degrees}c" for degrees in (25, 40, 45)),
        *(f"supply/{degrees}c" for degrees in range(15, 55, 5)),
        *(f"rack/{gpu}-{power}kw" for gpu in racks for power in (40, 80, 132)),
        *(f"optics/{kind}-{rate}" for kind in ("dsp", "lpo", "cpo") for rate in ("800g", "1.6t")),
        "optics/cpo-800g-30-percent",
        "site/cold", "site/dallas", "site/desert", "site/tropical",
        "recovery/nccl", "recovery/nccl-timeout-14", "recovery/nccl-single-nak", "recovery/irn",
        "recovery/uec", "recovery/uec-trimming", "recovery/link-retry",
        *(f"calibration/{n}" for n in ("volta", "ampere", "hopper", "blackwell", "cdna3")),
        *(f"calibration/{n}" for n in ("rdma", "efa-1", "efa-2", "tcpx")),
        "workload/dense-70b", "workload/dense-405b", "workload/dense-2t", "workload/mixture-671b",
        "workload/seed-document",
    }  # fmt: skip
    assert {name.partition("/")[0] for name in PRESETS} == set(KINDS)


@pytest.mark.parametrize("name", PRESETS)
def test_every_value_has_a_source_and_a_mark(name: str) -> None:
    preset = PRESETS[name]
    fixed = preset.settings
    assert preset.meaning
    assert set(preset.entries) == {*fixed.values, *fixed.draws, *fixed.choices}
    for entry in preset.entries.values():
        assert entry.source
        assert entry.evidence in EVIDENCE


def test_kinds_of_presets_set_different_things() -> None:
    for pair in itertools.combinations(KINDS, 2):
        first, second = ({n for p in of_kind(kind) for n in p.entries} for kind in pair)
        if pair == ("gpu", "rack"):  # a rack is a number of GPUs
            assert second == first
            continue
        assert first & second == SHARED.get(pair, set()), f"{pair} both set {first & second}"


@pytest.mark.parametrize("kind", ["gpu", "fabric", "optics", "rack", "site", "supply"])
def test_presets_of_a_kind_set_the_same_things(kind: str) -> None:
    # switches that add are there for a collective that has them add; no other fabric chooses one
    adding = {p.name for p in of_kind(kind) if "collective" in p.entries}
    assert adding == {p.name for p in of_kind(kind) if p.name.endswith("-sharp")}
    assert len({frozenset(set(p.entries) - {"collective"}) for p in of_kind(kind)}) == 1


@pytest.mark.parametrize(
    "cooling", ["cooling/air", "cooling/single-phase-40c", "cooling/two-phase"]
)
def test_one_of_each_kind_and_the_gpus_are_a_whole_model(cooling: str) -> None:
    fixed = PRESETS["gpu/b200"].settings
    for name in ("fabric/roce-800g", "workload/dense-405b", cooling):
        fixed = merged(fixed, PRESETS[name].settings)
    chosen = {q: fixed.choices.get(q, next(iter(a))) for q, a in catalogue.ANSWERS.items()}
    model = Model(*(catalogue.ANSWERS[q][a] for q, a in chosen.items()))
    outputs = ["step_time", "rack_power"]
    known = {n: q.default for n, q in declared().items() if q.default is not None} | fixed.values
    assert set(model.needed(outputs)) - set(known) == {"gpus"}


@pytest.mark.parametrize("preset", of_kind("rack"), ids=[p.name for p in of_kind("rack")])
def test_a_rack_is_full_of_its_power(preset: Preset) -> None:
    values = preset.settings.values
    each = values["power_cap"] + values["other_power"]
    named = float(preset.name.rpartition("-")[2].removesuffix("kw")) * 1e3
    # a whole number of GPUs, H100 in whole nodes of eight
    step = 8 * each if "h100" in preset.name else each
    assert abs(values["gpus_per_rack"] * each - named) <= step / 2


GENERATIONS = {
    "a100": ("ampere", 0, 240e9),
    "h100": ("hopper", 1, 370.8e9),
    "h200": ("hopper", 1, 370.8e9),
    "b200": ("blackwell", 1, 721.8e9),
    "gb200-nvl72": ("blackwell", 1, 721.8e9),
    "gb300-nvl72": ("blackwell", 1, 721.8e9),
    "mi300x": ("ampere", 0, 316e9),  # RCCL has no NVLS; latencies as Ampere's
}


@pytest.mark.parametrize("preset", of_kind("gpu"), ids=[p.name for p in of_kind("gpu")])
def test_a_gpu_is_of_its_generation(preset: Preset) -> None:
    generation, reduces, ring_rate = GENERATIONS[preset.label]
    values = preset.settings.values
    flags = declared()["gpu_generation"].flags
    assert flags[int(values["gpu_generation"])] == generation
    assert values["nvlink_reduction"] == reduces
    assert values["ring_rate"] == pytest.approx(ring_rate)


@pytest.mark.parametrize("preset", of_kind("gpu"), ids=[p.name for p in of_kind("gpu")])
def test_the_coolant_flow_is_that_of_the_power(preset: Preset) -> None:
    values = preset.settings.values
    per_kilowatt = values["coolant_flow"] * 60e3 / (values["thermal_design_power"] / 1e3)
    assert per_kilowatt == pytest.approx(1.5)


POWER_ROWS = {
    "gpu/h100": "gpu_power_02",
    "gpu/b200": "gpu_power_04",
    "gpu/gb200-nvl72": "gpu_power_05",
    "gpu/gb300-nvl72": "gpu_power_06",
}


@pytest.mark.parametrize("name", POWER_ROWS)
def test_the_power_is_that_of_the_reference(name: str) -> None:
    rows = {row["id"]: row for row in reference_table("thermal.csv")}
    row, values = rows[POWER_ROWS[name]], PRESETS[name].settings.values
    assert values["power_cap"] == values["thermal_design_power"] == float(row["value"])
    assert PRESETS[name].entries["power_cap"].evidence == row["note"][1]


def test_racks_of_the_reference_come_out() -> None:
    # DGX H100 SuperPOD 40.8 kW; NVL72 132 and 142 kW (thermal.csv rack_13, rack_01, rack_02)
    for name, kilowatts in (("h100", 40.8), ("gb200-nvl72", 132), ("gb300-nvl72", 142)):
        values = PRESETS[f"gpu/{name}"].settings.values
        power = values["gpus_per_rack"] * (values["power_cap"] + values["other_power"])
        assert power == pytest.approx(kilowatts * 1e3, rel=1e-3)


def test_fabrics_of_one_rate_differ_in_what_matters() -> None:
    roce, infiniband = (PRESETS[f"fabric/{n}"].settings for n in ("roce-800g", "infiniband-xdr"))
    assert roce.values["link_rate"] == infiniband.values["link_rate"] == 1e11
    assert (roce.choices["loss"], infiniband.choices["loss"]) == ("go_back_n", "link_retry")


@pytest.mark.parametrize("preset", of_kind("fabric"), ids=[p.name for p in of_kind("fabric")])
def test_a_fabric_has_the_rate_of_its_name(preset: Preset) -> None:
    named = re.search(r"-(\d+)g$", preset.name)
    rate = float(named[1]) if named else {"ndr": 400.0, "xdr": 800.0}[preset.label.split("-")[1]]
    assert preset.settings.values["link_rate"] * 8e-9 == pytest.approx(rate)


@pytest.mark.parametrize("name", ["ndr", "xdr"])
def test_a_fabric_that_adds_is_the_same_fabric_otherwise(name: str) -> None:
    plain, adding = (PRESETS[f"fabric/infiniband-{name}{end}"].settings for end in ("", "-sharp"))
    assert (plain.values["fabric_reduction"], adding.values["fabric_reduction"]) == (0, 1)
    assert adding.values == plain.values | {"fabric_reduction": 1}
    assert adding.choices == plain.choices | {"collective": "sharp"}


def test_fabrics_lose_the_same_on_the_wire() -> None:
    assert len({p.settings.values["packet_loss_rate"] for p in of_kind("fabric")}) == 1


RATES = [
    ("roce-dcqcn-200g", "roce-dcqcn-{}g", (400, 800, 1600)),
    ("roce-trimming-3200g", "roce-trimming-{}g", (400, 800, 1600)),
    ("infiniband-xdr-1600g", "infiniband-xdr", (800,)),
    ("infiniband-ndr-sharp-800g", "infiniband-ndr-sharp", (400,)),
]


@pytest.mark.parametrize(("asked", "kind", "rates"), RATES)
@pytest.mark.parametrize("where", ["base: [{}]", "axes: {{fabric: [{}], gpus: [8]}}"])
def test_a_rate_that_a_fabric_does_not_have_is_refused(
    asked: str, kind: str, rates: tuple[int, ...], where: str
) -> None:
    text = "schema_version: 1\nsweep: a\nseed: 1\nsamples: 64\noutputs: [step_time]\n"
    allowed = ", ".join(f"fabric/{kind.format(rate)} ({rate} Gbit/s)" for rate in rates)
    with pytest.raises(SpecError, match=re.escape(f"no other rate than those of {allowed}.")):
        load_spec(text + where.format(f"fabric/{asked}"))


def test_every_choice_of_an_axis_of_coolings_composes() -> None:
    text = """
schema_version: 1
sweep: all
seed: 1
samples: 64
base: [gpu/h100, workload/dense-70b]
axes:
  fabric: [fabric/roce-400g, fabric/roce-800g, fabric/infiniband-ndr, fabric/infiniband-xdr]
  cooling: [cooling/air, cooling/single-phase-25c, cooling/single-phase-40c]
  gpus: [1024]
outputs: [step_time]
"""
    sweep = load_spec(text)
    assert sweep.axes[1].labels == ("air", "single-phase-25c", "single-phase-40c")
    assert sweep.axes[0].structural
    assert sweep.axes[1].structural


BROKEN = [
    ("x: {meaning: m, set: {link_rate: 3}}", "needs value, source and evidence"),
    ("x: {set: {link_rate: {value: 1, source: s, evidence: Z}}}", "'Z' is no mark; known: M"),
    ("x: {set: {link_rat: {value: 1, source: s, evidence: M}}}", "Did you mean link_rate?"),
    ("x: {base: [kind/y]}", "'kind/y' is not a preset read before this"),
    ("x: {sets: {}}", "'sets' is not a key. Known: meaning, base, set, draws. Did you mean set?"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_preset_without_its_source_is_refused(text: str, message: str) -> None:
    from fabricarlo.catalog import _preset

    document = parse(text, "presets/kind.yaml")
    preset = _preset(document, "kind", "x", declared(), {})
    assert preset.name == "kind/x"
    with pytest.raises(SpecError, match=re.escape(message)):
        document.stop_if_refused()
