"""The command line: arguments in, exit code out; everything scientific is imported by need."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from fabricarlo import __version__
from fabricarlo.commands import COMMANDS
from fabricarlo.errors import FabricarloError

app = typer.Typer(
    name="fabricarlo",
    help="Monte Carlo sweeps of AI-cluster designs: network, heat and power in one sample.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Spec = Annotated[Path, typer.Argument(help="Sweep file (YAML).")]
Out = Annotated[
    str, typer.Option("--out", help="The Zarr store: a directory, or s3://BUCKET/NAME.")
]
Sets = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="KEY=VALUE", help="Replace a key of the spec; may be repeated."),
]
Samples = Annotated[int | None, typer.Option("--samples", help="Samples per cell.")]

Overwrite = Annotated[bool, typer.Option("--overwrite", help="Throw an older store away.")]
Process = Annotated[
    str | None,
    typer.Option(
        "--process",
        metavar="K/N",
        help="Take share K of N of the blocks; default from SLURM_PROCID/SLURM_NTASKS.",
    ),
]
Elastic = Annotated[
    bool, typer.Option("--elastic", help="Claim blocks beside other processes that do so.")
]
Distributed = Annotated[
    bool,
    typer.Option("--distributed", help="Start devices that span hosts (a TPU slice) together."),
]
BlockLanes = Annotated[
    int | None,
    typer.Option("--block", help="Samples computed and written at once, a power of two."),
]
TileLanes = Annotated[
    int | None,
    typer.Option("--tile", help="Samples of one compiled call, a power of two, if they must fit."),
]
Json = Annotated[bool, typer.Option("--json", help="One JSON event a line.")]


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"fabricarlo {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None: ...


@app.command()
def run(
    spec: Spec,
    out: Out,
    samples: Samples = None,
    sets: Sets = None,
    overwrite: Overwrite = False,
    process: Process = None,
    elastic: Elastic = False,
    distributed: Distributed = False,
    block: BlockLanes = None,
    tile: TileLanes = None,
    json: Json = False,
) -> None:
    """Run a sweep into a store, or go on where it stopped."""
    share = None if elastic and process is None else _share(process)
    if distributed:
        from fabricarlo.multihost import join_hosts

        host = join_hosts()
        share = share if process is not None or elastic else host
    from fabricarlo.progress import reporter
    from fabricarlo.running import run as run_sweep

    run_sweep(
        spec,
        out,
        overrides=_overrides(samples, sets),
        overwrite=overwrite,
        process=share,
        elastic=elastic,
        block=block,
        tile=tile,
        reporter=reporter(as_json=json),
    )


@app.command()
def check(spec: Spec, samples: Samples = None, sets: Sets = None) -> None:
    """Check a sweep and print its plan; compute nothing but a short probe of its speed."""
    from fabricarlo.check import describe
    from fabricarlo.spec import load_spec

    describe(load_spec(spec, _overrides(samples, sets)))


@app.command()
def show(
    store: Annotated[str, typer.Argument(help="A store: a directory, or s3://BUCKET/NAME.")],
    output: Annotated[
        list[str] | None, typer.Option("--output", help="Only this output; may be repeated.")
    ] = None,
) -> None:
    """Print what a store holds: quantiles of every output in every cell."""
    from fabricarlo.show import show_store

    show_store(store, output or [])


@app.command()
def validate(
    tables: Annotated[list[Path], typer.Argument(metavar="TABLE...", help="Tables (CSV).")],
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object per table, a line each, every row.")
    ] = False,
    every_row: Annotated[bool, typer.Option("--all", help="Print every row.")] = False,
) -> None:
    """Run the kernels on reference tables; exit code 1 where a criterion does not hold."""
    from fabricarlo.validation.kinds import chosen, validated
    from fabricarlo.validation.shown import machine_form, print_report

    passed = True
    for table, kind in chosen(tables):
        report = validated(table, kind)
        passed = passed and report.passed
        if json:
            typer.echo(machine_form(report))
        else:
            print_report(report, every_row=every_row)
    if not passed:
        raise typer.Exit(1)


@app.command(name="list")
def list_(
    what: Annotated[
        str | None, typer.Argument(help="quantities, presets, answers or laws; all without it.")
    ] = None,
) -> None:
    """List what a spec may name."""
    from fabricarlo.listing import print_list

    print_list(what)


@app.command()
def schema() -> None:
    """Print the JSON Schema of a spec, for editors."""
    import json

    from fabricarlo.schema import json_schema

    typer.echo(json.dumps(json_schema(), indent=2))


for _command in COMMANDS:
    app.command()(_command)


def _overrides(samples: int | None, sets: list[str] | None) -> list[str]:
    return [*(sets or []), *([f"samples={samples}"] if samples is not None else [])]


def _share(text: str | None) -> tuple[int, int] | None:
    """K/N from the option, else from Slurm's environment."""
    if text is None:
        rank, size = os.environ.get("SLURM_PROCID"), os.environ.get("SLURM_NTASKS")
        text = f"{rank}/{size}" if rank and size else None
    if text is None:
        return None
    part, slash, of = text.partition("/")
    numbers = (part + of).isascii() and part.isdigit() and of.isdigit()
    if not (slash and numbers and int(part) < int(of)):
        raise FabricarloError(
            f"--process: '{text}' is no share; write K/N with 0 <= K < N, e.g. 0/4 "
            "for the first of four."
        )
    return int(part), int(of)


def main() -> None:
    """Entry point: prints an explained error without a traceback, and sets the exit code."""
    try:
        if code := app(standalone_mode=False):  # what a command ends with by typer.Exit
            sys.exit(code)
    except typer.Exit as stop:
        sys.exit(stop.exit_code)
    except FabricarloError as error:
        typer.echo(str(error), err=True)
        sys.exit(error.exit_code)
    except Exception as error:
        sys.exit(_other(error))


def _other(error: Exception) -> int:
    """Exit code of an error that is no FabricarloError; prints what it has to say."""
    show_usage, code = getattr(error, "show", None), getattr(error, "exit_code", None)
    if show_usage is not None and code is not None:  # typer's own errors of usage
        show_usage()
        return code
    if (number := getattr(error, "number", None)) is not None:
        typer.echo(f"{error}; what is finished is kept: the same command goes on.", err=True)
        return 128 + number
    raise error


if __name__ == "__main__":
    main()
