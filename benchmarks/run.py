"""``make bench``: run every benchmark, print a table of ratios, and write results.json.

Each row compares with something measured in the same run. Options: ``--quick`` leaves out what takes minutes;
names of modules (core, scale, curves, …) run only those and leave the other rows of results.json as they are. What a
module leaves in the environment (Dask sets how freed memory is given back) is undone before the next one.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import platform
import sys
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
MODULES = ("core", "scale", "search", "curves", "costs", "latent", "report", "tables", "peers")


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the benchmarks.")
    parser.add_argument("modules", nargs="*", help=f"which of {', '.join(MODULES)}; all by default")
    parser.add_argument("--quick", action="store_true", help="leave out what takes minutes")
    options = parser.parse_args()
    sys.path.insert(0, str(HERE))
    rows: list[dict[str, Any]] = []
    for name in options.modules or MODULES:
        if not (HERE / f"bench_{name}.py").exists():
            continue
        environment = dict(os.environ)
        for row in importlib.import_module(f"bench_{name}").run(options.quick):
            row = {"module": name, **row}
            rows.append(row)
            show(row)
        os.environ.clear()
        os.environ.update(environment)
    if not options.modules:
        write(rows, options.quick)
    elif not options.quick:
        write([*kept(options.modules), *rows], options.quick)
    missed = [row for row in rows if not row["ok"]]
    print(f"{len(rows)} rows, {len(missed)} missed their bar")
    return 1 if missed else 0


def kept(again: list[str]) -> list[dict[str, Any]]:
    """The rows of results.json of modules that were not run again."""
    target = HERE / "results.json"
    known = json.loads(target.read_text())["rows"] if target.exists() else []
    return [row for row in known if row["module"] not in again]


def show(row: dict[str, Any]) -> None:
    """One line per row: what, how long, against what, the ratio, the bar."""
    ratio = row["ratio"]
    told = f"{ratio:.3g}×" if ratio >= 0.05 else f"1/{1 / ratio:.0f}"
    mark = "ok  " if row["ok"] else "MISS"
    print(
        f"{mark} {row['name']}: {row['seconds']:.4g} s, {row['reference']} {row['reference_seconds']:.4g} s, "
        f"ratio {told} (bar {row['bar']})",
        flush=True,
    )


def write(rows: list[dict[str, Any]], quick: bool) -> None:
    """results.json, whole or not at all."""
    import numpy

    rows = sorted(rows, key=lambda row: MODULES.index(row["module"]))
    document = {
        "machine": {"python": platform.python_version(), "numpy": numpy.__version__, "processor": platform.machine()},
        "quick": quick,
        "rows": rows,
    }
    target = HERE / "results.json"
    temporary = target.with_suffix(".tmp")
    temporary.write_text(json.dumps(document, indent=1) + "\n")
    temporary.replace(target)


if __name__ == "__main__":
    sys.exit(main())
