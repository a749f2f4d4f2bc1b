"""What a wrong spec is told: place, key path, what was found, what is allowed."""

from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from fabricarlo.errors import FabricarloError, SpecError
from fabricarlo.spec import load_spec

HEAD = """\
schema_version: 1
sweep: small
seed: 7
samples: 1000
outputs: [step_time]
"""


def messages(text: str, *overrides: str) -> tuple[str, ...]:
    with pytest.raises(SpecError) as caught:
        load_spec(text, overrides)
    assert isinstance(caught.value, FabricarloError)
    assert str(caught.value) == "\n".join(caught.value.messages)
    return caught.value.messages


WRONG = YAML(typ="safe").load(Path(__file__).with_name("wrong_specs.yaml").read_text())


@pytest.mark.parametrize("wrong", WRONG["added"], ids=[w["text"] for w in WRONG["added"]])
def test_one_wrong_thing_is_one_message(wrong: dict[str, Any]) -> None:
    assert list(messages(HEAD + wrong["text"] + "\n")) == wrong["messages"]


@pytest.mark.parametrize("wrong", WRONG["replaced"], ids=[w["new"] for w in WRONG["replaced"]])
def test_the_required_keys_are_checked(wrong: dict[str, Any]) -> None:
    assert wrong["old"] in HEAD
    assert list(messages(HEAD.replace(wrong["old"], wrong["new"]))) == wrong["messages"]


def test_every_error_of_a_file_is_told_at_once_in_the_order_of_the_file() -> None:
    entries: dict[str, dict[str, str]] = {"set": {}, "draws": {}}
    for wrong in WRONG["added"]:
        block, _, entry = wrong["text"][:-1].partition(": {")
        if block in entries and "\n" not in entry:
            entries[block][entry.partition(":")[0]] = entry  # a name stands once in a block
    text = HEAD
    for block, lines in entries.items():
        text += f"{block}:\n" + "".join(f"  {line}\n" for line in lines.values())
    found = messages(text)
    ends = [6, 6 + len(entries["set"]), 7 + len(entries["set"]), text.count("\n")]
    assert [int(m.split(":")[1]) for m in found] == [
        *range(ends[0] + 1, ends[1] + 1),
        *range(ends[2] + 1, ends[3] + 1),
    ]
    assert len(found) >= 10


def test_more_draws_than_dimensions_are_refused() -> None:
    one = "  {}: {{plus: {{uniform: {{low: 0, high: 1e-9}}}}}}\n"
    names = [f"{kind}_time" for kind in ("step", "compute", "allreduce")]
    names += [
        "step_time_compute", "step_time_pipeline", "step_time_bandwidth", "step_time_latency",
        "step_time_thermal", "step_time_congestion", "step_time_jitter", "step_time_loss",
        "bubble", "exposed_communication_time", "jitter_stall", "loss_stall", "hop_latency",
        "queueing_delay", "congestion_delay", "exchange_latency", "fabric_transfer_time",
        "nvlink_transfer_time",
    ]  # fmt: skip
    text = HEAD + "design: sensitivity\ndraws:\n" + "".join(one.format(n) for n in names)
    assert messages(text) == (
        "spec:7:1: draws: 21 draws and 0 laws inside presets; at most 20 are allowed with "
        "design: sensitivity: set the least important.",
    )
    assert len(load_spec(text.replace("design: sensitivity\n", "")).draws) == 21


LAUGHS = "a: &a [1, 1, 1, 1, 1, 1, 1, 1]\n" + "".join(
    f"{b}: &{b} [{', '.join([f'*{a}'] * 8)}]\n" for a, b in pairwise("abcdefgh")
)
TAB = "spec:3:1: not YAML: a tab cannot indent or start a value; use spaces."
NOT_YAML = [
    ("", "spec: is no mapping; a spec has keys like sweep and seed."),
    ("- 1\n- 2\n", "spec: is no mapping; a spec has keys like sweep and seed."),
    ("seed: 7\nset:\n\tgpus: 8\n", TAB),
    ("axes: {gpus: [1\n", "spec:3:1: not YAML: expected ',' or ']', but got '<stream end>'."),
    ("a: 1\n---\nb: 2\n", "spec:2:1: not YAML: but found another document."),
    ("a: &x [*x]\n", "spec: not YAML: maximum recursion depth exceeded"),
    (LAUGHS, "spec: not YAML: it has too many keys; an alias may repeat one another."),
]  # fmt: skip


@pytest.mark.parametrize(("text", "expected"), NOT_YAML)
def test_what_is_not_yaml_is_told_with_its_place(text: str, expected: str) -> None:
    (found,) = messages(text + "\n")
    assert found.startswith(expected)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    assert messages(str(tmp_path / "no.yaml")) == (f"{tmp_path}/no.yaml: no such file.",)
    assert messages(str(tmp_path)) == (f"{tmp_path}: cannot be read: Is a directory.",)


def test_a_file_that_is_no_text_is_told(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_bytes(b"seed: \xff")
    assert messages(str(tmp_path / "x.yaml")) == (
        f"{tmp_path}/x.yaml: is not UTF-8 text (byte 6).",
    )


@pytest.mark.parametrize("wrong", WRONG["overridden"], ids=[w["text"] for w in WRONG["overridden"]])
def test_an_override_is_checked_and_named(wrong: dict[str, Any]) -> None:
    text = HEAD + "draws: {cable_length: {uniform: {low: 1 m, high: 9 m}}}\n"
    load_spec(text)
    assert list(messages(text, wrong["text"])) == wrong["messages"]
