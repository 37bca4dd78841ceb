"""The variables that bring tools to the proxy."""

import asyncio
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from bot.sandbox.egress.allowed import Allowed
from bot.sandbox.egress.environment import proxy_environment
from tests.unit.sandbox.egress.places import Names, serving

SYSTEM = "/usr/bin:/bin"

POM = """\
<project><modelVersion>4.0.0</modelVersion><groupId>a</groupId><artifactId>a</artifactId><version>1</version>
<parent><groupId>p.test</groupId><artifactId>p</artifactId><version>1</version><relativePath/></parent></project>
"""


def test_certificates() -> None:
    """Certificates are named only where there are some, and the proxy's variables hold nothing that a shell minds."""
    without = proxy_environment("http://127.0.0.1:3128", None)
    assert not any(re.search("CERT|CA", name) for name in without if not name.startswith("CARGO_HTTP_PROXY"))
    added = proxy_environment("http://127.0.0.1:3128", "/etc/company.pem")
    assert {name for name, value in added.items() if value == "/etc/company.pem"} == added.keys() - without.keys()
    assert without["HTTPS_PROXY"] == without["https_proxy"] == "http://127.0.0.1:3128"
    assert "127.0.0.1" in without["NO_PROXY"]
    assert not re.search(r"[|*'\"$;&<>()]", without["MAVEN_OPTS"])


TOOLS = {
    "curl": ("curl", "-s", "https://evil.test/"),
    "git": ("git", "ls-remote", "https://evil.test/x.git"),
    "pip": (
        "python3",
        "-m",
        "pip",
        "download",
        "--retries=0",
        "--no-deps",
        "--index-url=https://evil.test/simple",
        "x",
    ),
    "npm": ("npm", "view", "--fetch-retries=0", "--registry=https://evil.test/", "x"),
    "go": ("go", "list", "-m", "-versions", "evil.test/x@latest"),
    "maven": ("mvn", "-q", "-B", "validate"),
}
"""Of each package manager, something that has to reach a host."""


@pytest.mark.parametrize("tool", TOOLS)
async def test_tool(tool: str, tmp_path: Path) -> None:
    """Each tool that is here asks the proxy, and nobody else, with these variables and no configuration."""
    argv = TOOLS[tool]
    if shutil.which(argv[0], path=SYSTEM) is None:
        pytest.skip(f"{argv[0]} is not installed")
    (tmp_path / "pom.xml").write_text(POM, encoding="utf-8")
    async with serving(Allowed(), resolve=Names().resolve) as served:
        environment = {
            "PATH": SYSTEM, "HOME": str(tmp_path), "GOPROXY": "https://evil.test", "GOFLAGS": "-mod=mod",
            "PIP_CONFIG_FILE": "/dev/null", "PIP_DISABLE_PIP_VERSION_CHECK": "1", "LC_ALL": "C.UTF-8",
            **proxy_environment(served.url, None),
        }  # fmt: skip
        process = await asyncio.create_subprocess_exec(
            *argv, cwd=tmp_path, env=environment,
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        code = await asyncio.wait_for(process.wait(), 60)
    assert code != 0
    assert served.decisions
    assert {decision.why for decision in served.decisions} == {"unlisted"}
