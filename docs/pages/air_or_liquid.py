"""Air or liquid: what clock survives, what the building adds, and what the optics save."""

from pathlib import Path

import numpy as np
import xarray as xr

from docs.pages.building import (
    PARTS,
    RARELY,
    building_figure,
    building_verdict,
    building_words,
    buildings,
    chiller_start,
    degrees,
    parts,
)
from docs.pages.choose_a_collective import median
from docs.pages.drawing import COLOURS, MARKERS, panels, plain, save, table
from docs.pages.page import Page, Stores
from fabric_kernels.cooling import LIMITS

KEPT = 0.85  # of full clock, by the slowest GPU
USUAL = {"air-cooled": "25c", "cold-plates": "45c", "boiling-plates": "45c"}
TECHNOLOGIES = {c: c.replace("-cooled", "").replace("-", " ") for c in USUAL}
OF_SITE = (
    "pue", "tue", *PARTS, "chiller_time_share", "air_chiller_time_share", "network_power",
    "network_power_share", "network_power_saving", "gpus_at_same_power", "mean_facility_power",
)  # fmt: skip
DENSITIES = ("40kw", "80kw", "132kw")


def named(rack: object) -> str:
    """A rack for people: 'B200, 40 kW'."""
    gpu, _, power = str(rack).partition("-")
    return f"{gpu.upper()}, {power.removesuffix('kw')} kW"


def clocks(root: xr.Dataset) -> str:
    """Clock of the nominal and of the slowest GPU, each technology at its usual supply."""
    rows = []
    for rack in root.rack.values:
        row = [named(rack)]
        for cooling, supply in USUAL.items():
            at = root.sel(rack=rack, cooling=cooling, supply=supply)
            nominal, slowest = (
                float(median(at[v])) for v in ("clock_fraction", "slowest_clock_fraction")
            )
            row.append(f"{nominal:.2f} / {slowest:.2f}, {reason(at)}")
        rows.append(row)
    names = [f"{TECHNOLOGIES[c]}, {degrees(s):.0f} degC" for c, s in USUAL.items()]
    return table(["rack", *names], rows)


def reason(cell: xr.Dataset) -> str:
    """What limits the nominal GPU in most samples."""
    share = cell.limiting_reason_share
    return LIMITS[int(share.limiting_reason_flag.values[share.values.argmax()])]


def warmest(root: xr.Dataset) -> str:
    """The warmest supply at which the slowest GPU keeps its clock."""
    rows = []
    for rack in root.rack.values:
        row = [named(rack)]
        for cooling in TECHNOLOGIES:
            clock = median(root.slowest_clock_fraction.sel(rack=rack, cooling=cooling)).values
            fits = [degrees(s) for s, c in zip(root.supply.values, clock, strict=True) if c >= KEPT]
            row.append(f"{max(fits):.0f} degC" if fits else "none")
        rows.append(row)
    return table(["rack", *TECHNOLOGIES.values()], rows)


def clock_words(root: xr.Dataset) -> str:
    """What survives, in words: the range over the GPUs at each density."""
    lines = []
    for density in DENSITIES:
        racks = [r for r in root.rack.values if str(r).endswith(f"-{density}")]
        parts = []
        for cooling, supply in USUAL.items():
            clock = median(
                root.slowest_clock_fraction.sel(rack=racks, cooling=cooling, supply=supply)
            )
            parts.append(
                f"{float(clock.min()):.2f} to {float(clock.max()):.2f} with {TECHNOLOGIES[cooling]}"
            )
        lines.append(f"* **{density.removesuffix('kw')} kW**: the slowest GPU keeps "
                     f"{', '.join(parts)}.")  # fmt: skip
    return "\n".join(lines)


def clock_figure(root: xr.Dataset, path: Path) -> None:
    """Clock of the slowest GPU against the supply, one panel a density."""
    figure, axes = panels(len(DENSITIES), 4.6)
    supply = [degrees(s) for s in root.supply.values]
    gpus = list(dict.fromkeys(str(r).partition("-")[0] for r in root.rack.values))
    for panel, density in zip(axes, DENSITIES, strict=True):
        for k, cooling in enumerate(TECHNOLOGIES):
            for j, gpu in enumerate(gpus):
                clock = root.slowest_clock_fraction.sel(rack=f"{gpu}-{density}", cooling=cooling)
                panel.plot(
                    supply, median(clock), color=COLOURS[k], marker=MARKERS[j], ms=4, lw=1.1,
                    label=f"{TECHNOLOGIES[cooling]}, {gpu.upper()}" if panel is axes[0] else None,
                )  # fmt: skip
        panel.set_ylim(0.15, 1.0)
        title = f"racks of {density.removesuffix('kw')} kW"
        plain(panel, title, "supply (degC)", "clock of the slowest GPU")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    save(figure, path)


def optics(root: xr.Dataset) -> str:
    """The network's power with each kind of optics."""
    rows = []
    for name in root.optics.values:
        at = root.sel(optics=name)
        power, share, saving, feeds, energy = (
            float(median(at[v]))
            for v in OF_SITE[9:]
        )  # fmt: skip
        more = feeds / float(root.attrs["gpus"]) - 1
        rows.append([
            f"`{name}`", f"{power / 1e6:.1f} MW", f"{saving / (power + saving):.0%}",
            f"{share:.1%}", f"{more:.1%}", f"{energy / 1e6:.1f} MW",
        ])  # fmt: skip
    return table(["optics", "network", "less than DSP", "of IT", "more GPUs", "whole site"], rows)


def optics_words(root: xr.Dataset) -> str:
    """What the 30 % is a share of."""
    names = ("dsp-800g", "cpo-800g", "cpo-800g-30-percent")
    dsp, cpo, third = (float(median(root.network_power.sel(optics=n))) for n in names)
    site, best, least = (float(median(root.mean_facility_power.sel(optics=n))) for n in names)
    share = float(median(root.network_power_share.sel(optics=names[0])))
    return f"""\
* 30 % is said of a **whole switch**: fans, electronics and optics together (Broadcom). Another \
vendor's whole switches give 44 % (7.0 to 3.95 kW for 144 ports of 800G).
* It is **not** said of the optics: there the claim is 70 % (30 to 9 W for a port of 1.6T).
* It is **not** the network's share either: the ends at the GPUs stay pluggable, so that 30 % off \
the switches is {1 - third / dsp:.0%} off the network, and 44 % is {1 - cpo / dsp:.0%}.
* It is **not** the site's: the network draws {share:.1%} of IT power in compute, so that the mean \
power of the site falls by {1 - least / site:.1%} or {1 - best / site:.1%}."""


def write(stores: Stores, folder: Path) -> str:
    """The page."""
    cooled = stores["cooling_limits"].to_dataset().isel(gpus=-1)
    cooled = cooled[["clock_fraction", "slowest_clock_fraction", "limiting_reason_share"]].load()
    sited = stores["pue_and_optics"].to_dataset()[list(OF_SITE)].load()
    building = sited.isel(optics=0)
    network = sited.sel(cooling="cold-plates", supply="45c", site="dallas")
    network.attrs["gpus"] = 131072
    clock_figure(cooled, folder / "air_or_liquid_clock.png")
    building_figure(building, folder / "air_or_liquid_building.png")
    gpus = int(np.asarray(cooled.gpus))
    return f"""
# Air or liquid

What clock survives in racks of 40, 80 and 132 kW, how warm may the supply be, what does the \
building add, and what do co-packaged optics save? From [sweeps/cooling_limits.yaml]\
(../sweeps/cooling_limits.yaml) and [sweeps/pue_and_optics.yaml](../sweeps/pue_and_optics.yaml). \
All numbers are medians over what is uncertain; resistances, limits of Blackwell and climates are \
assumptions, marked in the [presets](quantities.md), and two-phase cooling is the weakest of them.

## What clock survives

Clock as a share of full clock: of a GPU with nominal parts / of the slowest of {gpus:,}, and what \
limits the nominal one. A synchronous step runs at the pace of the slowest.

{clocks(cooled)}

{clock_words(cooled)}

![Clock of the slowest GPU against the supply temperature](air_or_liquid_clock.png)

* Density costs clock in air alone: a rack's airflow is shared by its GPUs. A rack beyond what its \
cooling is built for (40 kW of air) is flagged by `rack_density`, not refused; its clock is the \
price. GB200 and GB300 are not sold for air.
* 0.20 is the lowest clock of the governor: there the slowest GPU is throttled to a crawl, or lost.
* Cold and boiling plates do not care how many share the rack, as long as each gets its flow. What \
the slowest GPU lacks at 15 degC already is the power cap and the silicon's spread, not heat.

The warmest supply at which the slowest GPU still keeps {KEPT:.0%} of full clock, of those swept:

{warmest(cooled)}

Supply is what enters the rack: air, coolant, or the water at the condenser of boiling plates, \
which boil 6 K above it.

## What the building adds

Annual mean PUE, and the share of the year in which chillers help the loop of the supply:

{buildings(building)}

![PUE against the supply temperature](air_or_liquid_building.png)

Cold plates with dry coolers at 40 and 45 degC. {chiller_start()}

{building_verdict(building)}

In numbers, with chillers that help less than {RARELY:.0%} of the year counted as none:

{building_words(building)}

A trim chiller carries only what outside air falls short of, so it may run often and use little: \
hours of chillers and PUE are two questions. The heat that stays in air has a loop of its own, \
whose temperature the supply of the plates does not change. PUE does not see the fans inside \
servers, which are 8 to 15 % of an air-cooled rack; TUE does:

{parts(building)}

## What 30 % of co-packaged optics is

131,072 B200 on switches of 144 x 800G, cold plates at 45 degC in the climate of Dallas:

{optics(network)}

{optics_words(network)}
"""


AIR_OR_LIQUID = Page("air_or_liquid", ("cooling_limits", "pue_and_optics"), write)
