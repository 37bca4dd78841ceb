"""The pages in a real browser: what is visible, at which width, and what is asked for over the network."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.hub.pages.chromium import Tab, browse, find
from tests.hub.pages.shop import Shop

pytestmark = pytest.mark.browser

VISIBLE = {
    "issues/1": (
        "Discount is ignored",
        "Working on it",
        "Log of the last command",
        "This comment was hidden: outdated",
    ),
    "pull/2": ("Subtract the discount", "requested changes", "It rounds down.", "3 tests pass", "The build broke"),
    "pull/2/files": ("src/cart.py", "// 100", "Does this round half up?"),
}
WIDTHS = {"wide": 1200, "phone": 390}

LOW_CONTRAST = """
(() => {
  const part = v => { v /= 255; return v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4; };
  const light = c => 0.2126 * part(c[0]) + 0.7152 * part(c[1]) + 0.0722 * part(c[2]);
  const read = text => text.match(/[\\d.]+/g).map(Number);
  const ground = e => {
    for (; e; e = e.parentElement) {
      const c = read(getComputedStyle(e).backgroundColor);
      if (c.length === 3 || c[3] > 0) return c;
    }
    return [255, 255, 255];
  };
  const found = [];
  for (const e of document.querySelectorAll("body *")) {
    if (![...e.childNodes].some(n => n.nodeType === 3 && n.data.trim()) || !e.offsetParent) continue;
    const a = light(read(getComputedStyle(e).color)), b = light(ground(e));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) found.push(`${e.tagName}.${e.className} ${ratio.toFixed(2)} ${e.textContent.trim().slice(0, 30)}`);
  }
  return found;
})()
"""
"""Lists elements whose text has less contrast than WCAG 2.2 AA asks of it."""


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    """A browser's tab, or skip where there is no browser."""
    program = find()
    if program is None:
        pytest.skip("no Chromium on the PATH: install the package `chromium`")
    with browse(program, tmp_path_factory.mktemp("profile")) as tab:
        yield tab


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("path", VISIBLE)
def test_pages_can_be_read(shop: Shop, tab: Tab, tmp_path: Path, path: str, width: str, dark: bool) -> None:  # noqa: FBT001
    """Key texts are visible, nothing sticks out, contrast is kept, no request leaves and no policy is broken.

    The picture is kept where `SCREENSHOTS` names a folder.
    """
    tab.requested.clear()
    tab.complaints.clear()
    tab.open(f"{shop.server.url}/corner-shop/cart/{path}", WIDTHS[width], dark=dark)
    seen = str(tab.evaluate("document.body.innerText"))
    for text in VISIBLE[path]:
        assert text in seen
    assert tab.evaluate("document.documentElement.scrollWidth") == WIDTHS[width]
    assert tab.evaluate(LOW_CONTRAST) == []
    assert tab.complaints == []
    assert all(url.startswith(shop.server.url) for url in tab.requested), tab.requested
    folder = Path(os.environ.get("SCREENSHOTS") or tmp_path)
    name = f"{path.replace('/', '-')}-{width}-{'dark' if dark else 'light'}.png"
    tab.shoot(folder / name)
    assert (folder / name).stat().st_size > 20_000
