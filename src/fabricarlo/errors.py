"""What goes wrong in a way that its message explains: no traceback is needed for these."""

from collections.abc import Iterable


class FabricarloError(Exception):
    """Base of the errors that are printed as they are; `exit_code` is the command's."""

    exit_code = 2


class SpecError(FabricarloError):
    """A spec that cannot be run; holds every message, one a line."""

    def __init__(self, messages: Iterable[str]) -> None:
        self.messages = tuple(messages)
        super().__init__("\n".join(self.messages))


class StoreError(FabricarloError):
    """A store that cannot be read, written or continued.

    `resumable` says that the run failed midway: what was finished is kept, and the same command
    goes on.
    """

    def __init__(self, message: str, *, resumable: bool = False) -> None:
        super().__init__(message)
        self.resumable = resumable
        self.exit_code = 1 if resumable else 2


class BlocksFailed(FabricarloError):
    """A sweep whose other blocks are finished, while some could not be computed."""

    exit_code = 3
