"""A first spec to change: commented, checked by the tests, ready to run."""

import re
from pathlib import Path

from fabricarlo.errors import SpecError

TEXT = """\
# yaml-language-server: $schema=fabricarlo.schema.json
# An editor that knows YAML schemas completes and checks this file: the schema lies beside it.
#
#   fabricarlo check {file}                       what would be computed, and every mistake
#   fabricarlo run {file} --out {name}.zarr
#   fabricarlo report {name}.zarr -o {name}.html
schema_version: 1
sweep: {name}
description: >
  Write the question here: it stands at the top of every report. As it is, this sweep asks what
  air or liquid cooling, and the size of the cluster, do to one training step.
seed: 1  # the same seed gives the same numbers, on any number of machines
samples: 10_000  # per cell; raise it later: the same command extends the store

# Presets are named sets of values, each with its source: `fabricarlo list presets`.
base: [gpu/b200, workload/dense-2t, fabric/roce-800g]

# What is fixed. Values carry units; bits and bytes differ. `fabricarlo list quantities`.
set:
  collective: hierarchical  # an answer to a question: `fabricarlo list answers`

# What is compared: every combination is a cell. Presets, or numbers with units.
axes:
  cooling: [cooling/air, cooling/single-phase-45c]
  gpus: [16384, 65536]

# What is uncertain: a law each, the most important first. `fabricarlo list laws`.
draws:
  compute_efficiency: {{pert: {{low: 0.40, mode: 0.50, high: 0.60}}}}
  packet_loss_rate: {{times: {{loguniform: {{low: 0.1, high: 10}}}}}}  # of the preset's value
  switch_latency: {{times: {{lognormal: {{median: 1, p99: 2}}}}}}

# What is kept of every cell: the whole distribution of each of these.
outputs:
  - step_time
  - step_time_compute  # its parts add up to it
  - step_time_pipeline
  - step_time_bandwidth
  - step_time_latency
  - step_time_thermal
  - step_time_congestion
  - step_time_jitter
  - step_time_loss
  - scaling_efficiency
  - limiting_reason
keep:
  samples: true  # for shares of quantiles and sensitivities; summaries are always kept
  quantiles: [0.01, 0.1, 0.5, 0.9, 0.99]
"""


def write_starter(name: str, folder: Path = Path()) -> tuple[Path, Path]:
    """Write NAME.yaml and, beside it, the JSON Schema that it names; the paths written.

    Raises SpecError for a name that is none, or a file that is there.
    """
    stem = name.removesuffix(".yaml").removesuffix(".yml")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", stem):
        raise SpecError(
            [f"new: '{name}' is no name for a sweep; write letters, digits and - _ . such as "
             "my-sweep."]
        )  # fmt: skip
    path, schema = folder / f"{stem}.yaml", folder / "fabricarlo.schema.json"
    if path.exists():
        raise SpecError([f"new: {path} is there already; choose another name, or remove it."])
    import json

    from fabricarlo.schema import json_schema

    path.write_text(TEXT.format(name=stem, file=path.name), encoding="utf-8")
    schema.write_text(json.dumps(json_schema(), indent=2) + "\n", encoding="utf-8")
    return path, schema
