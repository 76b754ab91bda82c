"""The report in a real browser: no error, no request, a slider that tells what `evaluate` gives, no overflow.

Chromium is driven by selenium through chromedriver; without them the tests are skipped.
"""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import matchbound as mb
from matchbound.report.make import write_report
from matchbound.show.numbers import percent, span

pytest.importorskip("selenium")
from browser import MISSING, Browser

pytestmark = [
    pytest.mark.skipif(MISSING, reason="chromium and chromedriver are not installed"),
    pytest.mark.filterwarnings("ignore::matchbound.MatchboundWarning"),
]
BROWSERS_OWN = ("chrome:", "chrome-", "about:")
"""Documents of the browser itself, such as the tab that it begins with."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    session = Browser(tmp_path_factory.mktemp("browser") / "profile")
    yield session
    session.close()


def distances() -> mb.Comparisons:
    """Comparisons by distance, with ties, names that try to break out, and groups."""
    rng = np.random.default_rng(11)
    who = rng.integers(0, 40, (12_000, 2))
    score = np.round(np.abs(rng.normal(np.where(who[:, 0] == who[:, 1], 0.55, 1.0), 0.18)), 3)
    names = np.array([f"<script>window.hurt = {i}</script>" for i in range(40)])
    group = np.where(np.arange(40) % 2 == 0, "<img src=x onerror=alert(1)>", "a group with a rather long name indeed")
    return mb.Comparisons(
        names[who[:, 0]],
        names[who[:, 1]],
        score,
        distance=True,
        group_a=group[who[:, 0]],
        group_b=group[who[:, 1]],
    )


def blurred(data: mb.Comparisons | mb.Embeddings, seed: int = 1) -> mb.Comparisons | mb.Embeddings:
    """Another system on the same comparisons."""
    rng = np.random.default_rng(seed)
    if isinstance(data, mb.Embeddings):
        vectors = data.vectors + 0.3 * data.vectors.std() * rng.standard_normal(data.vectors.shape)
        return mb.Embeddings(vectors, data.identities[data.codes], instance=data.instance)
    score = np.abs(data.score + rng.normal(0.0, 0.1, len(data)))
    return mb.Comparisons(data.identities[data.a], data.identities[data.b], score, distance=True)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[mb.Comparisons | mb.Embeddings, Path]]:
    folder = tmp_path_factory.mktemp("pages")
    made: dict[str, tuple[mb.Comparisons | mb.Embeddings, Path]] = {}
    sources: dict[str, mb.Comparisons | mb.Embeddings] = {"similarity": mb.demo_data(), "distance": distances()}
    others = {
        "similarity": [blurred(sources["similarity"])],
        "distance": [blurred(sources["distance"], k) for k in (1, 2)],
    }
    for name, data in sources.items():
        path = folder / f"{name}.html"
        against = {f"<script>window.hurt = {k}</script> {'long name ' * 9}": x for k, x in enumerate(others[name])}
        write_report(path, data, threshold=0.6, show_labels=True, against=against, name="<img src=x>")
        made[name] = (data, path)
    return made


@pytest.fixture(params=["similarity", "distance"])
def page(
    request: pytest.FixtureRequest, browser: Browser, pages: dict[str, tuple[mb.Comparisons | mb.Embeddings, Path]]
) -> mb.Comparisons | mb.Embeddings:
    """The page, opened anew; the data behind it."""
    data, path = pages[request.param]
    browser.open("about:blank")
    browser.log("browser")
    browser.log("performance")
    browser.wide(1280)
    browser.prefer("light")
    browser.open(path)
    return data


def check_numbers(data: mb.Comparisons | mb.Embeddings, *shown: dict[str, str]) -> None:
    """What the page showed is what `evaluate` gives at the thresholds that it showed."""
    several = mb.evaluate(data, [float(told["threshold"]) for told in shown])
    for told, rates in zip(shown, several, strict=True):
        for name, rate in (("far", rates.far), ("frr", rates.frr)):
            interval = rate.interval()
            assert told[name] == percent(rate.estimate)
            assert told[f"{name}_interval"] == span(interval.low, interval.high)
            assert told[f"{name}_upper"] == percent(rate.upper_bound())
            assert told[f"{name}_errors"] == f"{rate.errors:,} of {rate.comparisons:,}"


def check_markers(browser: Browser) -> None:
    """Every mark stands where the page's data say for the place of the slider."""
    k = int(browser.run("return document.getElementById('threshold').value"))
    data = json.loads(browser.run("return document.getElementById('panel-data').textContent"))

    def mark(name: str) -> dict[str, float]:
        found: dict[str, str] = browser.run(
            "return Object.fromEntries([...document.getElementById(arguments[0]).attributes]"
            ".map(a => [a.name, a.value]))",
            name,
        )
        return {key: float(value) for key, value in found.items() if key not in ("id", "class")}

    for plot in ("roc", "det"):
        at = {key: values[k] for key, values in data["moves"][plot].items()}
        assert mark(f"{plot}-h") == {"x1": at["left"], "x2": at["right"], "y1": at["y"], "y2": at["y"]}
        assert mark(f"{plot}-v") == {"x1": at["x"], "x2": at["x"], "y1": at["top"], "y2": at["bottom"]}
        assert mark(f"{plot}-dot") == {"cx": at["x"], "cy": at["y"], "r": 5.5}
    x, plot_area = data["moves"]["scores"]["x"][k], data["plot"]
    assert mark("scores-v")["x1"] == mark("scores-v")["x2"] == x
    below = (plot_area["left"], x - plot_area["left"])
    above = (x, plot_area["right"] - x)
    for name, side in (
        ("far", below if plot_area["distance"] else above),
        ("frr", above if plot_area["distance"] else below),
    ):
        rect = mark(f"scores-{name}-rect")
        assert (rect["x"], rect["width"]) == pytest.approx(side)


def test_no_error_and_no_request(page: mb.Comparisons, browser: Browser) -> None:
    browser.press("#threshold", "end")
    time.sleep(0.3)
    assert [entry for entry in browser.log("browser") if entry["level"] in ("SEVERE", "WARNING")] == []
    events = [json.loads(entry["message"])["message"] for entry in browser.log("performance")]
    sent = [e["params"] for e in events if e["method"] == "Network.requestWillBeSent"]
    asked = [s["request"]["url"] for s in sent if not s["documentURL"].startswith(BROWSERS_OWN)]
    assert asked
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []
    assert len([url for url in asked if url.startswith("file:")]) == 1
    assert browser.run("return window.hurt === undefined && document.querySelectorAll('img').length === 0")


def test_the_slider_moves_every_number(page: mb.Comparisons, browser: Browser) -> None:
    seen = [browser.shown()]
    assert seen[0]["threshold"] == "0.6"
    last = int(browser.run("return document.getElementById('threshold').max"))
    assert last < 400
    for place in np.linspace(0, last, 9).astype(int).tolist():
        browser.run(
            "const s = document.getElementById('threshold'); s.value = arguments[0];"
            "s.dispatchEvent(new Event('input', {bubbles: true}))",
            place,
        )
        seen.append(browser.shown())
    check_numbers(page, *seen)
    assert len({told["far"] for told in seen}) >= 7
    assert len({told["frr"] for told in seen}) >= 5


def test_the_keyboard_moves_the_slider_and_the_markers(page: mb.Comparisons, browser: Browser) -> None:
    where = (
        "return ['roc-dot', 'det-dot'].map(i => document.getElementById(i).getAttribute('cx'))"
        ".concat(document.getElementById('scores-v').getAttribute('x1'))"
    )
    before, told = browser.run(where), browser.shown()
    for _ in range(25):
        browser.press("#threshold", "right")
    after = browser.shown()
    assert float(after["threshold"]) > float(told["threshold"])
    assert all(a != b for a, b in zip(before, browser.run(where), strict=True))
    check_markers(browser)
    said = browser.run("return document.getElementById('threshold').getAttribute('aria-valuetext')")
    assert after["threshold"] in said
    assert after["far"] in said
    browser.press("#threshold", "home")
    assert browser.run("return document.getElementById('threshold').value") == "0"
    check_numbers(page, after, browser.shown())


def test_buttons_jump_to_operating_points(page: mb.Comparisons, browser: Browser) -> None:
    browser.press("#threshold", "home")
    browser.click("[data-jump]")
    assert browser.shown()["threshold"] == "0.6"
    assert browser.run("return document.querySelector('[data-jump]').getAttribute('aria-pressed')") == "true"
    browser.click("[data-jump]:last-child")
    told = browser.shown()
    assert told["threshold"] != "0.6"
    said = browser.run(  # the same point in the table
        "return [...document.querySelectorAll('section[aria-labelledby=points] tr:last-child td .under')]"
        ".slice(0, 2).map(e => e.textContent.replaceAll('\u2060', ''))"
    )
    assert [told["far_interval"], told["frr_interval"]] == said


def beyond(browser: Browser, within: str = "") -> list[str]:
    """Elements that stand out of the window on the right, but those `within` others."""
    found: list[str] = browser.run(
        "return [...document.querySelectorAll('body *')].filter(e => !(arguments[0] && e.closest(arguments[0])) &&"
        " e.getBoundingClientRect().right > window.innerWidth + 0.5).map(e => e.outerHTML.slice(0, 80))",
        within,
    )
    return found


@pytest.mark.parametrize("width", [1280, 820, 390, 320])
def test_nothing_overflows(page: mb.Comparisons, browser: Browser, width: int) -> None:
    browser.wide(width)
    assert browser.run("return window.innerWidth") == width
    assert browser.run("return document.documentElement.scrollWidth") <= width
    assert beyond(browser, ".scroll, svg") == []


def test_the_section_on_systems_is_shown(page: mb.Comparisons, browser: Browser) -> None:
    rows = browser.run("return document.querySelectorAll('section[aria-labelledby=systems] tbody tr').length")
    pairs = 3 if isinstance(page, mb.Comparisons) else 1
    numbers = rows // pairs
    assert numbers == int(browser.run("return document.querySelectorAll('.jumps button').length")) - 1 + 3
    marks = browser.run("return document.querySelectorAll('[id^=differences] .dot, [id^=differences] .aim').length")
    assert marks == (2 * pairs if pairs > 1 else numbers)  # of several systems, FAR and FRR at the threshold
    outside = browser.run(
        "const box = document.getElementById('differences').getBoundingClientRect();"
        "return [...document.querySelectorAll('#differences text')].map(e => e.getBoundingClientRect())"
        ".filter(r => r.left < box.left - 0.5 || r.right > box.right + 0.5 || r.bottom > box.bottom + 0.5).length"
    )
    assert outside == 0


def test_light_and_dark_and_print(page: mb.Comparisons, browser: Browser) -> None:
    colour = "return getComputedStyle(document.body).backgroundColor"
    light = browser.run(colour)
    browser.prefer("dark")
    assert browser.run(colour) != light
    browser.prefer("dark", media="print")
    assert browser.run(colour) == "rgb(255, 255, 255)"
    assert browser.run("return getComputedStyle(document.getElementById('threshold')).display") == "none"
    browser.wide(672)  # the width of A4 within margins of 16 mm
    assert beyond(browser) == []
    assert browser.run("return getComputedStyle(document.querySelector('dl.facts > div')).breakInside") == "avoid"
    made = base64.b64decode(browser.protocol("Page.printToPDF", printBackground=True)["data"])
    assert made.startswith(b"%PDF")
    browser.prefer("light")
