"""The figure and the table of the README come from the store, and from nothing else."""

from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from bench.figure import BEGIN, END, figure, fill, table


@pytest.fixture
def results() -> xr.Dataset:
    """Two cells: 3 s of compute each, and 1 s of loss or 0.5 s of heat."""
    cooling = ["air", "water"]
    quantiles = [0.01, 0.5, 0.99, 0.999]
    parts = {"compute": [3.0, 3.0], "thermal": [0.0, 0.5], "loss": [1.0, 0.0]}
    means = {f"step_time_{p}_mean": ("cooling", v) for p, v in parts.items()}
    step = np.outer([4.0, 3.5], [0.9, 1.0, 1.2, 1.5])
    return xr.Dataset(
        means
        | {"step_time": (("cooling", "quantile"), step), "step_time_mean": ("cooling", [4.0, 3.5])},
        coords={"cooling": cooling, "quantile": quantiles},
    )


def test_the_table_says_what_costs_most(results: xr.Dataset):
    rows = table(results).splitlines()
    assert rows[2:] == [
        "| air | 4 s | 4.8 s | loss, 25.0% of the mean step |",
        "| water | 3.5 s | 4.2 s | clock (power cap and heat), 14.3% of the mean step |",
    ]


def test_the_same_store_gives_the_same_figure(results: xr.Dataset, tmp_path: Path):
    figure(results, tmp_path / "one.png")
    figure(results, tmp_path / "two.png")
    figure(results.assign(step_time=2 * results.step_time), tmp_path / "other.png")
    one, two, other = ((tmp_path / f"{n}.png").read_bytes() for n in ("one", "two", "other"))
    assert one[:4] == b"\x89PNG"
    assert one == two != other


def test_the_table_is_put_between_the_marks(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    fill(readme, "| new |")
    assert readme.read_text() == f"before\n{BEGIN}\n| new |\n{END}\nafter\n"


def test_a_readme_without_marks_is_left_alone(tmp_path: Path):
    readme = tmp_path / "README.md"
    readme.write_text(f"{END}\n{BEGIN}\n")
    with pytest.raises(SystemExit, match="has no place for the table"):
        fill(readme, "| new |")
    assert readme.read_text() == f"{END}\n{BEGIN}\n"
