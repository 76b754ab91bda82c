"""A headless browser for tests, driven by selenium."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
MISSING = BROWSER is None or DRIVER is None
KEYS = {"left": Keys.LEFT, "right": Keys.RIGHT, "home": Keys.HOME, "end": Keys.END, "tab": Keys.TAB}
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-proxy-server",
    "--window-size=1280,900",
)


class Browser:
    """One session."""

    def __init__(self, profile: Path) -> None:
        options = Options()
        options.binary_location = str(BROWSER)
        for flag in (*FLAGS, f"--user-data-dir={profile}"):
            options.add_argument(flag)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(str(DRIVER)))

    def open(self, place: Path | str) -> None:
        self.driver.get(place.as_uri() if isinstance(place, Path) else place)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def protocol(self, command: str, **parameters: Any) -> Any:
        return self.driver.execute_cdp_cmd(command, parameters)

    def log(self, kind: str) -> list[dict[str, Any]]:
        entries: list[dict[str, Any]] = self.driver.get_log(kind)
        return entries

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def press(self, selector: str, key: str) -> None:
        self.find(selector).send_keys(KEYS[key])

    def click(self, selector: str) -> None:
        self.find(selector).click()

    def wide(self, width: int, height: int = 900) -> None:
        self.protocol(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False
        )

    def prefer(self, scheme: str, media: str = "") -> None:
        feature = {"name": "prefers-color-scheme", "value": scheme}
        self.protocol("Emulation.setEmulatedMedia", media=media, features=[feature])

    def shown(self) -> dict[str, str]:
        told: dict[str, str] = self.run(
            "return Object.fromEntries([...document.querySelectorAll('[data-show]')]"
            ".map(e => [e.dataset.show, e.textContent]))"
        )
        return told

    def close(self) -> None:
        self.driver.quit()
