"""What the documents say is true: links, commands, specs, code and generated pages."""

import io
import re
import subprocess
import sys
from pathlib import Path

import jax.numpy as jnp
import pytest
from ruamel.yaml import YAML

import fabricarlo
from docs.generate import HERE, PAGES
from fabric_kernels.catalogue import ANSWERS
from fabric_kernels.model import Stage
from fabricarlo.plan import Plan

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [
        *ROOT.glob("*.md"),
        *(p for d in ("docs", "bench", "notebooks") for p in (ROOT / d).glob("*.md")),
    ]
)
TEXTS = {str(p.relative_to(ROOT)): p.read_text(encoding="utf-8") for p in DOCUMENTS}


def blocks(text: str, language: str) -> list[str]:
    """Fenced code of one language, without the indentation of a list it may stand in."""
    found = re.findall(rf"^( *)```{language}\n(.*?)^\1```", text, re.DOTALL | re.MULTILINE)
    return [re.sub(rf"^{indent}", "", code, flags=re.MULTILINE) for indent, code in found]


SPECS = [
    pytest.param(code, id=f"{name}-{k}")
    for name, text in TEXTS.items()
    for k, code in enumerate(blocks(text, "yaml"))
    if "schema_version" in code
]
SHELL = [code for text in TEXTS.values() for code in blocks(text, "sh")]
QUOTED = [code for text in TEXTS.values() for code in re.findall(r"`(fabricarlo [^`]+)`", text)]
COMMANDS = sorted(
    {c for t in [*SHELL, *QUOTED] for c in re.findall(r"^fabricarlo ([a-z]+)", t, re.MULTILINE)}
)


@pytest.mark.parametrize("name", TEXTS)
def test_links_lead_somewhere(name: str):
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", TEXTS[name])
    missing = [
        t for t in targets if "://" not in t and not ((ROOT / name).parent / t).resolve().exists()
    ]
    assert not missing, f"{name} links to {missing}"


def test_every_make_target_that_is_named_exists():
    named = {
        t for text in TEXTS.values() for t in re.findall(r"\bmake ([a-z]+)\b(?=`|$| +#)", text)
    }
    rules = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert {"demo", "test", "lint"} <= named
    assert named <= rules, named - rules


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_that_is_named_exists(command: str):
    code = (
        "import sys; from fabricarlo.cli import main; "
        f"sys.argv = ['fabricarlo', {command!r}, '--help']; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "Usage" in done.stdout


def test_the_commands_were_found():
    assert {"run", "check", "show", "list", "schema"} <= set(COMMANDS)


@pytest.mark.parametrize("text", SPECS)
def test_every_spec_that_is_shown_can_be_planned(text: str):
    assert Plan(fabricarlo.load_spec(text)).layout.cell_count >= 1


def test_the_spec_of_the_readme_was_found():
    assert any(p.id.startswith("README") for p in SPECS)


def small(path: Path) -> str:
    """A sweep with the axes and labels that the documents name, quick to compile and to run."""
    spec = YAML().load(path)
    spec["samples"] = 256
    spec["axes"] |= {"fabric": spec["axes"]["fabric"][:1], "gpus": spec["axes"]["gpus"][:1]}
    spec["draws"] = {"coolant_supply_temperature": spec["draws"]["coolant_supply_temperature"]}
    spec["set"] |= {"data_jitter_stall": 0, "data_loss_stall": 0}
    spec["outputs"] = ["step_time"]
    del spec["copula"]
    text = io.StringIO()
    YAML().dump(spec, text)
    return text.getvalue()


def test_the_code_of_the_readme_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "sweeps").mkdir()
    here = tmp_path / "sweeps" / "first_look.yaml"
    here.write_text(small(ROOT / "sweeps" / "first_look.yaml"), encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    code = [*blocks(TEXTS["README.md"], "python"), *blocks(TEXTS["docs/store_format.md"], "python")]
    assert len(code) >= 4
    known: dict[str, object] = {}
    for part in code:
        exec(part, known)
    assert known["saved"].notnull().all()  # type: ignore[attr-defined]


def test_the_answer_of_the_guide_is_an_answer():
    (code,) = blocks(TEXTS["CONTRIBUTING.md"], "python")
    known: dict[str, object] = {"__name__": "guide"}
    exec(code, known)
    stage = Stage.of(known["ideal"])  # type: ignore[arg-type]
    assert stage.answers is Stage.of(next(iter(ANSWERS["routing"].values()))).answers
    rate = jnp.full((2, 3), 5e10, jnp.float32)

    class Link:
        link_rate = rate

    given = stage.function(Link)
    assert given.collision_efficiency.tolist() == jnp.ones_like(rate).tolist()
    assert given.flows_per_link.tolist() == jnp.ones_like(rate).tolist()


def test_the_page_of_quantities_is_current():
    for name, made in PAGES.items():
        assert (HERE / name).read_text(encoding="utf-8") == made(), "run make docs"


def test_the_readme_shows_results():
    begin, end = "<!-- results:begin -->", "<!-- results:end -->"
    assert TEXTS["README.md"].count(begin) == TEXTS["README.md"].count(end) == 1
    results = TEXTS["README.md"].partition(begin)[2].partition(end)[0]
    assert results.count("\n|") > 2, "run make readme"


def test_the_version_stands_everywhere():
    version = fabricarlo.__version__
    assert f"version: {version}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## {version}" in TEXTS["CHANGELOG.md"]


def test_constraints_are_versions_only():
    text = (ROOT / "constraints.txt").read_text()
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][\w.]*( ; .+)?", line) for line in lines), lines
