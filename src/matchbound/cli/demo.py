"""``matchbound demo``: the main job, on data made from a seed."""

from __future__ import annotations

import sys
from typing import Annotated

from cyclopts import Parameter

from matchbound._version import __version__
from matchbound.cli import common
from matchbound.cli.options import ANSWER, Answer, Level, Quiet, Seed, Workers
from matchbound.show.records import Record

TOLD = """150 people made from seed {seed}, several images each, {pairs:,} comparisons. A few people are hard.

{table}
At threshold {threshold:g} the system accepts {far} of impostor comparisons, with an interval from {low} to {high}.
An interval that treats the comparisons as independent would be {ratio:.1f} times narrower, and wrong.
"""


def demo(
    *,
    threshold: Annotated[float, Parameter(help="Decision threshold.")] = 0.6,
    report: Annotated[str | None, Parameter(help="Also write a report to this file.")] = None,
    files: Annotated[
        str | None, Parameter(help="Write the files that README and the documentation use to this folder, and stop.")
    ] = None,
    level: Level = 0.95,
    seed: Seed = 7,
    answer: Answer = ANSWER,
    workers: Workers = None,
    quiet: Quiet = False,
) -> int:
    """Evaluate a small data set that is made on the spot.

    Example: `matchbound demo --files .`
    """
    if files is not None:
        return _write_files(files, quiet)
    from matchbound.calls.evaluate import evaluate
    from matchbound.data.example import demo_data
    from matchbound.results.number import records_of
    from matchbound.show.numbers import percent
    from matchbound.show.text import rates_table

    with common.listening(True) as told:
        data = demo_data(seed=seed)
        rates = evaluate(data, threshold, workers=workers)
        records: list[Record] = []
        for method in ("auto", "naive-wilson"):
            records += records_of([rates.far, rates.frr], method, level)
        own, naive = rates.far.interval("auto", level), rates.far.interval("naive-wilson", level)
    if not quiet:
        for note in rates.warnings:
            sys.stderr.write(f"warning: {note}\n")
    if report is not None:
        from matchbound.report.make import write_report

        with common.listening(True):
            write_report(
                report, data, threshold=threshold, level=level, title="Demonstration", workers=workers, rng=seed
            )
        if not quiet:
            sys.stderr.write(f"report written to {report}\n")
    text = TOLD.format(
        seed=seed,
        pairs=rates.far.comparisons + rates.frr.comparisons,
        table=rates_table(records[:2], colour=common.colour_wanted(answer.output)),
        threshold=threshold,
        far=percent(rates.far.estimate),
        low=percent(own.low),
        high=percent(own.high),
        ratio=own.width / naive.width,
    )
    source = {
        "version": __version__,
        "parameters": {"verb": "demo", "threshold": threshold},
        "seed": seed,
    }
    answer.deliver(records, lambda colour: text, told.texts, source)
    return 0


def _write_files(folder: str, quiet: bool) -> int:
    """Write the example files; where another file has the name of one, nothing is written."""
    import shutil
    import tempfile
    from pathlib import Path

    from matchbound.data.example_files import write_examples
    from matchbound.errors import UsageError

    target = Path(folder)
    with tempfile.TemporaryDirectory(prefix="matchbound-demo-") as place:
        made = write_examples(Path(place))
        for path in made:
            own = target / path.name
            if own.exists() and (not own.is_file() or own.read_bytes() != path.read_bytes()):
                raise UsageError(
                    f"{own} is there already and differs; choose another folder with --files, or remove it"
                )
        target.mkdir(parents=True, exist_ok=True)
        for path in made:
            if not (target / path.name).exists():
                shutil.copyfile(path, target / path.name)
    if not quiet:
        sys.stderr.write(f"wrote {len(made)} files to {target}: {', '.join(path.name for path in made)}\n")
    return 0
