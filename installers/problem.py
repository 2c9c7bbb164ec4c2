"""What an installer says when it leaves a file alone."""

from __future__ import annotations

from pathlib import Path

from lorehooks.core.errors import LoreError


class RefusedError(LoreError):
    """A file that is left as it is, with the place that stands in the way and what a person can paste instead.

    `line` and `column` count from 1 and are 0 where the whole file is meant. `snippet` is what we would have added.
    `passing` marks what may be over in a moment: a file that its host is just writing.
    """

    code = "refused"
    status = 409

    def __init__(
        self,
        path: Path | str,
        reason: str,
        *,
        line: int = 0,
        column: int = 0,
        snippet: str = "",
        hint: str = "",
        passing: bool = False,
    ) -> None:
        place = f"{path}:{line}:{column}" if line else str(path)
        super().__init__(f"{place}: {reason}. Nothing was changed in it", hint=hint)
        self.path = Path(path)
        self.reason = reason
        self.line = line
        self.column = column
        self.snippet = snippet
        self.passing = passing


class ChangedError(RefusedError):
    """Another program wrote the file between our reading and our writing."""

    def __init__(self, path: Path | str) -> None:
        super().__init__(path, "another program is writing it", hint="run the command again", passing=True)
