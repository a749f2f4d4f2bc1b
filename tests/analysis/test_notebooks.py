"""Every notebook runs, on stores of a small sweep of the real model; none of them needs JAX."""

import ast
import runpy
import warnings
from pathlib import Path

import pytest
from ruamel.yaml import YAML

import fabricarlo
from fabricarlo.plan import Plan
from fabricarlo.spec import load_spec

matplotlib = pytest.importorskip("matplotlib", reason="notebooks need the extra 'notebooks'")
ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("0*.py"))
PLAN, FIRST = ROOT / "notebooks" / "sweeps" / "plan.yaml", ROOT / "sweeps" / "first_look.yaml"


def small() -> list[str]:
    """What turns the plan into a sweep for all notebooks: both fabrics are of one program."""
    read = YAML(typ="safe").load
    plan, first = read(PLAN.read_text()), read(FIRST.read_text())
    parts = [n for n in first["outputs"] if n.startswith("step_time_")]
    more = ["scaling_efficiency", "junction_temperature", "slowest_clock_fraction"]
    outputs = [*plan["outputs"], *parts, *more, "limiting_reason"]
    return [
        "samples=1024",
        f"outputs=[{', '.join(outputs)}]",
        "axes.fabric=[fabric/roce-800g, fabric/roce-400g]",
        "axes.gpus=[16384, 65536]",
    ]


@pytest.fixture(scope="session")
def stores(tmp_path_factory):
    """The store of the plan, and one without its axis of optics, as the first look has none."""
    tree = fabricarlo.run(load_spec(PLAN, small()), block=1024, tile=1024)
    folder = tmp_path_factory.mktemp("notebooks")
    first = tree.map_over_datasets(lambda d: d.isel(optics=0, drop=True, missing_dims="ignore"))
    for name, made in (("plan.zarr", tree), ("first_look.zarr", first)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # zarr: consolidated metadata may change in Zarr 3
            for group in ("/", "/samples", "/histograms"):
                data = made[group].to_dataset().load().drop_encoding()
                data.to_zarr(folder / name, group=group.strip("/") or None, mode="a")
    return folder


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_runs_and_draws(notebook, stores, monkeypatch):
    matplotlib.use("Agg")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    drawn: list[int] = []
    monkeypatch.setattr(pyplot, "show", lambda: drawn.extend(pyplot.get_fignums()))
    monkeypatch.setenv("FABRICARLO_STORE", str(stores / "first_look.zarr"))
    monkeypatch.setenv("FABRICARLO_PLAN_STORE", str(stores / "plan.zarr"))
    monkeypatch.setenv("FABRICARLO_FIGURES", str(stores))
    runpy.run_path(str(notebook))
    assert drawn
    for number in pyplot.get_fignums():
        pyplot.figure(number).savefig(stores / f"{notebook.stem}-{number}.png", dpi=80)
    pyplot.close("all")


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_reads_with_xarray_and_the_analysis_alone(notebook):
    tree = ast.parse(notebook.read_text())
    found = {a.name for n in ast.walk(tree) if isinstance(n, ast.Import) for a in n.names}
    named = [n for n in ast.walk(tree) if isinstance(n, ast.ImportFrom)]
    assert found <= {"os", "matplotlib.pyplot", "numpy", "xarray"}
    assert {(n.module, a.name) for n in named for a in n.names} == {("fabricarlo", "analysis")}


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda p: p.stem)
def test_a_notebook_is_one_for_jupytext(notebook):
    jupytext = pytest.importorskip("jupytext", reason="the extra 'notebooks' is missing")
    made = jupytext.read(notebook)
    kinds = [cell.cell_type for cell in made.cells]
    assert kinds[0] == "markdown"
    assert kinds.count("code") >= 3
    assert made.metadata["kernelspec"]["name"] == "python3"


def test_the_sweep_of_the_plan_is_right():
    sweep = load_spec(PLAN)
    assert Plan(sweep).layout.cell_count == 32
    assert len(NOTEBOOKS) == 5
