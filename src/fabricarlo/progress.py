"""What a person, a log file or a program sees while a sweep runs."""

import json
import sys
import time
from typing import Any, Protocol, TextIO


class Reporter(Protocol):
    """Hears of a run; `samples` are samples of all cells."""

    def start(self, name: str, samples: int, done: int) -> None: ...
    def phase(self, text: str) -> None: ...
    def advance(self, samples: int) -> None: ...
    def finish(self, text: str) -> None: ...


class Silent:
    """Says nothing: for use from Python."""

    def start(self, name: str, samples: int, done: int) -> None: ...
    def phase(self, text: str) -> None: ...
    def advance(self, samples: int) -> None: ...
    def finish(self, text: str) -> None: ...


class Events:
    """One JSON object a line, for machines."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stdout
        self.done = 0

    def _say(self, event: str, fields: dict[str, Any]) -> None:
        line = {"event": event, "time": round(time.time(), 3)} | fields
        print(json.dumps(line), file=self.stream, flush=True)

    def start(self, name: str, samples: int, done: int) -> None:
        self.done = done
        self._say("start", {"sweep": name, "samples": samples, "done": done})

    def phase(self, text: str) -> None:
        self._say("phase", {"phase": text})

    def advance(self, samples: int) -> None:
        self.done += samples
        self._say("progress", {"done": self.done})

    def finish(self, text: str) -> None:
        self._say("finish", {"message": text})


class Lines:
    """Plain lines for a log, at most one every ten seconds."""

    EVERY = 10.0

    def __init__(self) -> None:
        self.samples = self.done = self.first = 0
        self.since = self.last = time.monotonic()

    def start(self, name: str, samples: int, done: int) -> None:
        self.samples, self.done, self.first = samples, done, done
        self.since = self.last = time.monotonic()
        print(f"{name}: {samples:,} samples, {done:,} of them finished before", flush=True)

    def phase(self, text: str) -> None:
        print(text, flush=True)

    def advance(self, samples: int) -> None:
        self.done += samples
        now = time.monotonic()
        if now - self.last >= self.EVERY:
            self.last = now
            rate = (self.done - self.first) / (now - self.since)
            left = (self.samples - self.done) / rate
            share = self.done / self.samples
            print(f"{share:6.1%}  {rate:,.0f} samples/s  {left:,.0f} s left", flush=True)

    def finish(self, text: str) -> None:
        print(text, flush=True)


class Bar:
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

    def start(self, name: str, samples: int, done: int) -> None:
        self.bar.start()
        self.task = self.bar.add_task(name, total=samples, completed=done, rate="")

    def phase(self, text: str) -> None:
        if self.task is not None:
            self.bar.update(self.task, description=text)

    def advance(self, samples: int) -> None:
        assert self.task is not None
        self.bar.advance(self.task, samples)
        speed = self.bar.tasks[0].speed
        self.bar.update(self.task, rate=f"{speed:,.0f} samples/s" if speed else "")

    def finish(self, text: str) -> None:
        self.bar.stop()
        print(text)


def reporter(*, as_json: bool) -> Reporter:
    """The reporter for this stdout."""
    if as_json:
        return Events()
    return Bar() if sys.stdout.isatty() else Lines()
