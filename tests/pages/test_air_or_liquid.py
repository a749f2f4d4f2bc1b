"""Air or liquid: the page says what the stores say, and bad input is refused with a way out."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from docs.pages import air_or_liquid, building
from docs.pages.listed import PAGES
from docs.pages.page import made, spec_path
from fabricarlo import cli
from fabricarlo.errors import SpecError
from fabricarlo.plan import Plan
from fabricarlo.spec import load_spec

PAGE = PAGES["air_or_liquid"]


def blank(sweep: str) -> xr.Dataset:
    """A store of the sweep's own axes and outputs, all halves."""
    spec = load_spec(spec_path(sweep))
    coords = {a.name: list(a.labels) for a in spec.axes} | {"quantile": list(spec.keep.quantiles)}
    shape, dims = tuple(len(labels) for labels in coords.values()), tuple(coords)
    data = {name: (dims, np.full(shape, 0.5)) for name in spec.outputs}
    if "limiting_reason" in spec.outputs:
        coords["limiting_reason_flag"] = [0, 1, 2]
        share = np.broadcast_to([0.2, 0.7, 0.1], (*shape[:-1], 3))
        data["limiting_reason_share"] = ((*dims[:-1], "limiting_reason_flag"), share)
    return xr.Dataset(data, coords=coords)


@pytest.fixture(scope="module")
def cooled() -> xr.Dataset:
    """Clocks that fall by 1 % a kelvin above 20 degC in air, and stay in liquid."""
    root = blank("cooling_limits").isel(gpus=-1)
    degrees = xr.DataArray([float(s[:-1]) for s in root.supply.values], dims="supply")
    falling = 0.95 - 0.01 * (degrees - 20).clip(0)
    in_air = root.cooling == "air-cooled"
    root["slowest_clock_fraction"] = xr.where(
        in_air, falling, 0.95 + 0 * root.slowest_clock_fraction
    ).transpose(*root.clock_fraction.dims)
    return root


@pytest.fixture(scope="module")
def sited() -> xr.Dataset:
    root = blank("pue_and_optics")
    high = xr.DataArray([1.02, 1.05, 1.07], dims="quantile", coords={"quantile": root["quantile"]})
    warm = xr.where(root.site == "desert", 0.05, 0.0)
    root["pue"] = (0 * root.pue + high + warm).transpose(*root.pue.dims)
    root["chiller_time_share"] = (0 * root.pue + xr.where(root.site == "cold", 0.0, 0.2)).transpose(
        *root.pue.dims
    )
    power = {"dsp-800g": 10e6, "lpo-800g": 9e6, "cpo-800g": 6e6, "cpo-800g-30-percent": 8e6}
    network = xr.DataArray(list(power.values()), dims="optics", coords={"optics": list(power)})
    root["network_power"] = (0 * root.pue + network).transpose(*root.pue.dims)
    root["mean_facility_power"] = root["network_power"] + 90e6
    root["network_power_share"] = 0 * root.pue + 0.10
    return root


def test_the_warmest_supply_is_the_last_that_keeps_the_clock(cooled: xr.Dataset):
    row = next(r for r in air_or_liquid.warmest(cooled).splitlines() if r.startswith("| B200, 80"))
    assert row == "| B200, 80 kW | 30 degC | 50 degC | 50 degC |"


def test_the_words_on_clocks_come_from_the_store(cooled: xr.Dataset):
    assert "**132 kW**: the slowest GPU keeps 0.90 to 0.90 with air" in (
        air_or_liquid.clock_words(cooled)
    )
    assert "| H100, 40 kW | 0.50 / 0.90, power |" in air_or_liquid.clocks(cooled)


def test_the_words_on_the_building_come_from_the_store(sited: xr.Dataset):
    lines = building.building_words(sited.isel(optics=0)).splitlines()
    cold, desert = (next(x for x in lines if f"**{site}**" in x) for site in ("cold", "desert"))
    assert "run as good as never" in cold
    assert "its 99th percentile 1.070 is below 1.08" in cold
    assert "run 20% of the year" in desert
    assert "its 99th percentile 1.120 is above 1.08" in desert


def test_the_verdict_on_the_building_comes_from_the_store(sited: xr.Dataset):
    said = building.building_verdict(sited.isel(optics=0)).splitlines()
    assert (
        said[0] == "* No chiller for the liquid, and PUE below 1.08: cold at 40, cold at 45 degC."
    )
    assert said[1].startswith("* Chillers on hot days, PUE still below 1.08 in the median: dallas")
    assert said[2] == "* Chillers, and PUE above 1.08: desert at 40, desert at 45 degC."
    # 4 K of the distribution unit, 8 K of the dry cooler
    assert "28 degC for a supply of 40 degC and 33 degC" in building.chiller_start()


def test_the_share_of_thirty_percent_is_said_of_what_it_is(sited: xr.Dataset):
    at = sited.sel(cooling="cold-plates", supply="45c", site="dallas")
    words = air_or_liquid.optics_words(at)
    assert "30 % off the switches is 20% off the network, and 44 % is 40%" in words
    assert "power of the site falls by 2.0% or 4.0%" in words


def test_the_page_is_written_from_stores_of_its_sweeps(tmp_path: Path, sited: xr.Dataset):
    stores = {
        "cooling_limits": xr.DataTree(blank("cooling_limits")),
        "pue_and_optics": xr.DataTree(sited),
    }
    text = made(PAGE, stores, tmp_path)
    assert "nan" not in text
    for figure in ("clock", "building"):
        assert f"](air_or_liquid_{figure}.png)" in text
        assert (tmp_path / f"air_or_liquid_{figure}.png").stat().st_size > 0


SPEC = """
schema_version: 1
sweep: bad
seed: 1
samples: 64
base: [rack/b200-132kw, workload/dense-405b]
set: {{gpus: 65536, {fixed}}}
outputs: [{output}]
"""
BAD = [
    ("cooling: single_phase, coolant_supply_temperature: 62 degC", "at most 60 degC"),
    ("cooling: two_phase, coolant_supply_temperature: 62 degC", "at most 60 degC"),
    ("cooling: air, air_supply_temperature: 62 degC", "outside"),
    ("cooling: single_phase, coolant_supply_temperature: 40 degC, coolant_flow: 0", "transient"),
    ("cooling: air, air_supply_temperature: 25 degC, heatsink_resistance: -0.1", "outside"),
    ("cooling: single_phase, coolant_supply_temperature: 40 degC, plate_resistance: -0.1",
     "outside"),
]  # fmt: skip


def refused(fixed: str, output: str) -> str:
    """What a plan says against these settings."""
    with pytest.raises(SpecError) as error:
        Plan(load_spec(SPEC.format(fixed=fixed, output=output)))
    return str(error.value)


@pytest.mark.parametrize(("fixed", "said"), BAD)
def test_bad_input_is_refused(fixed: str, said: str):
    assert said in refused(fixed, "clock_fraction")


@pytest.mark.parametrize(("fixed", "said"), BAD)
def test_bad_input_ends_the_command(
    fixed: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):  # fmt: skip
    path = tmp_path / "bad.yaml"
    path.write_text(SPEC.format(fixed=fixed, output="clock_fraction"))
    monkeypatch.setattr("sys.argv", ["fabricarlo", "check", str(path)])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


def test_a_building_without_a_climate_has_no_answer():
    fixed = "cooling: single_phase, coolant_supply_temperature: 40 degC"
    assert "ambient_temperature" in refused(fixed, "pue")


def test_a_rack_beyond_its_cooling_is_flagged_not_refused():
    fixed = "cooling: air, air_supply_temperature: 25 degC, rack_power_limit: 40 kW"
    assert Plan(load_spec(SPEC.format(fixed=fixed, output="rack_density"))).variants
