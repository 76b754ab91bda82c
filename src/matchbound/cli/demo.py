"""``matchbound demo`` and ``matchbound warm``: the main workflow on synthetic data, and compiling before it."""

from __future__ import annotations

import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Any

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, collecting, wrote
from matchbound.errors import UsageError
from matchbound.files.writing import write_atomically

TEXT = """150 people made from seed {seed}, several images each, {pairs:,} comparisons.
A few people are hard.

{table}
At threshold {threshold:g} the system accepts {far} of impostor comparisons, with an
interval from {low} to {high}. An interval that treats the comparisons as
independent would be {ratio:.1f} times narrower, and wrong.
"""


def demo(
    *,
    threshold: Annotated[float, opt.DECISION] = 0.6,
    report: str | None = None,
    folder: Annotated[str | None, Parameter(name="--files")] = None,
    level: opt.Level = 0.95,
    seed: opt.Seed = 7,
    workers: opt.Workers = None,
    answer: opt.Answer = opt.ANSWER,
) -> Outcome | None:
    """The main workflow on synthetic data: 150 people made from a seed, FAR and FRR with intervals.

    Args:
        report: Also write a report to this file.
        folder: Write the files that README and the documentation use to this folder, and stop.
        workers: Threads; by default one per core.
    """
    if folder is not None:
        _write_files(Path(folder))
        return None
    from matchbound.calls.evaluate import evaluate
    from matchbound.data.example import demo_data
    from matchbound.report.make import write_report
    from matchbound.results.number import records_of
    from matchbound.show.columns import number_table
    from matchbound.show.numbers import percent

    data = demo_data(seed=seed)
    rates = evaluate(data, threshold, workers=workers)
    with collecting() as notes:
        records = [r for m in ("auto", "naive-wilson") for r in records_of([rates.far, rates.frr], m, level)]
        if report is not None:
            options: dict[str, Any] = {"threshold": threshold, "level": level, "workers": workers, "rng": seed}
            write_report(report, data, title="Demonstration", **options)
            wrote(report)

    far, _, naive, _ = records

    def text(colour: bool) -> str:
        return TEXT.format(
            seed=seed,
            pairs=rates.far.comparisons + rates.frr.comparisons,
            table=number_table(records[:2]).text(colour=colour),
            threshold=threshold,
            far=percent(far["estimate"]),
            low=percent(far["low"]),
            high=percent(far["high"]),
            ratio=(far["high"] - far["low"]) / (naive["high"] - naive["low"]),
        )

    return Outcome(records, text, notes=notes)


def _write_files(target: Path) -> None:
    """Write the example files; where another file has the name of one, nothing is written."""
    from matchbound.data.example import write_examples

    with tempfile.TemporaryDirectory(prefix="matchbound-demo-") as place:
        write_examples(Path(place))
        examples = sorted(Path(place).iterdir())
        for path in examples:
            own = target / path.name
            if own.exists() and own.read_bytes() != path.read_bytes():
                raise UsageError(f"{own} is there already and differs; name another folder with --files, or remove it")
        target.mkdir(parents=True, exist_ok=True)
        for path in examples:
            write_atomically(target / path.name, path.read_bytes())
    wrote(f"{len(examples)} files to {target}: {', '.join(path.name for path in examples)}")


def warm(*, quiet: opt.Quiet = False) -> None:
    """Compile the kernels, once per installation."""
    from matchbound.counting.allpairs import warm as compile_kernels

    start = time.perf_counter()
    compile_kernels()
    if not quiet:
        sys.stderr.write(f"compiled in {time.perf_counter() - start:.0f} s; later runs start at once\n")
