"""The shape of the house: who may import whom, how long a file may be, what starting costs."""

import ast
import itertools
import subprocess
import sys
from collections.abc import Iterable, Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
HOMES = {"fabricarlo": ROOT / "src", "fabric_kernels": ROOT / "kernels"}
CEILING = 300

ENGINE = (
    # each line may import the lines above it, and the kernels
    {"derived", "errors", "identity", "interrupt", "intervals", "layout", "manifests"}
    | {"progress", "sampling", "summaries", "units"},
    {"analysis", "nccl_tests", "objects"},
    {"failed", "laws", "notes", "presence", "records"},
    {"segment"},
    {"compaction"},
    {"claims", "index", "ledger", "pending"},
    {"reading", "sweep"},
    {"refusals", "variants", "written"},
    {"catalog"},
    {"spec"},
    {"plan", "schema", "tails"},
    {"program", "template"},
    {"steps"},
    {"engine", "room", "store", "weighed"},
    {"blocks", "results", "samples"},
    {"finish", "loop", "recompute"},
    {"verify", "work"},
    {"session"},
    {"multihost", "running"},
    {"check", "compare", "launch", "listing", "report", "show", "starter", "status", "validation"},
    {"commands"},
    {"cli"},
    {"__main__"},
)
"""The files of src/fabricarlo as layers. A new file is a step of a sweep: give it a layer."""

THIRD_PARTIES = {
    # who may import what beside the standard library and our own two packages
    "fabric_kernels": {"jax", "numpy"},
    "fabricarlo.units": set(),
    "fabricarlo.errors": set(),
    "fabricarlo.layout": {"numpy"},
    "fabricarlo.sweep": set(),
    "fabricarlo.sampling": {"jax", "numpy"},
    "fabricarlo.summaries": {"jax", "numpy", "scipy"},
    "fabricarlo.laws": {"jax", "numpy", "scipy"},
    "fabricarlo.spec": {"numpy", "pydantic", "ruamel"},
    "fabricarlo.written": {"numpy", "pydantic", "ruamel"},
    "fabricarlo.plan": {"numpy"},
    "fabricarlo.program": {"jax", "numpy"},
    "fabricarlo.engine": {"jax", "numpy"},
    "fabricarlo.store": {"google_crc32c", "numpy", "xarray", "zarr"},
    "fabricarlo.reading": {"numpy", "xarray", "zarr"},
    "fabricarlo.analysis": {"numpy", "scipy", "xarray"},
    "fabricarlo.report": {"numpy", "vl_convert", "xarray"},
    "fabricarlo.nccl_tests": set(),
    "fabricarlo.validation": {"jax", "numpy", "rich", "scipy"},
    "fabricarlo.cli": {"rich", "typer"},
}


def modules() -> dict[str, Path]:
    """Dotted name -> file, of both packages; a package has the name of its folder."""
    found = {}
    for package, home in HOMES.items():
        for path in sorted((home / package).rglob("*.py")):
            parts = path.relative_to(home).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def is_for_checkers(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"


def imports(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that a file may import when it runs, also inside a function."""
    skipped = {n for found in ast.walk(tree) if is_for_checkers(found) for n in ast.walk(found)}
    for node in (n for n in ast.walk(tree) if n not in skipped):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "write imports in full: relative ones hide the direction"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def as_module(name: str, known: Iterable[str]) -> str | None:
    """The module of ours that an imported name lives in."""
    while name and name not in known:
        name = name.rpartition(".")[0]
    return name or None


MODULES = modules()
IMPORTS = {name: set(imports(ast.parse(path.read_text()))) for name, path in MODULES.items()}
OURS = {
    name: {m for i in imported if (m := as_module(i, MODULES)) and m not in (name, *HOMES)}
    for name, imported in IMPORTS.items()
}


def engine_layer(module: str) -> int:
    part = module.split(".")[1]
    layers = [k for k, names in enumerate(ENGINE) if part in names]
    assert layers, f"fabricarlo.{part} has no layer: add it to ENGINE in {Path(__file__).name}"
    return layers[0]


def kernel_layer(module: str) -> int:
    """0 foundations, 1 what builds on them, 2 questions (their records), 3 answers, 4 the list."""
    part, *rest = module.split(".")[1:]
    if part in ("tree", "quantity", "uniform", "pattern", "maths"):
        return 0
    if part in ("model", "inputs"):
        return 1
    if part == "calls":  # parts of calls, which several questions are answered by
        return 2
    if part == "catalogue":
        return 4
    assert (HOMES["fabric_kernels"] / "fabric_kernels" / part).is_dir(), (
        f"{module}: a file of kernels/ is an answer and lies in the folder of its question"
    )
    return 3 if rest else 2


def forbidden(module: str, imported: str) -> str | None:
    """Why `module` may not import `imported`, or None where it may."""
    here, there = module.split("."), imported.split(".")
    if here[0] == "fabric_kernels":
        if there[0] == "fabricarlo":
            return "physics knows nothing of the engine"
        same = here[1] == there[1]
        if kernel_layer(module) == kernel_layer(imported) == 3 and not same:
            return "an answer knows other questions, not their answers"
        if kernel_layer(module) < kernel_layer(imported):
            return "that builds on this"
        return None
    if there[0] == "fabric_kernels" or here[1] == there[1]:
        return None
    if engine_layer(module) <= engine_layer(imported):
        return "that is the same or a later step of a sweep"
    return None


EDGES = [(a, b) for a, found in OURS.items() for b in found if a not in HOMES]


@pytest.mark.parametrize("package", HOMES)
def test_imports_go_one_way(package: str):
    wrong = [
        f"{a} imports {b}: {why}"
        for a, b in EDGES
        if a.split(".")[0] == package and (why := forbidden(a, b))
    ]
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize(
    ("module", "imported"),
    [
        ("fabric_kernels.quantity", "fabric_kernels.model"),
        ("fabric_kernels.cooling.air", "fabric_kernels.loss.go_back_n"),
        ("fabric_kernels.model", "fabricarlo.plan"),
        ("fabric_kernels.collective.ring", "fabric_kernels.catalogue"),
        ("fabricarlo.store", "fabricarlo.running"),
        ("fabricarlo.ledger", "fabricarlo.store"),
        ("fabricarlo.sampling.sobol", "fabricarlo.laws"),
        ("fabricarlo.analysis", "fabricarlo.engine"),
    ],
)
def test_a_wrong_direction_would_be_seen(module: str, imported: str):
    assert forbidden(module, imported)


def test_no_module_imports_itself_through_others():
    try:
        tuple(TopologicalSorter({m: found - {m} for m, found in OURS.items()}).static_order())
    except CycleError as error:
        pytest.fail(" imports ".join(reversed(error.args[1])))


def foreign(module: str) -> set[str]:
    own = {*HOMES, *sys.stdlib_module_names}
    return {i.split(".")[0] for i in IMPORTS[module]} - own


@pytest.mark.parametrize("owner", THIRD_PARTIES)
def test_third_parties_stay_where_they_belong(owner: str):
    wrong = {
        module: sorted(foreign(module) - THIRD_PARTIES[owner])
        for module in MODULES
        if f"{module}.".startswith(f"{owner}.") and not foreign(module) <= THIRD_PARTIES[owner]
    }
    assert not wrong, f"{owner} may import {sorted(THIRD_PARTIES[owner])}: {wrong}"


READERS = [r for r in ("reading", "analysis", "report") if f"fabricarlo.{r}" in MODULES]


@pytest.mark.parametrize("reader", READERS)
def test_reading_a_store_needs_neither_jax_nor_kernels(reader: str):
    """A laptop opens and analyses any store."""
    code = f"import sys, fabricarlo.{reader}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert not {"jax", "jaxlib", "fabric_kernels"} & set(done.stdout.split())


def test_no_file_is_longer_than_the_ceiling():
    lengths = {name: len(path.read_text().splitlines()) for name, path in MODULES.items()}
    long = {name: n for name, n in lengths.items() if n > CEILING}
    assert not long, f"over {CEILING} lines; split at a concept: {long}"


def functions() -> Iterator[tuple[str, int]]:
    for name, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef):
                doc = node.body[0] if ast.get_docstring(node) is not None else None
                lines = node.end_lineno - node.lineno + 1
                prose = doc.end_lineno - doc.lineno + 1 if doc else 0
                yield f"{name}.{node.name}", lines - prose


def test_no_function_is_longer_than_35_lines_of_code():
    long = {name: n for name, n in functions() if n > 35}
    assert not long, f"give a part of it a name: {long}"


def public(tree: ast.Module) -> Iterator[tuple[str, ast.AST]]:
    kinds = (ast.FunctionDef, ast.ClassDef)
    for node in tree.body:
        if isinstance(node, kinds) and not node.name.startswith("_"):
            yield node.name, node
            if isinstance(node, ast.ClassDef):
                methods = (n for n in node.body if isinstance(n, ast.FunctionDef))
                yield from ((f"{node.name}.{m.name}", m) for m in methods if m.name[0] != "_")


def inherited(tree: ast.Module) -> set[str]:
    """Methods whose meaning a base class of the same file gives."""
    classes = {n.name: n for n in tree.body if isinstance(n, ast.ClassDef)}
    found = set()
    for cls in classes.values():
        for base in (b.id for b in cls.bases if isinstance(b, ast.Name) and b.id in classes):
            found |= {f"{cls.name}.{m.name}" for m in classes[base].body if hasattr(m, "name")}
    return found


def test_everything_public_is_annotated_and_documented():
    bare = []
    for name, path in MODULES.items():
        tree = ast.parse(path.read_text())
        for what, node in public(tree):
            if ast.get_docstring(node) is None and what not in inherited(tree):
                bare.append(f"{name}.{what} has no docstring")
            if isinstance(node, ast.FunctionDef):
                given = itertools.chain(node.args.posonlyargs, node.args.args, node.args.kwonlyargs)
                missing = [a.arg for a in given if a.annotation is None]
                missing = [a for a in missing if a not in ("self", "cls")]
                if missing or node.returns is None:
                    bare.append(f"{name}.{what} is not annotated: {missing or 'return'}")
    assert not bare, "\n".join(bare)


def test_help_imports_no_scientific_library():
    heavy = ("jax", "numpy", "pandas", "scipy", "xarray", "zarr")
    code = (
        "import sys\n"
        "from fabricarlo.cli import main\n"
        "sys.argv = ['fabricarlo', '--help']\n"
        "try:\n    main()\n"
        "except SystemExit as stop:\n    assert not stop.code, stop.code\n"
        f"loaded = [m for m in {heavy!r} if m in sys.modules]\n"
        "print('loaded:', *loaded)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "run" in done.stdout
    assert done.stdout.splitlines()[-1] == "loaded:", done.stdout.splitlines()[-1]
