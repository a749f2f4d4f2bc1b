"""What a person, a log file or a program sees while a sweep runs."""

import json
import sys
import time
from typing import Any, Protocol, TextIO


class Reporter(Protocol):
    """Hears of a run; `samples` are samples of all cells."""

    def start(self, name: str, samples: int, done: int) -> None:
        """The sweep begins with `done` of its samples finished before."""

    def phase(self, text: str) -> None:
        """What happens now."""

    def advance(self, samples: int) -> None:
        """So many samples more are finished."""

    def finish(self, text: str) -> None:
        """How it ended."""


class Silent(Reporter):
    """Says nothing: for use from Python."""


class Events(Reporter):
    """One JSON object a line, for machines."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.done = 0

    def _say(self, event: str, fields: dict[str, Any]) -> None:
        line = {"event": event, "time": round(time.time(), 3)} | fields
        print(json.dumps(line), file=self.stream, flush=True)

    def start(self, name: str, samples: int, done: int) -> None:  # noqa: D102 - as Reporter says
        self.done = done
        self._say("start", {"sweep": name, "samples": samples, "done": done})

    def phase(self, text: str) -> None:  # noqa: D102 - as Reporter says
        self._say("phase", {"phase": text})

    def advance(self, samples: int) -> None:  # noqa: D102 - as Reporter says
        self.done += samples
        self._say("progress", {"done": self.done})

    def finish(self, text: str) -> None:  # noqa: D102 - as Reporter says
        self._say("finish", {"message": text})


class Lines(Reporter):
    """Plain lines for a log, at most one every ten seconds."""

    EVERY = 10.0

    def __init__(self) -> None:
        self.samples = self.done = self.first = 0
        self.since = self.last = time.monotonic()

    def start(self, name: str, samples: int, done: int) -> None:  # noqa: D102 - as Reporter says
        self.samples, self.done, self.first = samples, done, done
        self.since = self.last = time.monotonic()
        print(f"{name}: {samples:,} samples, {done:,} of them finished before", flush=True)

    def phase(self, text: str) -> None:  # noqa: D102 - as Reporter says
        print(text, flush=True)

    def advance(self, samples: int) -> None:  # noqa: D102 - as Reporter says
        self.done += samples
        now = time.monotonic()
        if now - self.last >= self.EVERY:
            self.last = now
            rate = (self.done - self.first) / (now - self.since)
            left = (self.samples - self.done) / rate
            share = self.done / self.samples
            print(f"{share:6.1%}  {rate:,.0f} samples/s  {left:,.0f} s left", flush=True)

    def finish(self, text: str) -> None:  # noqa: D102 - as Reporter says
        print(text, flush=True)


class Bar(Reporter):
    """One bar on a terminal: phase, samples a second, time left."""

    def __init__(self) -> None:
        from rich import progress

        self.bar = progress.Progress(
            progress.TextColumn("{task.description}"),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TextColumn("{task.fields[rate]}"),
            progress.TimeRemainingColumn(),
        )
        self.task: progress.TaskID | None = None

    def start(self, name: str, samples: int, done: int) -> None:  # noqa: D102 - as Reporter says
        self.bar.start()
        self.task = self.bar.add_task(name, total=samples, completed=done, rate="")

    def phase(self, text: str) -> None:  # noqa: D102 - as Reporter says
        if self.task is not None:
            self.bar.update(self.task, description=text)

    def advance(self, samples: int) -> None:  # noqa: D102 - as Reporter says
        assert self.task is not None
        self.bar.advance(self.task, samples)
        speed = self.bar.tasks[0].speed
        self.bar.update(self.task, rate=f"{speed:,.0f} samples/s" if speed else "")

    def finish(self, text: str) -> None:  # noqa: D102 - as Reporter says
        self.bar.stop()
        print(text)


def reporter(*, as_json: bool) -> Reporter:
    """The reporter for this stdout."""
    if as_json:
        return Events()
    return Bar() if sys.stdout.isatty() else Lines()
