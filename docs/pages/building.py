"""What a building adds: PUE and chillers by climate and supply, in words, tables and a figure."""

from pathlib import Path

import xarray as xr

from docs.pages.choose_a_collective import median
from docs.pages.drawing import COLOURS, MARKERS, panels, plain, save, table
from fabric_kernels.inputs import Plant
from fabric_kernels.quantity import quantities

LOW_PUE = 1.08
RARELY = 0.01  # of the year
WARM = ("40c", "45c")
BUILDINGS = {
    "air-cooled": "air handlers",
    "cold-plates": "cold plates, dry coolers",
    "chilled-plates": "cold plates, chillers all year",
}
PARTS = (
    "electrical_loss", "chiller_power_share", "cooler_fan_share", "pump_power_share",
    "air_handler_power_share",
)  # fmt: skip
"""What PUE is made of."""


def degrees(label: object) -> float:
    """The temperature in the label of a supply."""
    return float(str(label).removesuffix("c"))


def buildings(root: xr.Dataset) -> str:
    """PUE, and the share of the year in which a chiller runs, by climate and supply."""
    shown = [s for s in root.supply.values if degrees(s) >= 25]
    rows = []
    for cooling, name in BUILDINGS.items():
        for site in root.site.values:
            row = [f"{name}, {site}"]
            for supply in shown:
                at = root.sel(cooling=cooling, site=site, supply=supply)
                row.append(f"{float(median(at.pue)):.3f}, {chiller_time(at, str(cooling)):.1%}")
            rows.append(row)
    return table(["building, climate", *(f"{degrees(s):.0f} degC" for s in shown)], rows)


def chiller_time(cell: xr.Dataset, cooling: str) -> float:
    """Share of the year with a chiller on the loop that carries the supply."""
    if cooling == "chilled-plates":
        return 1.0
    loop = "air_chiller_time_share" if cooling == "air-cooled" else "chiller_time_share"
    return float(median(cell[loop]))


def building_verdict(root: xr.Dataset) -> str:
    """In which climates 40 and 45 degC mean no chiller and a low PUE, in which one of them."""
    kinds = {
        (False, False): f"No chiller for the liquid, and PUE below {LOW_PUE}",
        (True, False): f"Chillers on hot days, PUE still below {LOW_PUE} in the median",
        (False, True): f"No chiller for the liquid, but PUE above {LOW_PUE}",
        (True, True): f"Chillers, and PUE above {LOW_PUE}",
    }
    found: dict[tuple[bool, bool], list[str]] = {kind: [] for kind in kinds}
    for supply in WARM:
        for site in root.site.values:
            cell = root.sel(cooling="cold-plates", site=site, supply=supply)
            chilled = chiller_time(cell, "cold-plates") >= RARELY
            high = float(median(cell.pue)) >= LOW_PUE
            found[chilled, high].append(f"{site} at {degrees(supply):.0f}")
    return "\n".join(f"* {kinds[kind]}: {', '.join(at)} degC." for kind, at in found.items() if at)


def chiller_start() -> str:
    """From which outside air on a chiller helps."""
    plant = quantities(Plant)
    steps = [float(plant[n].default or 0) for n in ("unit_approach", "dry_cooler_approach")]
    starts = " and ".join(
        f"{degrees(s) - sum(steps):.0f} degC for a supply of {degrees(s):.0f} degC" for s in WARM
    )
    return (
        f"A chiller helps the liquid when outside air is warmer than the supply less "
        f"{steps[0]:.0f} K of the distribution unit and {steps[1]:.0f} K of the dry cooler: "
        f"{starts}."
    )


def building_words(root: xr.Dataset) -> str:
    """Where a warm supply means no chiller and a low PUE, and where not."""
    lines = []
    for site in root.site.values:
        cells = root.sel(cooling="cold-plates", site=site)
        at = {s: cells.sel(supply=s) for s in WARM}
        said = []
        for supply, cell in at.items():
            high = float(cell.pue.sel(quantile=0.99))
            free, air = chiller_time(cell, "cold-plates"), chiller_time(cell, "air-cooled")
            runs = "as good as never" if free < RARELY else f"{free:.0%} of the year"
            said.append(
                f"{degrees(supply):.0f} degC: chillers of the liquid run {runs}, those of the heat "
                f"left in air {air:.0%}; PUE {float(median(cell.pue)):.3f}, its 99th percentile "
                f"{high:.3f} is {'below' if high < LOW_PUE else 'above'} {LOW_PUE}"
            )
        lines.append(f"* **{site}**: {'. '.join(said)}.")
    return "\n".join(lines)


def parts(root: xr.Dataset) -> str:
    """What PUE is made of at 45 degC, and what the fans in servers hide."""
    rows = []
    for cooling, supply in (
        ("air-cooled", "25c"),
        ("cold-plates", "45c"),
        ("chilled-plates", "25c"),
    ):
        at = root.sel(cooling=cooling, supply=supply, site="dallas")
        values = [f"{float(median(at[n])):.3f}" for n in PARTS]
        totals = [f"{float(median(at[n])):.3f}" for n in ("pue", "tue")]
        rows.append([f"{BUILDINGS[cooling]}, {degrees(supply):.0f} degC", *values, *totals])
    head = ["dallas", "electrical loss", "chillers", "cooler fans", "pumps", "air handlers", "PUE",
            "TUE"]  # fmt: skip
    return table(head, rows)


def building_figure(root: xr.Dataset, path: Path) -> None:
    """PUE against the supply, one panel a building."""
    figure, axes = panels(len(BUILDINGS), 4.6)
    supply = [degrees(s) for s in root.supply.values]
    for panel, (cooling, name) in zip(axes, BUILDINGS.items(), strict=True):
        for k, site in enumerate(root.site.values):
            pue = root.pue.sel(cooling=cooling, site=site)
            low, high = (pue.sel(quantile=q) for q in (0.01, 0.99))
            panel.fill_between(supply, low, high, color=COLOURS[k], alpha=0.15, lw=0)
            label = str(site) if panel is axes[0] else None
            panel.plot(supply, median(pue), color=COLOURS[k], marker=MARKERS[k], ms=4, label=label)
        panel.axhline(LOW_PUE, color="#888888", lw=1, ls="--")
        panel.set_ylim(1.0, float(root.pue.max()) * 1.01)
        plain(panel, name, "supply (degC)", "PUE")
    figure.legend(loc="outside right upper", fontsize=8, frameon=False)
    save(figure, path)
