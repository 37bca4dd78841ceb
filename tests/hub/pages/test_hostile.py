"""Hostile text never becomes a part of a page."""

import re

import pytest

from bot.testing.hub.pages.markdown import Place, render
from tests.hub.pages.shop import Elements, Shop

ATTACKS = (
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    '<img src="https://evil.example/pixel.png" srcset="https://evil.example/2x.png 2x">',
    "![pixel](https://evil.example/pixel.png)",
    "![pixel](//evil.example/pixel.png)",
    "![pixel](/\\evil.example/pixel.png)",
    "[click](javascript:alert(1))",
    "[click](JaVaScRiPt&colon;alert(1))",
    "[click](data:text/html;base64,PHNjcmlwdD4=)",
    '<a href="javascript:alert(1)" onclick="alert(1)">x</a>',
    "<svg onload=alert(1)><use href='data:image/svg+xml,x'/></svg>",
    "<math><mtext><table><mglyph><style><img src=x onerror=alert(1)></style></mglyph></table></mtext></math>",
    "<iframe src=https://evil.example></iframe>",
    "<form action=https://evil.example><input name=a type=text autofocus onfocus=alert(1)><button>x</button></form>",
    "<style>body{display:none}</style><link rel=stylesheet href=https://evil.example/x.css>",
    '<div style="position:fixed;inset:0" id=main class="banner said">x</div>',
    '<meta http-equiv="refresh" content="0;url=https://evil.example"><base href="https://evil.example">',
    "<details open ontoggle=alert(1)><summary>x</summary></details>",
    "<video poster=https://evil.example/x.png><source src=https://evil.example/x.mp4></video>",
    '```"><script>alert(1)</script>\n</code></pre><script>alert(1)</script>\n```',
    "```html\n<script>alert(1)</script>\n```",
    "`<script>alert(1)</script>`",
    "| a |\n|---|\n| <script>alert(1)</script> |",
    "<!-- --!><script>alert(1)</script> -->",
    '<noscript><p title="</noscript><img src=x onerror=alert(1)>">',
    "@bob<script>alert(1)</script>#1",
    'https://a.example/"onmouseover=alert(1)//',
    "- [x] <img src=x onerror=alert(1)>",
    "</article></main><script>alert(1)</script>",
    "{{ 7 * 7 }}{% raw %}",
)
FORBIDDEN = {"script", "iframe", "form", "button", "object", "embed", "svg", "math", "video", "base", "frame", "source"}
OWN_STYLES = 1
"""The one style element of a page: the colours of its labels."""

NAME = '"><img src=x onerror=alert(1)>'


def assert_harmless(html: str) -> None:
    """Refuse whatever runs, loads from elsewhere or dresses up as a part of the page."""
    for element in Elements(html).found:
        assert element.tag not in FORBIDDEN, element
        for name, value in element.attributes.items():
            assert not name.startswith("on"), element
            assert name not in ("style", "srcset", "action", "formaction", "poster", "background"), element
            if name in ("href", "src"):
                plain = re.sub(r"[\s\x00-\x20]", "", value).lower()
                assert not plain.startswith(("javascript:", "data:", "vbscript:")), element
            if name == "src":
                assert value.startswith("/"), element
                assert not value.startswith(("//", "/\\")), element
        if element.tag == "input":
            assert element.attributes["type"] == "checkbox"
            assert "disabled" in element.attributes
        if element.tag == "meta":
            assert "http-equiv" not in element.attributes
        if element.tag == "link":
            assert element.attributes["href"] == "/-/hub.css"


@pytest.mark.parametrize("attack", ATTACKS)
def test_markdown_is_sanitised(attack: str) -> None:
    """In comments and in files; neither ids nor classes of the page can be borrowed."""
    for folder in (None, "/a/b/blob/main/"):
        html = str(render(attack, Place(lambda login: f"/{login}", lambda number: f"/{number}", folder)))
        assert_harmless(html)
        elements = Elements(html)
        assert not elements.all("style")
        assert not any("id" in element.attributes or "name" in element.attributes for element in elements.found)
        for element in elements.found:
            assert all(re.fullmatch(r"hl(-\w+)?|task", one) for one in element.attributes.get("class", "").split())


def test_a_picture_of_another_host_becomes_a_link() -> None:
    """Nothing is loaded from there unless somebody follows it."""
    html = render("![a *plan*](https://a.example/x.png)", Place(lambda _: None, lambda _: None))
    assert Elements(html).text == "a plan (image)"
    assert [link.attributes["href"] for link in Elements(html).all("a")] == ["https://a.example/x.png"]


def test_nothing_hostile_reaches_a_page(fresh: Shop) -> None:
    """Titles, bodies, labels, branches, paths, commits and checks, on every page that shows them."""
    hub, by, body = fresh.hub, fresh.maria, "\n\n".join(ATTACKS)
    branch = 'x"><script>alert(1)</script>'
    issue = hub.open_issue(fresh.repository, by, NAME, body, [NAME])
    hub.edit_issue(issue, by, title=f"{NAME} again")
    hub.comment(issue, by, body)
    files = {f"{NAME}.py": f"{NAME}\n", "evil.md": body, "e/<b>.svg": "<svg onload='alert(1)'/>"}
    sha = hub.commit_files(fresh.repository, by, branch, files, message=f"{NAME}\n\n{body}")
    pull = hub.open_pull(fresh.repository, by, NAME, head=branch, body=body)
    run = hub.create_check_run(fresh.repository, fresh.app, NAME, sha, {"summary": body, "text": body, "title": NAME})
    run.annotations.append({"path": NAME, "start_line": 1, "annotation_level": NAME, "message": NAME})
    hub.set_status(fresh.repository, by, sha, "success", context=NAME, target_url="javascript:alert(1)")
    quoted = "x%22%3E%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    paths = ["/", "/corner-shop/cart", "issues", "pulls", f"issues/{issue.number}", f"commit/{sha}", f"runs/{run.id}"]
    paths += [f"pull/{pull.number}{part}" for part in ("", "/files", "/commits")]
    paths += [f"tree/{sha}", f"blob/{sha}/evil.md", f"blob/{sha}/%22%3E%3Cimg%20src=x%20onerror=alert(1)%3E.py"]
    paths += [f"tree/{quoted}", f"compare/main...{quoted}", f"nothing/{quoted}?state={quoted}"]
    for path in paths:
        page = fresh.client.get(path if path.startswith("/") else f"/corner-shop/cart/{path}").text
        assert "alert(1)" in page or path == "/" or path.startswith("nothing"), path
        assert_harmless(page)
        assert len(Elements(page).all("style")) <= OWN_STYLES


def test_files_with_scripts_are_sent_as_text(fresh: Shop) -> None:
    """HTML and SVG are no pages of this server."""
    fresh.hub.commit_files(fresh.repository, fresh.maria, "main", {"x.html": "<script>", "x.svg": "<svg/>"})
    for name in ("x.html", "x.svg"):
        answer = fresh.client.get(f"/corner-shop/cart/raw/main/{name}")
        assert answer.headers["content-type"] == "text/plain; charset=utf-8"


def test_the_policy_of_pages_allows_nothing_from_elsewhere(shop: Shop) -> None:
    """No script at all, styles of this server and the page's own one, which changes each time."""
    policies = {shop.client.get("/corner-shop/cart/issues/1").headers["content-security-policy"] for _ in range(2)}
    assert len(policies) == 2
    for policy in policies:
        assert "default-src 'none'" in policy
        assert "script-src" not in policy
        assert "unsafe" not in policy


def test_relative_links_of_files_stay_in_the_repository(shop: Shop) -> None:
    """A link of the README leads to the file's page."""
    links = [link.attributes.get("href") for link in Elements(shop.page("/corner-shop/cart")).all("a")]
    assert "/corner-shop/cart/blob/main/src/cart.py" in links
