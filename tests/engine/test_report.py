"""The page of a store: what it says, and how it behaves in a browser."""

import json
import os
import re
import shutil
from pathlib import Path

import numpy as np
import pytest
import xarray as xr

from fabricarlo.errors import StoreError
from fabricarlo.report import write_report
from fabricarlo.report.answer import cautions, sentences
from fabricarlo.report.facts import facts_of
from fabricarlo.report.tables import tables
from fabricarlo.report.writing import write_page
from tests.analysis.stores import store
from tests.engine.test_cli import call

pytest.importorskip("vl_convert", reason="the chart library of the extra 'report' is missing")
BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@pytest.fixture(scope="module")
def tree():
    return store()


@pytest.fixture(scope="module")
def page(tree, tmp_path_factory):
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_page(tree, "small", path)
    return path


def facts(tree: xr.DataTree):
    return facts_of(tree, "small")


def data_of(page: Path) -> dict:
    found = re.search(r'id="data">(.*?)</script>', page.read_text(), re.DOTALL)
    return json.loads(found.group(1))


def test_the_answer_names_the_best_and_the_worst_design(tree):
    found = facts(tree)
    text = " ".join(sentences(found, tables(found)))
    values = tree["step_time"].sel(quantile=0.99)
    assert "lowest with liquid · infiniband · 1,024" in text
    assert "highest with air · roce · 16,384" in text
    assert f"{float(values.max()):.4g} s (95 % interval" in text
    assert "From gpus 1,024 to 16,384 the 99 % quantile of step_time changes by +" in text
    assert "the mean step_time goes most to: jitter" in text
    assert "compute_efficiency" in text
    assert "Limiting reason: thermal in 39.5" in text


def test_differences_are_paired(tree):
    """The shift of the median is known; unpaired, replicates vary ten times as much."""
    found = facts(tree)
    rows = [r for r in tables(found)["differences"].rows if r[0] == 0 and r[4] == "p50"]
    cooling = [r for r in rows if found.axes[r[1]] == "cooling"]
    assert len(cooling) == 6
    for row in cooling:
        shift, low, high = row[5:8]
        slack = 20 * 2**-11  # the width of a bin
        assert low - slack < shift < high + slack
        assert high - low < 0.1
        assert abs(shift + 2) < 0.2, "a tenth of the compute time, which is about 20 s"


def test_the_page_holds_everything_itself(page):
    text = page.read_text()
    assert page.stat().st_size < 5e6
    assert "default-src 'none'" in text
    before_library = text.partition('<script type="module">')[0]
    assert not re.search(r'(?:src|href)="(?!data:)', before_library)
    assert "a &lt;small&gt; sweep" in text
    assert "Is it the cooling &amp; the fabric?" in text
    assert "sweep: &lt;small&gt;" in text
    assert set(data_of(page)["tables"]) == {
        "summary", "curves", "densities", "parts", "differences", "indices", "shares", "samples",
    }  # fmt: skip


def test_a_store_of_summaries_has_a_page_too(tmp_path):
    tree = store(kept=False, replicates=8)
    write_page(tree, "small", tmp_path / "r.html")
    assert "No samples were kept" in (tmp_path / "r.html").read_text()
    made = data_of(tmp_path / "r.html")["tables"]
    assert {"curves", "differences", "parts"} <= set(made)
    assert not {"indices", "samples"} & set(made)


def test_a_weighted_store_has_a_page_without_what_would_be_wrong(tmp_path):
    tree = store(tail="packet_loss_rate beyond 0.999 (share 0.5)")
    tree = tree.filter(lambda node: node.name != "histograms")
    write_page(tree, "small", tmp_path / "r.html")
    assert "Samples are weighted" in (tmp_path / "r.html").read_text()
    assert set(data_of(tmp_path / "r.html")["tables"]) == {"summary", "parts", "shares"}


def test_what_is_wrong_with_a_store_is_said():
    tree = store()
    results = tree.to_dataset()
    results["step_time_nonfinite"][0, 0, 0] = 7
    results.attrs |= {"state": "finished with failed blocks", "replicates": 1}
    found = cautions(facts(xr.DataTree.from_dict({"/": results})))
    for text in ("not complete", "7 samples of step_time are not finite", "no intervals"):
        assert any(text in caution for caution in found), (text, found)


def test_one_design_without_axes(tmp_path):
    tree = store().map_over_datasets(
        lambda d: d.isel({n: 0 for n in ("cooling", "fabric", "gpus") if n in d.dims}, drop=True)
    )
    write_page(tree, "small", tmp_path / "r.html")
    assert "The 99 % quantile of step_time is" in (tmp_path / "r.html").read_text().replace(
        "\u00a0", " "
    )


def test_images_beside_the_page(tree, tmp_path):
    written = write_page(tree, "small", tmp_path / "r.html", png=True)
    names = {p.name for p in written}
    assert {"r.html", "r-ranges.png", "r-parts.png", "r-heat.png", "r-indices.png"} <= names
    for path in written[1:]:
        assert path.read_bytes().startswith(b"\x89PNG")
        assert path.stat().st_size > 3000, f"{path.name} is empty"


def test_a_page_that_the_system_refuses(tree):
    with pytest.raises(StoreError, match=r"/proc/r.html cannot be written: .*--out") as caught:
        write_page(tree, "small", Path("/proc/r.html"))
    assert caught.value.exit_code == 2


def test_the_command_refuses_in_words(tmp_path, capsys):
    xr.Dataset({"t": ("x", np.arange(3.0))}).to_zarr(tmp_path / "foreign.zarr", zarr_format=2)
    code, _, err = call("report", tmp_path / "no.zarr", "-o", tmp_path / "r.html", capsys=capsys)
    assert code == 2
    assert "there is no such directory" in err
    code, _, err = call("report", tmp_path / "foreign.zarr", "-o", "r.html", capsys=capsys)
    assert code == 2
    assert "no fabricarlo store" in err
    with pytest.raises(StoreError, match="name a file in a folder that exists"):
        write_report(tmp_path / "foreign.zarr", tmp_path / "no" / "r.html")
    half = store()
    half.attrs["state"] = "running"
    bare = xr.DataTree(half.to_dataset().drop_vars(list(half.data_vars)))
    with pytest.raises(StoreError, match=r"x.zarr: the sweep is not finished.*run the same"):
        write_page(bare, "x.zarr", tmp_path / "r.html")


@pytest.fixture(scope="module")
def browser():
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is missing")
    named = os.environ.get("FABRICARLO_BROWSER")
    path = named or next((p for name in BROWSERS if (p := shutil.which(name))), None)
    if path is None:
        pytest.skip(f"no browser: install chromium, or name one by FABRICARLO_BROWSER ({BROWSERS})")
    with playwright.sync_playwright() as made:
        opened = made.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()


def ready(view, times: int) -> None:
    """Wait until all charts were drawn so many times."""
    view.wait_for_selector(f'body[data-ready="{times}"]', timeout=60_000)


@pytest.mark.parametrize(("width", "height"), [(1200, 900), (390, 844)])
def test_a_reader_clicks_through_the_page(browser, page, tmp_path, width, height):
    view = browser.new_page(viewport={"width": width, "height": height})
    trouble: list[str] = []
    view.on("console", lambda message: trouble.append(f"{message.type}: {message.text}"))
    view.on("pageerror", lambda error: trouble.append(str(error)))
    view.on("request", lambda r: r.url.startswith(("file:", "data:")) or trouble.append(r.url))
    view.goto(page.as_uri())
    ready(view, 1)
    for tab in view.locator("nav button").all():
        tab.click()
        name = tab.get_attribute("data-panel")
        assert view.locator(f"section#{name}").is_visible()
        assert view.locator("section.shown").count() == 1
        for chart in view.locator(f"section#{name} .chart").all():
            assert chart.locator("svg").count() == 1, f"{name} has no chart"
            assert chart.bounding_box()["width"] <= width
        view.screenshot(path=tmp_path / f"{name}.png", full_page=True)
    assert view.evaluate_handle("document.documentElement.scrollWidth").json_value() <= width
    hover(view)
    switch(view)
    assert not trouble
    view.close()


def hover(view) -> None:
    """The tooltip of a chart says which design it is."""
    view.locator('nav button[data-panel="parts"]').click()
    view.locator("#chart-parts svg .mark-rect path").first.hover()
    tip = view.locator("#vg-tooltip-element.visible")
    tip.wait_for(timeout=10_000)
    assert "design" in tip.inner_text()
    assert "roce" in tip.inner_text()


def switch(view) -> None:
    """Another axis, another output and one label: the charts follow."""
    view.locator('nav button[data-panel="map"]').click()
    assert "fabric" in view.locator("#chart-heat svg").inner_html()
    view.locator('select[data-key="y"]').select_option(label="cooling")
    ready(view, 2)
    assert "liquid" in view.locator("#chart-heat svg").inner_html()
    assert "Shown for fabric roce." in view.locator("#heat-note").inner_text()
    view.locator('select[data-kind="output"]').select_option(label="step_time_loss")
    ready(view, 3)
    assert "p99 of step_time_loss (ms)" in view.locator("#chart-heat svg").inner_html()
    before = int(view.locator("#chart-ranges").get_attribute("data-rows"))
    view.locator('select[data-kind="filter"][data-key="0"]').select_option(label="liquid")
    ready(view, 4)
    assert int(view.locator("#chart-ranges").get_attribute("data-rows")) == before // 2


def test_on_paper_every_part_is_shown(browser, page):
    view = browser.new_page(viewport={"width": 794, "height": 1123})  # A4
    view.goto(page.as_uri())
    ready(view, 1)
    view.emulate_media(media="print")
    width = view.evaluate_handle("document.documentElement.scrollWidth").json_value()
    assert width <= 794
    assert all(s.is_visible() for s in view.locator("section").all())
    assert not view.locator("nav").is_visible()
    assert view.pdf(format="A4").startswith(b"%PDF")
    view.close()
