"""The answer in words: sentences that say what the numbers say, each with its interval."""

from collections.abc import Iterator

import numpy as np

from fabricarlo.report.facts import MAIN, Facts, Scale
from fabricarlo.report.tables import Table

TAIL = 0.99
MEANINGS = {"thermal": "the clock (power cap and heat)"}


def sentences(facts: Facts, tables: dict[str, Table]) -> list[str]:
    """What the store answers, the most important first."""
    made = [*_extremes(facts), *_axes(facts, tables), *_costs(facts, tables)]
    return [*made, *_draws(tables, facts), *_flags(facts, tables)]


def cautions(facts: Facts) -> list[str]:
    """What a reader must know before trusting the numbers."""
    attrs, found = facts.attrs, []
    if attrs.get("state") != "finished":
        found.append(f"The sweep is not complete (state: {attrs.get('state')}): cells are missing.")
    for name in facts.numbers:
        bad = float(np.maximum(facts.flat(f"{name}_nonfinite"), 0).sum())
        if bad:
            found.append(
                f"{bad:,.0f} samples of {name} are not finite; they are left out of its numbers."
            )
    if int(attrs.get("replicates", 1)) < 2:
        found.append("There is one replicate only, so there are no intervals: rerun with 8.")
    if attrs.get("tail"):
        found.append(
            f"Samples are weighted; drawn more often: {attrs['tail']}. What needs plain samples or "
            "histograms is left out."
        )
    if facts.samples is None and not attrs.get("tail"):
        found.append(
            "No samples were kept: shares of quantiles and sensitivities need "
            "'keep: {samples: true}'."
        )
    return found


def number(value: float, scale: Scale, digits: int = 4) -> str:
    """A value of an output for people."""
    return f"{value * scale.factor:,.{digits}g} {scale.symbol}".strip()


def spread(ends: np.ndarray, scale: Scale) -> str:
    """An interval in brackets; nothing where there is none."""
    if not np.isfinite(ends).all():
        return ""
    low, high = (float(v) for v in ends)
    return f" (95 % interval {number(low, scale)} to {number(high, scale)})"


def _level(facts: Facts) -> tuple[int, str]:
    k = facts.nearest(TAIL)
    return k, f"{100 * facts.quantiles[k]:g} % quantile of {facts.main}"


def _extremes(facts: Facts) -> Iterator[str]:
    k, what = _level(facts)
    values, ends = facts.flat(facts.main)[:, k], facts.flat(f"{facts.main}_interval")[:, k]
    scale = facts.scale(facts.main)
    known = np.flatnonzero(np.isfinite(values))
    if not len(known):
        return
    if len(known) == 1:
        c = int(known[0])
        yield f"The {what} is {number(values[c], scale)}{spread(ends[c], scale)}."
        return
    lowest, highest = (int(known[f(values[known])]) for f in (np.argmin, np.argmax))
    texts = {
        word: f"{word} with {facts.cell_name(c)}: {number(values[c], scale)}"
        f"{spread(ends[c], scale)}"
        for word, c in (("lowest", lowest), ("highest", highest))
    }
    first, second = ("highest", "lowest") if facts.better(facts.main) > 0 else ("lowest", "highest")
    ratio = values[highest] / values[lowest] if values[lowest] > 0 else np.nan
    times = f" The highest is {ratio:.3g} times the lowest." if np.isfinite(ratio) else ""
    yield (f"Of {len(known):,} designs, the {what} is {texts[first]}, and {texts[second]}.{times}")


def _axes(facts: Facts, tables: dict[str, Table]) -> Iterator[str]:
    """For each axis the change from its first label to the one that changes most."""
    if "differences" not in tables:
        return
    main, scale = facts.numbers.index(facts.main), facts.scale(facts.main)
    rows = [r for r in tables["differences"].rows if r[0] == main and r[4] == "p99"]
    found = []
    for a, axis in enumerate(facts.axes):
        mine = [r for r in rows if r[1] == a and np.isfinite(r[5])]
        by_label = {lab: [r for r in mine if r[2] == lab] for lab in {r[2] for r in mine}}
        if not by_label:
            continue
        label, most = max(by_label.items(), key=lambda kv: abs(np.mean([r[5] for r in kv[1]])))
        found.append((abs(np.mean([r[5] for r in most])), axis, label, most))
    for _, axis, label, most in sorted(found, key=lambda f: -f[0]):
        yield _change(facts, axis, label, most, scale)


def _change(facts: Facts, axis: str, label: int, rows: list, scale: Scale) -> str:
    names = facts.labels[axis]
    shift, relative = np.mean([r[5] for r in rows]), np.nanmean([r[8] for r in rows])
    span = f", from {min(r[5] for r in rows):+.3g} to {max(r[5] for r in rows):+.3g} "
    span = f"{span}{scale.symbol} over the other axes" if len(rows) > 1 else ""
    sure = [r for r in rows if np.isfinite(r[6]) and (r[6] > 0 or r[7] < 0)]
    known = any(np.isfinite(r[6]) for r in rows)
    proof = f"; the 95 % interval excludes zero in {len(sure)} of {len(rows)}" if known else ""
    return (
        f"From {axis} {names[0]} to {names[label]} the 99 % quantile of {facts.main} changes by "
        f"{shift:+.3g} {scale.symbol} ({100 * relative:+.2g} %) on average{span}{proof}."
    )


def _costs(facts: Facts, tables: dict[str, Table]) -> Iterator[str]:
    """What the step time is made of besides computing, and what makes its tail."""
    if "parts" not in tables:
        return
    found: dict[str, dict[str, float]] = {}
    for of in ("mean", "p99"):
        rows = [r for r in tables["parts"].rows if r[1] == of and np.isfinite(r[5])]
        found[of] = {
            part: float(np.mean([r[5] for r in rows if r[2] == part]))
            for part in dict.fromkeys(r[2] for r in rows)
        }
    costs = {p: s for p, s in found["mean"].items() if p != "compute"}
    if costs:
        ranked = sorted(costs.items(), key=lambda kv: -kv[1])[:3]
        text = ", ".join(f"{MEANINGS.get(p, p)} {100 * s:.2g} %" for p, s in ranked)
        yield f"Beside computing, the mean {MAIN} goes most to: {text} (average over the designs)."
    if found["p99"]:
        grown = {p: s - found["mean"].get(p, 0.0) for p, s in found["p99"].items()}
        part = max(grown, key=grown.__getitem__)
        yield (
            f"The tail is made by {MEANINGS.get(part, part)}: its share is "
            f"{100 * found['p99'][part]:.2g} % at the 99 % quantile and "
            f"{100 * found['mean'].get(part, 0):.2g} % of the mean."
        )


def _draws(tables: dict[str, Table], facts: Facts) -> Iterator[str]:
    if "indices" not in tables:
        return
    main = facts.numbers.index(facts.main)
    rows = [r for r in tables["indices"].rows if r[0] == main and r[3] == "first order"]
    means = {d: np.nanmean([r[4] for r in rows if r[2] == d]) for d in {r[2] for r in rows}
             if any(np.isfinite(r[4]) for r in rows if r[2] == d)}  # fmt: skip
    ranked = sorted(means.items(), key=lambda kv: -kv[1])[:3]
    if ranked:
        text = ", ".join(f"{d} {100 * v:.2g} %" for d, v in ranked)
        yield (
            f"Of what is drawn, knowing one quantity alone would remove this share of the variance "
            f"of {facts.main}: {text} (average over the designs)."
        )


def _flags(facts: Facts, tables: dict[str, Table]) -> Iterator[str]:
    for flag in facts.flags:
        rows = [r for r in tables["shares"].rows if r[1] == flag] if "shares" in tables else []
        means = {
            v: np.mean([r[3] for r in rows if r[2] == v]) for v in dict.fromkeys(r[2] for r in rows)
        }
        ranked = sorted(means.items(), key=lambda kv: -kv[1])[:3]
        if ranked:
            text = ", ".join(f"{v.replace('_', ' ')} in {100 * s:.3g} %" for v, s in ranked)
            yield f"{flag.replace('_', ' ').capitalize()}: {text} of all samples."
