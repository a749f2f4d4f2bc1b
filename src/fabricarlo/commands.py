"""Commands for sweeps that begin, run elsewhere or ran before; their work is imported by need."""

from pathlib import Path
from typing import Annotated

import typer

Store = Annotated[str, typer.Argument(help="A store: a directory, or s3://BUCKET/NAME.")]
Json = Annotated[bool, typer.Option("--json", help="One JSON object.")]

Nodes = Annotated[int, typer.Option("--nodes", help="Machines, or hosts of a TPU slice.")]
Gpus = Annotated[int, typer.Option("--gpus-per-node", help="One process for each of them.")]
Array = Annotated[bool, typer.Option("--array", help="A job of its own for every node (Slurm).")]
Print = Annotated[bool, typer.Option("--print", help="Print it; submit nothing.")]
For = Annotated[str, typer.Option("--for", help="slurm, kubernetes, or tpu (on Kubernetes).")]
PerNode = Annotated[
    bool, typer.Option("--process-per-node", help="One process for all GPUs of a node.")
]
Options = Annotated[
    list[str] | None, typer.Option("--option", metavar="KEY=VALUE", help="More for sbatch.")
]
Image = Annotated[str, typer.Option("--image", help="Container image.")]
Secret = Annotated[
    str, typer.Option("--secret", help="Kubernetes secret with the store's credentials.")
]
Accelerator = Annotated[str, typer.Option("--accelerator", help="TPU, as the cluster names it.")]
Topology = Annotated[str, typer.Option("--topology", help="Of the TPU slice.")]
Samples = Annotated[int | None, typer.Option("--samples", help="Samples per cell.")]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a key of the spec; may be repeated."),
]


def verify(
    store: Store,
    *,
    blocks: Annotated[
        int, typer.Option("--blocks", help="Random finished blocks to compute again.", min=0)
    ] = 3,
    spec: Annotated[
        Path | None, typer.Option("--spec", help="The sweep's file, if it names files beside it.")
    ] = None,
    json: Json = False,
) -> None:
    """Check every checksum of a store, and compute random blocks of it again.

    Exit code 1 where something is damaged or differs; the next run repairs it.
    """
    from fabricarlo.verify import print_findings
    from fabricarlo.verify import verify as check

    findings = check(store, blocks=blocks, spec=spec)
    print_findings(findings, as_json=json)
    if not findings.passed:
        raise typer.Exit(1)


def status(store: Store, *, json: Json = False) -> None:
    """Print how far a sweep is, who works on what, and which blocks failed."""
    from fabricarlo.status import print_status

    print_status(store, as_json=json)


def launch(
    spec: Annotated[Path, typer.Argument(help="Sweep file (YAML).")],
    *,
    out: Annotated[str, typer.Option("--out", help="The store that all processes share.")],
    nodes: Nodes,
    gpus_per_node: Gpus = 0,
    array: Array = False,
    show: Print = False,
    scheduler: For = "slurm",
    process_per_node: PerNode = False,
    option: Options = None,
    image: Image = "fabricarlo:latest",
    secret: Secret = "fabricarlo-store",
    accelerator: Accelerator = "tpu-v5-lite-podslice",
    topology: Topology = "4x4",
    samples: Samples = None,
    sets: Sets = None,
) -> None:
    """Start a sweep on many machines: write the script or manifest, and submit it to Slurm."""
    from fabricarlo.launch import Job, launched, text_for
    from fabricarlo.manifests import Place

    more = (*(sets or ()), *([f"samples={samples}"] if samples is not None else ()))
    per_node, options = (gpus_per_node, process_per_node), tuple(option or ())
    job = Job.of(spec, out, nodes, *per_node, array=array, overrides=more, options=options)
    on_tpu = scheduler == "tpu"
    place = Place(image, secret, accelerator if on_tpu else None, topology if on_tpu else None)
    text = text_for(scheduler, job, place)
    typer.echo(text if show or scheduler != "slurm" else launched(text, job), nl=False)


def report(
    store: Store,
    *,
    out: Annotated[Path, typer.Option("-o", "--out", help="The page (HTML).")],
    png: Annotated[bool, typer.Option("--png", help="Also every chart as PNG beside it.")] = False,
) -> None:
    """Write a store as one self-contained page: the answer in words, charts, provenance."""
    from fabricarlo.report import write_report

    for path in write_report(store, out, png=png):
        typer.echo(f"{path}: {path.stat().st_size / 1e6:.1f} MB")


def compare(
    one: Annotated[str, typer.Argument(metavar="A", help="A store.")],
    other: Annotated[str, typer.Argument(metavar="B", help="The store that may differ.")],
    *,
    tolerance: Annotated[
        float, typer.Option("--tolerance", help="Relative shift that is never reported.", min=0)
    ] = 1e-5,
    json: Json = False,
) -> None:
    """Compare two stores: shifts of quantiles per variable and cell, from A to B.

    Exit code 1 where a shift cannot be chance, or bits differ that are promised to be the same.
    """
    from fabricarlo.compare import compare as compared
    from fabricarlo.compare import machine_form, print_comparison

    found = compared(one, other, tolerance=tolerance)
    if json:
        typer.echo(machine_form(found))
    else:
        print_comparison(found)
    if not found.passed:
        raise typer.Exit(1)


def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the sweep and its file.")],
) -> None:
    """Write a commented starter spec, NAME.yaml, and the schema for editors beside it."""
    from fabricarlo.starter import write_starter

    path, schema = write_starter(name)
    typer.echo(f"{path} and {schema.name} written; next: fabricarlo check {path}")


COMMANDS = (new, verify, status, launch, report, compare)
