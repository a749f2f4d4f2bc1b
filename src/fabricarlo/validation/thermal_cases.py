"""Worked cases of heat, power and the building: every expected number beside the product's own."""

import inspect
from collections.abc import Callable, Mapping
from typing import Any

import jax

from fabricarlo.validation import thermal_building as building
from fabricarlo.validation import thermal_changes as changes
from fabricarlo.validation import thermal_points as points
from fabricarlo.validation.report import Criterion, Report, Row, Table
from fabricarlo.validation.table import named

KIND = "heat, power and building"
COLUMNS = frozenset(
    {"case_id", "model", "description", "params_json", "expected_json", "tolerance", "note"}
)

RELATIVE = 1e-6
LOOSER = {
    "pump_loss_two_node": 1e-4,
    "pue_annual": 1e-4,
    "slowest_of_N": 1e-3,
}
"""Relative deviations that are allowed, where not `RELATIVE`."""

FOLD_KELVIN = 0.05  # at runaway the temperature is a double root
SMALLEST = 1e-9  # absolute, for numbers that are 0 or nearly so

_LAW = set(points.GPU)
_CASES: dict[str, tuple[Callable[..., points.Found], set[str]]] = {
    "gpu_fixed_point": (
        points.gpu_fixed_point,
        _LAW | set(points.PLATE) | {"cooling", "R_ji_K_per_W"},
    ),
    "gpu_fixed_point_raw": (
        points.gpu_fixed_point_raw,
        _LAW | {"D_W", "L0_W", "P0_W", "R_ji_K_per_W", "T_in_C"},
    ),
    "gpu_two_phase": (
        points.gpu_two_phase,
        _LAW
        | {"R_pkg", "R_tim", "R_boil", "T_sat_C", "cp_l", "dT_sub_K", "h_fg_J_kg", "mdot_kg_s"}
        | {"x_crit", "P_chf_W"},
    ),
    "gpu_hbm_limit": (
        points.gpu_hbm_limit,
        _LAW | set(points.PLATE) | {"P_hbm_W", "R_hg", "R_hh", "T_hbm_lim_C"},
    ),
    "air_rack": (points.air_rack, _LAW | set(points.AIR) | {"n_gpu", "P_other_W"}),
    "gpu_power": (points.gpu_power, _LAW | {"D_W", "L0_W", "P0_W", "T_C", "phi"}),
    "diurnal": (points.diurnal, _LAW | {"R_ji_K_per_W", "T_in_hi", "T_in_lo"}),
    "pump_loss_two_node": (
        changes.pump_loss_two_node,
        _LAW | {"C1_J_K", "C2_J_K", "G_par", "P_W", "R12", "R_ji", "T_in_C", "phi"},
    ),
    "duty_cycle_two_node": (
        changes.duty_cycle_two_node,
        {"C1_J_K", "C2_J_K", "P_hi", "P_lo", "R12", "R_ji", "T_in_C", "duty", "period_s"},
    ),
    "slowest_of_N": (
        changes.slowest_of_n,
        _LAW | set(points.SPREADS) | set(points.PLATE) | {"T_in", "V", "air", "R_ji_K_per_W"},
    ),
    "rack_flow": (building.rack_flow, {"Q_kW", "cp", "dT_K", "rho"}),
    "rack_airflow": (building.rack_airflow, {"Q_kW", "cp", "dT_K", "rho"}),
    "pue_annual": (
        building.pue_annual,
        set(building.PLANT) | {"T_tcs", "T_air", "climate", "f_liq", "always_chill"},
    ),
    "network_power": (
        building.network_power_of_switches,
        {"P_switch_cpo_W", "P_switch_pluggable_W", "it_kW_per_gpu", "n_gpu", "radix", "tiers"},
    ),
    "optics_power": (building.optics_power, {"W_cpo", "W_plug", "n_gpu", "optics_per_gpu"}),
    "power_swing": (building.swing, {"P_comm_W", "P_compute_W", "n_gpu"}),
    "loop_ride_through": (
        building.loop_ride_through,
        {"C_metal_J_K", "Q_W", "V_L", "cp", "margin_K", "rho"},
    ),
}
"""Model of a case -> what computes it, and the parameters that it knows."""


def validate(table: Table) -> Report:
    """Every expected number of every case, in float64."""
    with jax.enable_x64(True):  # noqa: FBT003 - JAX takes it so
        rows = [row for cells in table.rows for row in _rows(cells)]
    judged = [row for row in rows if row.verdict != "not applicable"]
    right = sum(row.verdict == "pass" for row in judged)
    demand = (
        f"numbers within {RELATIVE:g} relative ({FOLD_KELVIN} K at the fold), times of lost flow "
        "and PUE with its parts within 1e-4, slowest of N within 1e-3, the same limiting reason"
    )
    return Report(
        table.path.name,
        KIND,
        rows,
        [
            Criterion(demand, f"{right} of {len(judged)}", right == len(judged)),
            Criterion("at least one row applies", str(len(judged)), bool(judged)),
        ],
    )


def _rows(cells: Mapping[str, str]) -> list[Row]:
    given, expected = named(cells, "params_json"), named(cells, "expected_json")
    case, model = cells["case_id"], cells["model"]
    if model not in _CASES:
        return [_outside(case, f"no such model: known are {', '.join(_CASES)}")]
    compute, known = _CASES[model]
    if unknown := sorted(set(given) - known):
        return [_outside(case, f"parameters that this model does not have: {', '.join(unknown)}")]
    try:
        if "asked" in inspect.signature(compute).parameters:
            found = compute(given, tuple(expected))
        else:
            found = compute(given)
    except KeyError as missing:
        return [_outside(case, f"the case does not give {missing}, which its model needs")]
    fold = expected.get("status") == "RUNAWAY"
    allowed = LOOSER.get(model, RELATIVE)
    return [
        _judged(f"{case} {key}", value, found.get(key, _NOTHING), allowed, fold=fold)
        for key, value in expected.items()
    ]


_NOTHING = object()


def _outside(case: str, why: str) -> Row:
    return Row(case, None, None, "", "", "not applicable", why)


def _judged(name: str, reference: Any, found: Any, allowed: float, *, fold: bool) -> Row:
    if found is _NOTHING:
        return _outside(name, "a number that the product does not give")
    if isinstance(reference, str) or reference is None:
        right = found == (reference.replace("_", "") if reference else None)
        shown = "the same" if right else f"{found} instead of {reference}"
        return Row(name, None, None, "", shown, "pass" if right else "fail", "" if right else shown)
    if found is None:
        return Row(name, float(reference), None, "", "none", "fail", "the product finds no point")
    apart = abs(found - reference)
    share = apart / abs(reference) if reference else float(apart > SMALLEST)
    kelvin = fold and " T_" in name
    right = share <= allowed or apart <= SMALLEST or (kelvin and apart <= FOLD_KELVIN)
    reason = "" if right else "apart by more than is allowed"
    return Row(
        name, float(reference), float(found), "", f"{share:.2g} relative",
        "pass" if right else "fail", reason,
    )  # fmt: skip
