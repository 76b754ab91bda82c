"""The documentation site: it builds without warnings, links lead somewhere, references are complete."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import matchbound as mb
from matchbound import results
from matchbound.cli.app import VERBS

pytest.importorskip("sphinx")
pytest.importorskip("latex2mathml")

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*sorted(DOCS.rglob("*.md")), *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md"))]
NOTEBOOKS = sorted((DOCS / "notebooks").glob("*.ipynb"))
FENCE = re.compile(r"^```.*?^```\s*$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
TWO_CLICKS = re.compile(r"matchbound (evaluate|roc|check|compare|groups|plan|report)")

sys.path.insert(0, str(DOCS / "_ext"))


def prose(page: Path) -> str:
    """The page without its code blocks; of a notebook, its Markdown cells."""
    if page.suffix == ".ipynb":
        cells = json.loads(page.read_text())["cells"]
        return "\n\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    return FENCE.sub("", page.read_text())


def links(page: Path) -> list[str]:
    return LINK.findall(prose(page))


def anchors(page: Path) -> set[str]:
    """Anchors of the headings of a page, as Markdown tools make them."""
    titles = re.findall(r"^#+ +(.+)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", [*PAGES, *NOTEBOOKS], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    from pictures import PICTURES, gallery_blocks

    for link in links(page):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        path = (page.parent / target).resolve() if target else page
        if path.parent == DOCS / "_made":
            assert path.name in {*PICTURES, *(name for name, _ in gallery_blocks())}, (
                f"{page}: no picture {path.name} is drawn"
            )
            continue
        assert path.exists(), f"{page}: {link} leads nowhere"
        if anchor and path.suffix == ".md":
            assert anchor in anchors(path), f"{page}: {link} has no such heading"


def test_the_link_checker_sees_a_broken_link(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("[a](nowhere.md) ![b](#c)\n\n```text\n[d](e)\n```\n\n# A *title*, here\n")
    assert links(page) == ["nowhere.md", "#c"]
    assert anchors(page) == {"a-title-here"}


def test_every_public_name_is_in_the_reference() -> None:
    text = (DOCS / "reference" / "api.md").read_text()
    listed = re.findall(r"^   (\w+)$", text, re.MULTILINE)
    assert len(listed) == len(set(listed)), "a name stands once"
    assert {*mb.__all__, *results.__all__} - set(listed) == {"__version__"}


def test_the_command_line_reference_is_that_of_the_command_line() -> None:
    from cli_reference import verbs

    told = verbs()
    assert list(told) == list(VERBS)
    for option in ("--threshold", "--method", "--level", "--checkpoint", "--format"):
        assert f"`{option}" in told["evaluate"]
    assert "--budget" in told["protocol"]
    assert "--budget" not in told["evaluate"]


def test_a_reader_who_knows_only_their_file_finds_the_command() -> None:
    index = DOCS / "index.md"
    rows = [line for line in index.read_text().splitlines() if line.startswith("| [")]
    assert len(rows) >= 8
    assert sum("`matchbound " in row for row in rows) >= len(rows) - 1
    for row in rows:
        (link,) = LINK.findall(row)
        assert TWO_CLICKS.search((DOCS / link.partition("#")[0]).read_text()), f"{link} shows no command"


def test_study_tables_are_made_from_the_csv() -> None:
    from study_tables import people_table, rows_of, table

    rows = rows_of(DOCS / "reproduction" / "table-g50.csv")
    header, *lines = table(rows, "far", ["wilson", "subsets"], 0.95)
    assert header == ["method", "FAR 0.0001", "FAR 0.001", "FAR 0.01", "FAR 0.1"]
    (row,) = (r for r in rows if r["metric"] == "far" and float(r["target"]) == 0.01 and r["method"] == "subsets")
    assert lines[1][3].startswith(f"{100 * float(row['coverage']):.0f}% (")
    with pytest.raises(ValueError, match="no row of method"):
        table(rows, "far", ["no-such-method"], 0.95)
    rows = rows_of(DOCS / "studies" / "default-real.csv")
    lines = people_table(rows, "faces-b", "far", ["wilson"])
    assert [line[:2] for line in lines[1:]] == [["20", "wilson"], ["50", "wilson"], ["100", "wilson"]]
    (row,) = (
        r
        for r in rows
        if [*r.values()][:3] == ["faces-b", "50", "far"] and r["rate"] == "0.01" and r["method"] == "wilson"
    )
    assert lines[2][3].startswith(f"{100 * float(row['coverage']):.0f}% (")


def test_outputs_in_pages_are_replaced_by_what_is_printed() -> None:
    from live_blocks import refresh

    page = "```python\nprint(1 + 1)\n```\n\n```text\n3\n```\n\nwords\n\n```text\n3\n```\n"
    assert refresh(page, "page") == page.replace("```text\n3\n```\n\nwords", "```text\n2\n```\n\nwords")
    with pytest.raises(ZeroDivisionError):
        refresh("```python\n1 / 0\n```\n", "page")
    with pytest.raises(RuntimeError, match="ended with 1"):
        refresh("```console\n$ matchbound check no-such-file.csv\n```\n", "page")


def test_no_page_speaks_of_a_machine() -> None:
    for page in [*PAGES, *NOTEBOOKS, *sorted((DOCS / "_ext").glob("*.py")), DOCS / "conf.py"]:
        found = re.search(r"(?<![\w.])/(?:work|tmp|home|root|mnt)\b", page.read_text())
        assert found is None, f"{page}: {found}"


@pytest.mark.slow
def test_the_site_builds_without_warnings(tmp_path: Path) -> None:
    """Everything but the outputs, pictures and notebooks, which ``make docs`` makes and other tests run."""
    command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", "-b", "dummy"]
    command += ["-D", "nb_execution_mode=off", "-D", "make_outputs=0", "-d", str(tmp_path / "trees")]
    made = subprocess.run(
        [*command, str(DOCS), str(tmp_path / "site")],
        capture_output=True,
        text=True,
        timeout=280,
        env={**os.environ, "PYTHONWARNINGS": ""},
    )
    assert made.returncode == 0, made.stderr[-4000:]
