"""``matchbound demo``: the main workflow on synthetic data."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from matchbound.cli import options as opt
from matchbound.cli.command import Outcome, collecting
from matchbound.cli.progress import quiet as is_quiet
from matchbound.cli.progress import wrote
from matchbound.errors import UsageError

TEXT = """150 people made from seed {seed}, several images each, {pairs:,} comparisons. A few people are hard.

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
    level: opt.Level = 0.95,
    seed: opt.Seed = 7,
    workers: opt.Workers = None,
    answer: opt.Answer = opt.ANSWER,
    quiet: opt.Quiet = False,
) -> Outcome | int:
    """The main workflow on synthetic data: 150 people made from a seed, FAR and FRR with intervals.

    Example: `matchbound demo --files .`
    """
    if files is not None:
        return _write_files(Path(files))
    from matchbound.calls.evaluate import evaluate
    from matchbound.data.example import demo_data
    from matchbound.report.make import write_report
    from matchbound.results.number import records_of
    from matchbound.show.numbers import percent
    from matchbound.show.records import number_table

    data = demo_data(seed=seed)
    with collecting() as notes:
        rates = evaluate(data, threshold, workers=workers)
        methods = ("auto", "naive-wilson")
        records = [record for m in methods for record in records_of([rates.far, rates.frr], m, level)]
        own, naive = (rates.far.interval(m, level) for m in methods)
        if report is not None:
            write_report(
                report, data, threshold=threshold, level=level, title="Demonstration", workers=workers, rng=seed
            )
            wrote(report)
    if not is_quiet():
        sys.stderr.write("".join(f"warning: {note}\n" for note in rates.warnings))

    def text(colour: bool) -> str:
        return TEXT.format(
            seed=seed,
            pairs=rates.far.comparisons + rates.frr.comparisons,
            table=number_table(records[:2]).text(colour=colour),
            threshold=threshold,
            far=percent(rates.far.estimate),
            low=percent(own.low),
            high=percent(own.high),
            ratio=own.width / naive.width,
        )

    return Outcome(records, text, notes=notes)


def _write_files(target: Path) -> int:
    """Write the example files; where another file has the name of one, nothing is written."""
    import shutil
    import tempfile

    from matchbound.data.example_files import write_examples

    with tempfile.TemporaryDirectory(prefix="matchbound-demo-") as place:
        examples = write_examples(Path(place))
        for path in examples:
            own = target / path.name
            if own.exists() and (not own.is_file() or own.read_bytes() != path.read_bytes()):
                raise UsageError(
                    f"{own} is there already and differs; choose another folder with --files, or remove it"
                )
        target.mkdir(parents=True, exist_ok=True)
        for path in examples:
            if not (target / path.name).exists():
                shutil.copyfile(path, target / path.name)
    wrote(f"{len(examples)} files to {target}: {', '.join(path.name for path in examples)}")
    return 0
