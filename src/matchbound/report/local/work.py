"""What the local page works on: one file, one report at a time, made in a thread while the page looks on."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from matchbound.counting.executors import Progress
from matchbound.errors import MatchboundError, UsageError, without_secrets
from matchbound.files.names import own_name
from matchbound.show.numbers import typed_number


@dataclass(frozen=True)
class Settings:
    """What the page asks for; empty where nothing was chosen."""

    threshold: tuple[float, ...] = ()
    far: tuple[float, ...] = ()
    group: tuple[str, ...] = ()
    claim: tuple[str, ...] = ()
    distance: bool = False
    title: str | None = None

    @staticmethod
    def read(given: Mapping[str, Any]) -> Settings:
        """From what the page sent; what cannot be read is an error in words."""
        distance = given.get("distance", False)
        if not isinstance(distance, bool):
            raise UsageError("distance must be true or false")
        return Settings(
            _numbers(given, "threshold", "thresholds"),
            _numbers(given, "far", "FARs"),
            tuple(_words(given, "group", ",")),
            tuple(_words(given, "claim", "\n")),
            distance,
            str(given.get("title") or "").strip() or None,
        )


@dataclass(frozen=True)
class Made:
    """A report and the verdicts beside it: each a mapping with ``claim``, ``verdict`` and ``reason``."""

    html: str = field(repr=False)
    verdicts: Sequence[Mapping[str, Any]] = ()
    warnings: Sequence[str] = ()


Make = Callable[[Sequence[str], Settings, Progress], Made]
"""From files and settings to a report; calls progress(done, total) on the way."""


class Work:
    """The state of the page; every method may be called from any thread."""

    def __init__(self, make: Make, files: Sequence[str] = (), settings: Settings | None = None) -> None:
        self._make, self._lock = make, threading.Lock()
        self._files = list(files)
        self.settings = settings or Settings()
        self._stage, self._message = ("ready" if files else "empty"), ""
        self._done, self._total, self._number = 0, 0, 0
        self._made: Made | None = None
        self._thread: threading.Thread | None = None

    def take(self, path: Path) -> None:
        """Work on another file from now on."""
        with self._lock:
            self._must_be_idle()
            self._files, self._stage, self._message = [str(path)], "ready", ""

    def start(self, settings: Settings) -> None:
        """Begin a report with these settings."""
        with self._lock:
            self._must_be_idle()
            if not self._files:
                raise UsageError("choose a file first")
            self.settings = settings
            self._stage, self._message, self._done, self._total = "working", "", 0, 0
            self._thread = threading.Thread(target=self._run, args=(list(self._files), settings), daemon=True)
            self._thread.start()

    def state(self) -> dict[str, Any]:
        """What the page shows: ``stage`` is empty, ready, working, done or failed."""
        with self._lock:
            made = self._made
            return {
                "stage": self._stage,
                "message": self._message,
                "names": [own_name(name) for name in self._files],
                "done": self._done,
                "total": self._total,
                "number": self._number,
                "verdicts": [] if made is None else [dict(item) for item in made.verdicts],
                "warnings": [] if made is None else list(made.warnings),
            }

    @property
    def html(self) -> str | None:
        """The last report, or None."""
        with self._lock:
            return None if self._made is None else self._made.html

    def wait(self, seconds: float) -> None:
        """Wait for the report that is being made."""
        if self._thread is not None:
            self._thread.join(seconds)

    def _must_be_idle(self) -> None:
        if self._stage == "working":
            raise UsageError("a report is being made; wait until it is done")

    def _progress(self, done: int, total: int) -> None:
        with self._lock:
            self._done, self._total = int(done), int(total)

    def _run(self, files: list[str], settings: Settings) -> None:
        try:
            made = self._make(files, settings, self._progress)
        except MatchboundError as error:
            stage, message, made = "failed", without_secrets(str(error)), Made("")
        except MemoryError:
            stage, message, made = "failed", "not enough memory for these data", Made("")
        except Exception as error:  # the page must not wait for ever; the terminal shows the same
            stage, message, made = "failed", f"a defect of matchbound itself ({type(error).__name__})", Made("")
        else:
            stage, message = "done", ""
        with self._lock:
            self._stage, self._message = stage, message
            if stage == "done":
                self._made = made
                self._number += 1


def _numbers(given: Mapping[str, Any], name: str, told: str) -> tuple[float, ...]:
    try:
        return tuple(_number(word, name == "far") for word in _words(given, name, ","))
    except ValueError:
        raise UsageError(f"{told} must be numbers, with commas between them; got {given.get(name)}") from None


def _number(word: str, rate: bool) -> float:
    """A number; a rate may be written in percent."""
    return typed_number(word) if rate else float(word)


def _words(given: Mapping[str, Any], name: str, mark: str) -> list[str]:
    text = str(given.get(name) or "").replace(";", mark)
    return [word.strip() for word in text.split(mark) if word.strip()]
