"""The tails of a spec: which ends of which uniforms are drawn more often than they occur."""

from collections.abc import Iterable, Iterator, Sequence

from fabric_kernels.catalogue import DIMENSIONS
from fabricarlo.spec.structure import TailBlock
from fabricarlo.sweep import Sweep, Tail
from fabricarlo.written import names
from fabricarlo.written.document import Document


def tails(
    document: Document, written: Sequence[TailBlock], drawn: Iterable[str]
) -> tuple[Tail, ...]:
    """The tails in the order of the file, without those that were refused."""
    known, found = (*map(str, drawn), *DIMENSIONS), []
    for k, block in enumerate(written):
        if (block.beyond is None) == (block.below is None):
            document.refuse(
                ("tail", k), "needs one end: `beyond`, a high quantile, or `below`, a low one."
            )
            continue
        name = block.stream.removesuffix(".preset")
        if name not in known and name == block.stream:
            text = names.unknown(name, "a draw or a slot of a stage", known, "fabricarlo check")
            document.refuse(("tail", k, "stream"), text)
        elif block.stream in (t.stream for t in found):
            document.refuse(("tail", k, "stream"), f"{block.stream} stands twice; keep one.")
        else:
            upper = block.beyond is not None
            edge = block.beyond if block.beyond is not None else block.below
            assert edge is not None
            found.append(Tail(block.stream, 1 - edge if upper else edge, upper, block.share))
    return tuple(found)


def idle_tails(sweep: Sweep, streams: Iterable[str]) -> Iterator[str]:
    """Why a tail has no effect: its stream is not among those that the sweep draws."""
    drawn = list(streams)
    for tail in sweep.tails:
        if tail.stream not in drawn:
            known = ", ".join(drawn) or "nothing"
            yield f"tail: {tail.stream} is drawn in no cell. This sweep draws: {known}."
