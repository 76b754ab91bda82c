"""Signals that wait for a safe moment: between blocks, never in the middle of an addition or of a file."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

HELD = ("SIGINT", "SIGTERM")


class HeldSignals:
    """While this is open, handlers of Ctrl-C and SIGTERM that are Python functions wait until `deliver` is called.

    A handler that raises (as Python's own does for Ctrl-C) then raises out of `deliver`, where the caller can stop in
    good order. Signals that nobody delivered are delivered at the end, unless an exception is on its way already.
    Signals reach Python in the main thread only; in any other thread this does nothing.
    """

    def __init__(self) -> None:
        self._before: dict[int, Callable[[int, FrameType | None], object]] = {}
        self._waiting: list[int] = []
        self._holding = False

    def __enter__(self) -> HeldSignals:
        if threading.current_thread() is threading.main_thread():
            self._holding = True
            try:
                for name in HELD:
                    number = getattr(signal, name)
                    handler = signal.getsignal(number)
                    if callable(handler):
                        self._before[number] = handler
                        signal.signal(number, self._take)
            except BaseException:  # a signal that was not held yet
                self._restore()
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._restore()
        if kind is None:
            self.deliver()

    def _restore(self) -> None:
        """Put the handlers back, that of Ctrl-C last: it may raise as soon as it is there."""
        try:
            for number in reversed(self._before):
                signal.signal(number, self._before[number])
        finally:
            self._holding = False  # a handler that could not be put back passes signals on

    def deliver(self) -> None:
        """Hand the signals that arrived to the handlers that were there before; these may raise."""
        while self._waiting:
            number = self._waiting.pop(0)
            self._before[number](number, None)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Inside, signals are not held: for waits that may be long and that may be given up at any point."""
        was, self._holding = self._holding, False
        try:
            self.deliver()
            yield
        finally:
            self._holding = was

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._holding:
            self._waiting.append(number)
        else:
            self._before[number](number, frame)
