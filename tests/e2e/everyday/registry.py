"""Package registries of our own, so that installers really install and resolve without any network."""

import asyncio
import base64
import gzip
import hashlib
import io
import json
import tarfile
import threading
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote

from tests.contract.corporate import company

HOST = "registry.corp.test"
"""Under which the Node registry is known; no resolver knows it, only the company's proxy."""


def python_registry(folder: Path, packages: Mapping[tuple[str, str], str]) -> dict[str, str]:
    """Write an index of wheels in files, and return the server's variables that lead to it.

    Args:
        folder: is made, readable for everybody.
        packages: name and version to the text of the package's one module.
    """
    folder.mkdir(mode=0o755)
    for (name, version), source in packages.items():
        place = folder / "simple" / name
        place.mkdir(parents=True, exist_ok=True)
        wheel = place / f"{name}-{version}-py3-none-any.whl"
        _wheel(wheel, name, version, source)
    for place in (folder / "simple").iterdir():
        rows = [f'<a href="{one.name}#sha256={_sha256(one)}">{one.name}</a>' for one in sorted(place.glob("*.whl"))]
        (place / "index.html").write_text("<!DOCTYPE html><html><body>" + "<br>".join(rows) + "</body></html>")
    return {"PIP_CONFIG_FILE": "/dev/null", "PIP_INDEX_URL": (folder / "simple").as_uri()}


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _wheel(path: Path, name: str, version: str, source: str) -> None:
    info = f"{name}-{version}.dist-info"
    files = {
        f"{name}.py": source,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
        f"{info}/WHEEL": "Wheel-Version: 1.0\nGenerator: story\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = "".join(f"{one},,\n" for one in (*files, f"{info}/RECORD"))
    with zipfile.ZipFile(path, "w") as wheel:
        for one, text in {**files, f"{info}/RECORD": record}.items():
            wheel.writestr(zipfile.ZipInfo(one, (2026, 1, 1, 0, 0, 0)), text)


@contextmanager
def npm_registry(folder: Path, packages: Mapping[tuple[str, str], Mapping[str, str]]) -> Iterator[dict[str, str]]:
    """Serve a registry behind a company's proxy and certificates; gives the server's variables that lead to it.

    Args:
        folder: for keys and certificates.
        packages: name and version to the package's files by their path, `package.json` among them.
    """
    folder.mkdir(mode=0o755)
    archives = {key: archive(files) for key, files in packages.items()}

    class Answer(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            name, _, file = unquote(self.path.partition("?")[0])[1:].partition("/-/")
            version = file.removeprefix(f"{name}-").removesuffix(".tgz")
            if file:
                self._send(archives.get((name, version)), "application/octet-stream")
            else:
                self._send(_packument(name, packages, archives), "application/json")

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers.get("content-length") or 0))
            self._send(None, "application/json")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name is the standard library's
            pass

        def _send(self, data: bytes | None, kind: str) -> None:
            self.send_response(404 if data is None else 200)
            body = b"{}" if data is None else data
            self.send_header("content-type", kind)
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

    backend = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    ready, ended = threading.Event(), threading.Event()
    found: dict[str, str] = {}

    async def network() -> None:
        async with company(folder) as (corp, stack):
            await corp.serve(stack, HOST, backend.server_address[1])
            found["ISSUEWRIGHT_NETWORK__HTTPS_PROXY"] = corp.proxy
            found["ISSUEWRIGHT_NETWORK__CA_BUNDLE"] = str(corp.authority.bundle)
            ready.set()
            await asyncio.to_thread(ended.wait)

    threads = [
        threading.Thread(target=backend.serve_forever, daemon=True),
        threading.Thread(target=lambda: asyncio.run(network()), daemon=True),
    ]
    for thread in threads:
        thread.start()
    assert ready.wait(20)
    try:
        yield {**found, "npm_config_registry": f"https://{HOST}/"}
    finally:
        ended.set()
        backend.shutdown()
        backend.server_close()
        for thread in threads:
            thread.join(20)


def archive(files: Mapping[str, str]) -> bytes:
    """Pack a package as npm does, the same bytes each time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as tar:
        for path, text in files.items():
            entry = tarfile.TarInfo(f"package/{path}")
            entry.size = len(text.encode())
            tar.addfile(entry, io.BytesIO(text.encode()))
    return gzip.compress(packed.getvalue(), mtime=0)


def integrity(data: bytes) -> str:
    """Return the digest of an archive as locks have it."""
    return f"sha512-{base64.b64encode(hashlib.sha512(data).digest()).decode()}"


def tarball(name: str, version: str) -> str:
    """Return the address of an archive."""
    return f"https://{HOST}/{name}/-/{name}-{version}.tgz"


def _packument(
    name: str, packages: Mapping[tuple[str, str], Mapping[str, str]], archives: Mapping[tuple[str, str], bytes]
) -> bytes | None:
    versions = {
        version: {
            **json.loads(files["package.json"]),
            "dist": {
                "tarball": tarball(name, version),
                "integrity": integrity(archives[found, version]),
                "shasum": hashlib.sha1(archives[found, version], usedforsecurity=False).hexdigest(),
            },
        }
        for (found, version), files in packages.items()
        if found == name
    }
    said = {"name": name, "dist-tags": {"latest": max(versions)}, "versions": versions} if versions else None
    return None if said is None else json.dumps(said).encode()
