"""Ctrl-C and SIGTERM: finish what ends soon, record it, leave; a second signal leaves at once."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Iterator
from types import FrameType
from typing import Any

GRACE = 10.0  # s that work in flight may still take


class Interrupted(Exception):
    """A signal ended a run; what is finished is recorded."""

    def __init__(self, number: int) -> None:
        super().__init__(f"stopped by {signal.Signals(number).name}")
        self.number = number


class Interrupt:
    """Whether, and since when, the run has been asked to stop."""

    def __init__(self) -> None:
        self.number: int | None = None
        self._since = 0.0

    def ask(self, number: int, _frame: FrameType | None = None) -> None:
        """Signal handler."""
        if self.number is not None:
            os._exit(128 + number)
        self.number, self._since = number, time.monotonic()

    @property
    def asked(self) -> bool:
        """Start nothing new."""
        return self.number is not None

    @property
    def overdue(self) -> bool:
        """Drop what is in flight."""
        return self.asked and time.monotonic() - self._since > GRACE

    @contextlib.contextmanager
    def listening(self) -> Iterator["Interrupt"]:
        """Listen while inside; only the main thread can."""
        if threading.current_thread() is not threading.main_thread():
            yield self
            return
        numbers = (signal.SIGINT, signal.SIGTERM)
        before: dict[int, Any] = {n: signal.signal(n, self.ask) for n in numbers}
        try:
            yield self
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
