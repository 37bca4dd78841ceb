"""A headless Chromium that a test drives over its debugging port."""

import base64
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from websockets.sync.client import ClientConnection, connect

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--hide-scrollbars",
    "--remote-debugging-port=0",
)
START_S = 30.0


def find() -> str | None:
    """Return the path of a Chromium, or None."""
    return next((path for name in NAMES if (path := shutil.which(name))), None)


@dataclass
class Tab:
    """One tab."""

    socket: ClientConnection
    last: int = 0
    requested: list[str] = field(default_factory=list)
    """Addresses that pages asked for."""
    complaints: list[str] = field(default_factory=list)
    """What the console said, broken policies among it."""

    def call(self, method: str, **params: object) -> dict[str, Any]:
        """Call a method of the protocol and return its result."""
        self.last += 1
        self.socket.send(json.dumps({"id": self.last, "method": method, "params": params}))
        while True:
            message = self._receive()
            if message.get("id") == self.last:
                assert "error" not in message, message
                result: dict[str, Any] = message["result"]
                return result

    def open(self, url: str, width: int, *, dark: bool) -> None:
        """Show a page in a window of a width, in a colour scheme."""
        for domain in ("Page", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 500
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self.call("Page.navigate", url=url)
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def evaluate(self, expression: str) -> object:
        """Return the value of an expression in the page."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        value: object = result["result"].get("value")
        return value

    def shoot(self, path: Path) -> None:
        """Write a picture of the whole page."""
        result = self.call("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(result["data"]))

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self.socket.recv(timeout=START_S))
        if message.get("method") == "Network.requestWillBeSent":
            self.requested.append(message["params"]["request"]["url"])
        if message.get("method") == "Log.entryAdded":
            self.complaints.append(message["params"]["entry"]["text"])
        return message


@contextmanager
def browse(program: str, profile: Path) -> Iterator[Tab]:
    """Start a browser with a fresh profile and give one tab of it."""
    process = subprocess.Popen(
        [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        port = _port(profile / "DevToolsActivePort")
        pages = httpx.get(f"http://127.0.0.1:{port}/json/list", trust_env=False, verify=False).json()
        address = next(page["webSocketDebuggerUrl"] for page in pages if page["type"] == "page")
        with connect(address, max_size=None, proxy=None) as socket:
            yield Tab(socket)
    finally:
        process.kill()
        process.wait()


def _port(file: Path) -> int:
    deadline = time.monotonic() + START_S
    while time.monotonic() < deadline:
        if file.exists() and (lines := file.read_text().split()):
            return int(lines[0])
        time.sleep(0.05)
    raise TimeoutError("the browser did not open its debugging port")
