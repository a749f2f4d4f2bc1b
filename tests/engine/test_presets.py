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
KINDS = ("gpu", "fabric", "cooling", "workload")


def of_kind(kind: str) -> list[Preset]:
    return [p for name, p in PRESETS.items() if name.startswith(f"{kind}/")]


def test_the_promised_presets_exist() -> None:
    assert set(PRESETS) == {
        "gpu/h100", "gpu/b200", "gpu/gb200-nvl72", "gpu/gb300-nvl72",
        "fabric/roce-400g", "fabric/roce-800g", "fabric/infiniband-ndr", "fabric/infiniband-xdr",
        *(f"fabric/roce-{kind}-{rate}g" for kind in ("dcqcn", "dctcp", "pfc", "trimming")
          for rate in (400, 800, 1600)),
        "cooling/air", "cooling/single-phase-25c", "cooling/single-phase-40c",
        "cooling/single-phase-45c",
        "workload/dense-70b", "workload/dense-405b", "workload/dense-2t", "workload/seed-document",
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
    for first, second in itertools.combinations(KINDS, 2):
        ours = {n for p in of_kind(first) for n in p.entries}
        theirs = {n for p in of_kind(second) for n in p.entries}
        assert not ours & theirs, f"{first} and {second} both set {ours & theirs}"


@pytest.mark.parametrize("kind", ["gpu", "fabric"])
def test_presets_of_a_kind_set_the_same_things(kind: str) -> None:
    assert len({frozenset(p.entries) for p in of_kind(kind)}) == 1


@pytest.mark.parametrize("cooling", ["cooling/air", "cooling/single-phase-40c"])
def test_one_of_each_kind_and_the_gpus_are_a_whole_model(cooling: str) -> None:
    fixed = PRESETS["gpu/b200"].settings
    for name in ("fabric/roce-800g", "workload/dense-405b", cooling):
        fixed = merged(fixed, PRESETS[name].settings)
    chosen = {q: fixed.choices.get(q, next(iter(a))) for q, a in catalogue.ANSWERS.items()}
    model = Model(*(catalogue.ANSWERS[q][a] for q, a in chosen.items()))
    outputs = ["step_time", "rack_power"]
    known = {n: q.default for n, q in declared().items() if q.default is not None} | fixed.values
    assert set(model.needed(outputs)) - set(known) == {"gpus"}


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
    ("x: {sets: {}}", "'sets' is not a key. Known: meaning, set, draws. Did you mean set?"),
]


@pytest.mark.parametrize(("text", "message"), BROKEN)
def test_a_preset_without_its_source_is_refused(text: str, message: str) -> None:
    from fabricarlo.catalog import _preset

    document = parse(text, "presets/kind.yaml")
    preset = _preset(document, "kind", "x", declared())
    assert preset.name == "kind/x"
    with pytest.raises(SpecError, match=re.escape(message)):
        document.stop_if_refused()
