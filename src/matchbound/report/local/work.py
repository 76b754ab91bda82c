"""The state of the local page: the files it was given, and one report at a time, made in a thread."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

from matchbound.counting.run import Progress
from matchbound.errors import MatchboundError, UsageError, without_secrets
from matchbound.files.names import own_name
from matchbound.show.numbers import typed_number

ROLES = ("file", "second", "people")
"""What a file can be: the data, a second file that a format needs, a table of people with their groups."""


@dataclass(frozen=True)
class Settings:
    """The fields of the page; empty where nothing was chosen."""

    threshold: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    group: tuple[str, ...] = ()
    claim: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    title: str = ""
    reader: str = ""
    similarity: str = ""
    missing: str = ""
    distance: bool = False
    iso: bool = False

    @staticmethod
    def read(given: Mapping[str, Any]) -> Settings:
        """From what the page sent; what cannot be read is an error in its words."""
        values: dict[str, Any] = {}
        for item in fields(Settings):
            value = given.get(item.name, item.default)
            if isinstance(item.default, bool):
                if not isinstance(value, bool):
                    raise UsageError(f"{item.name} must be true or false")
                values[item.name] = value
            elif isinstance(item.default, str):
                values[item.name] = str(value or "").strip()
            else:
                mark = "\n" if item.name == "claim" else ","
                words = str(value or "").replace(";", mark).split(mark)
                values[item.name] = tuple(word.strip() for word in words if word.strip())
        values["threshold"] = _numbers("Thresholds", values["threshold"], float)
        values["far"] = _numbers("FARs", values["far"], typed_number)
        return Settings(**values)


def _numbers(label: str, words: Sequence[str], convert: Callable[[str], float]) -> tuple[float, ...]:
    try:
        return tuple(convert(word) for word in words)
    except ValueError:
        raise UsageError(f"{label} must be numbers, with commas between them; got {', '.join(words)}") from None


@dataclass(frozen=True)
class Made:
    """A report and the verdicts beside it: each a mapping with ``claim``, ``verdict`` and ``reason``."""

    html: str = field(repr=False)
    verdicts: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


Make = Callable[[Mapping[str, Sequence[str]], Settings, Progress], Made]
"""From files by their role and settings to a report; calls progress(done, total) on the way."""


class Work:
    """The state of the page; every method may be called from any thread."""

    def __init__(self, make: Make, files: Sequence[str] = (), settings: Settings | None = None) -> None:
        self._make, self._lock = make, threading.Lock()
        self._files: dict[str, list[str]] = {"file": list(files)} if files else {}
        self.settings = settings or Settings()
        self._stage, self._message = "ready" if files else "empty", ""
        self._done, self._total, self._number = 0, 0, 0
        self._made: Made | None = None
        self._thread: threading.Thread | None = None

    def take(self, role: str, path: Path | None) -> list[str]:
        """Use another file in a role from now on, or none; the files that it replaces. The old report is gone."""
        if role not in ROLES:
            raise UsageError(f"a file is one of {', '.join(ROLES)}")
        with self._lock:
            self._check_idle()
            replaced = self._files.pop(role, [])
            if path is not None:
                self._files[role] = [str(path)]
            self._stage, self._message, self._made = "ready" if "file" in self._files else "empty", "", None
            return replaced

    def start(self, settings: Settings) -> None:
        """Begin a report with these settings."""
        with self._lock:
            self._check_idle()
            if "file" not in self._files:
                raise UsageError("choose a file first")
            self.settings, self._made = settings, None
            self._stage, self._message, self._done, self._total = "working", "", 0, 0
            self._thread = threading.Thread(target=self._run, args=(dict(self._files), settings), daemon=True)
            self._thread.start()

    def state(self) -> dict[str, Any]:
        """What the page shows: ``stage`` is empty, ready, working, done or failed; ``report`` 0 where there is none."""
        with self._lock:
            made = self._made
            return {
                "stage": self._stage,
                "message": self._message,
                "names": {role: [own_name(name) for name in names] for role, names in self._files.items()},
                "done": self._done,
                "total": self._total,
                "report": 0 if made is None else self._number,
                "verdicts": [] if made is None else [dict(item) for item in made.verdicts],
                "warnings": [] if made is None else list(made.warnings),
            }

    @property
    def html(self) -> str | None:
        """The report, or None."""
        with self._lock:
            return None if self._made is None else self._made.html

    def wait(self, seconds: float) -> None:
        """Wait for the report that is being made."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _check_idle(self) -> None:
        if self._stage == "working":
            raise UsageError("a report is being made; wait until it is done")

    def _progress(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = int(done), int(total)

    def _run(self, files: dict[str, list[str]], settings: Settings) -> None:
        made, message = None, ""
        try:
            made = self._make(files, settings, self._progress)
        except MatchboundError as error:
            message = without_secrets(str(error))
        except MemoryError:
            message = "not enough memory for these data"
        except Exception as error:  # the page must not wait for ever
            message = f"a defect of matchbound itself ({type(error).__name__})"
        for folder in {os.path.dirname(name) for names in files.values() for name in names} - {""}:
            message = message.replace(folder + os.sep, "")  # a file has its own name, wherever it lies
        with self._lock:
            self._made, self._message = made, message
            self._stage = "failed" if made is None else "done"
            self._number += 1
