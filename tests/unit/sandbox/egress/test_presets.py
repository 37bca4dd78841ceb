"""The presets: what package managers say, with stand-ins for them and, where they are installed, with themselves."""

import asyncio
import datetime as dt
import json
import os
import shutil
import ssl
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from bot.errors import OperatorError
from bot.sandbox.egress.allowed import Allowed
from bot.sandbox.egress.managers import python
from bot.sandbox.egress.presets import PRESETS, ask
from bot.sandbox.egress.sources import Machine, Sources
from tests.unit.sandbox.egress.places import Names, Origin, origin, serving

Tell = Callable[..., Machine]

SECRET = "canary-7f3a"
WITH_SECRET = f"https://me:{SECRET}@index.example.com"


@pytest.fixture
def tell(tmp_path: Path) -> Tell:
    """Make a machine of which the only programs are stand-ins that print something."""
    programs = tmp_path / "bin"
    programs.mkdir()
    home = tmp_path / "home"
    home.mkdir()

    def make(said: dict[str, str] | None = None, **environment: str) -> Machine:
        for name, script in (said or {}).items():
            file = programs / name
            file.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
            file.chmod(0o755)
        return Machine({"HOME": str(home), **environment}, path=str(programs))

    return make


def printing(text: str) -> str:
    """A script that prints a text."""
    return f"/bin/cat <<'END'\n{text}\nEND"


def hides(sources: Sources) -> bool:
    """Whether no secret is anywhere in an answer."""
    return SECRET not in repr(sources)


@pytest.mark.parametrize("preset", PRESETS)
async def test_missing(preset: str, tell: Tell) -> None:
    """A package manager that is not there is a remark, and so is one that fails or talks nonsense."""
    for script in (None, "exit 1", "echo nonsense", "echo []"):
        names = ("python3", "npm", "cargo", "go")
        sources = await ask(preset, tell({} if script is None else dict.fromkeys(names, script)))
        assert sources.hosts == ()
        assert sources.remarks
        assert all(remark.endswith(".") for remark in sources.remarks)


async def test_unknown() -> None:
    """Another preset is told to the operator."""
    with pytest.raises(OperatorError, match="python, node, rust, go, java"):
        await ask("perl")


async def test_pip(tell: Tell, tmp_path: Path) -> None:
    """Pip's own index and its files, folders, and where their pages link to."""
    page = tmp_path / "index/simple/six"
    page.mkdir(parents=True)
    (page / "index.html").write_text(
        '<a\n href="../../files%20here/six-1.whl#sha256=0">six</a><a href="https://x.test/y">'
    )
    config = (
        f"global.extra-index-url='file://{tmp_path}/index/simple'\nglobal.find-links='/opt/wheels'\nglobal.timeout='9'"
    )
    default = printing(json.dumps({"index": "https://index.example.com/simple", "files": "files.example.com"}))
    script = f'if [ "$2" = pip ]\nthen\n{printing(config)}\nelse\n{default}\nfi'
    sources = await ask("python", tell({"python3": script}))
    assert sources.hosts == ("index.example.com", "files.example.com")
    assert sources.folders == (tmp_path / "index/simple", Path("/opt/wheels"), tmp_path / "index/files here")
    assert sources.environment["PIP_EXTRA_INDEX_URL"] == f"file://{tmp_path}/index/simple"
    assert sources.environment["PIP_FIND_LINKS"] == "/opt/wheels"
    assert "PIP_INDEX_URL" not in sources.environment
    assert sources.remarks == ()


async def test_pip_mirror(tell: Tell) -> None:
    """A mirror takes the place of the default, on its port; one with credentials and one without TLS are left out."""
    config = (
        "global.index-url='https://mirror.example.com:8443/simple'\n"
        f"global.extra-index-url='{WITH_SECRET}/simple\\nhttp://plain.example.com/simple https://b.example.com/s'\n"
        "install.trusted-host='mirror.example.com'\nwheel.index-url='https://other.example.com'"
    )
    sources = await ask("python", tell({"python3": printing(config)}))
    assert sources.hosts == ("mirror.example.com:8443", "b.example.com")
    assert sources.environment == {
        "PIP_INDEX_URL": "https://mirror.example.com:8443/simple",
        "UV_DEFAULT_INDEX": "https://mirror.example.com:8443/simple",
        "PIP_EXTRA_INDEX_URL": "https://b.example.com/s",
        "UV_INDEX": "https://b.example.com/s",
        "PIP_TRUSTED_HOST": "mirror.example.com",
    }
    assert hides(sources)
    assert ["credentials" in remark for remark in sources.remarks] == [True, False]
    assert "https" in sources.remarks[1]


def test_pip_sections() -> None:
    """What stands in the environment wins over a command's section, and that over the global one."""
    text = (
        ":env:.index-url='c'\nglobal.index-url='a'\ninstall.index-url='b'\ninstall.find-links='/x /y'\nglobal.broken='"
    )
    assert python.read(text) == {"index-url": ["c"], "find-links": ["/x", "/y"]}


async def test_pip_without_index(tell: Tell) -> None:
    """Where pip is told to use no index, none is looked for."""
    sources = await ask(
        "python", tell({"python3": printing("global.no-index='true'\nglobal.find-links='/opt/wheels'")})
    )
    assert (sources.hosts, sources.folders) == ((), (Path("/opt/wheels"),))
    assert sources.environment["PIP_NO_INDEX"] == "1"


async def test_npm(tell: Tell) -> None:
    """The registry and those of scopes; Yarn is told the first."""
    said = {
        "registry": "https://npm.example.com/", "@corp:registry": "https://corp.example.com:8443/npm/",
        "@secret:registry": f"{WITH_SECRET}/", "omit-lockfile-registry-resolved": False, "cache": "/root/.npm",
    }  # fmt: skip
    sources = await ask("node", tell({"npm": printing(json.dumps(said))}))
    assert sources.hosts == ("npm.example.com", "corp.example.com:8443")
    assert sources.environment == {
        "npm_config_registry": "https://npm.example.com/",
        "npm_config_@corp:registry": "https://corp.example.com:8443/npm/",
        "YARN_REGISTRY": "https://npm.example.com/",
        "YARN_NPM_REGISTRY_SERVER": "https://npm.example.com/",
    }
    assert hides(sources)
    assert len(sources.remarks) == 1


@pytest.mark.parametrize("url", ["https://npm.pkg.github.com/", "https://10.0.0.5/npm", "https://npm.git.example.net/"])
async def test_registry_that_cannot_be_allowed(url: str, tell: Tell) -> None:
    """A registry at GitHub's, at an address or at the Enterprise server is a remark."""
    machine = tell({"npm": printing(json.dumps({"registry": url}))})
    sources = await ask("node", Machine(machine.environment, never=["git.example.net"], path=machine.path))
    assert (sources.hosts, sources.environment) == ((), {})
    assert "cannot be on the allow-list" in sources.remarks[0]


async def test_go(tell: Tell) -> None:
    """Module proxies in their order without `direct`, and the checksum database."""
    said = {
        "GOPROXY": f"https://a.example.com|{WITH_SECRET},file:///opt/go,https://b.example.com/x,direct",
        "GOSUMDB": "sum.example.com+1234+abc https://sums.example.org", "GOPRIVATE": "corp.example.com/*",
    }  # fmt: skip
    sources = await ask("go", tell({"go": printing(json.dumps(said))}))
    assert sources.hosts == ("a.example.com", "b.example.com", "sums.example.org")
    assert sources.folders == (Path("/opt/go"),)
    assert sources.environment == {
        "GOPROXY": "https://a.example.com,file:///opt/go,https://b.example.com/x",
        "GOPRIVATE": "corp.example.com/*",
        "GOSUMDB": said["GOSUMDB"],
    }
    assert hides(sources)


@pytest.mark.parametrize("proxy", ["direct", "off", ""])
async def test_go_without_proxy(proxy: str, tell: Tell) -> None:
    """Without a module proxy there is nothing to fetch from, which is a remark; the checksums are at their own name."""
    sources = await ask("go", tell({"go": printing(json.dumps({"GOPROXY": proxy, "GOSUMDB": "sum.example.com"}))}))
    assert sources.environment["GOPROXY"] == "off"
    assert sources.hosts == ("sum.example.com",)
    assert len(sources.remarks) == 1


CARGO = f"""\
[source.crates-io]
replace-with = "mirror"
[source.mirror]
registry = "sparse+https://crates.example.com/index/"
[source.other]
registry = "https://unused.example.com/"
[registries.corp]
index = "sparse+https://corp.example.com:8443/index/"
token = "{SECRET}"
[registries.secret]
index = "sparse+{WITH_SECRET}/"
[registries.old]
index = "https://git.example.com/index.git"
[http]
proxy = "http://me:{SECRET}@proxy.example.com"
"""


async def test_cargo_mirror(tell: Tell) -> None:
    """A mirror of crates and other registries, written into a file of the sandbox's own without their tokens."""
    machine = tell(CARGO_REGISTRIES_MORE_INDEX="sparse+https://more.example.com/")
    file = machine.home / ".cargo/config.toml"
    file.parent.mkdir()
    file.write_text(CARGO, encoding="utf-8")
    sources = await ask("rust", machine)
    assert sources.hosts == ("crates.example.com", "corp.example.com:8443", "git.example.com", "more.example.com")
    assert tomllib.loads(sources.files[".cargo/config.toml"]) == {
        "source": {
            "crates-io": {"replace-with": "mirror"},
            "mirror": {"registry": "sparse+https://crates.example.com/index/"},
        },
        "registries": {
            "corp": {"index": "sparse+https://corp.example.com:8443/index/"},
            "old": {"index": "https://git.example.com/index.git"},
        },
    }
    assert sources.environment["CARGO_REGISTRIES_MORE_INDEX"] == "sparse+https://more.example.com/"
    assert hides(sources)


async def test_cargo_folder(tell: Tell, tmp_path: Path) -> None:
    """Crates in a folder need no host; a configuration that cannot be read is a remark."""
    home = tmp_path / "cargo"
    home.mkdir()
    (home / "config").write_text(
        f'[source.crates-io]\nreplace-with = "here"\n[source.here]\ndirectory = "{tmp_path}/vendor"\n', encoding="utf-8"
    )
    sources = await ask("rust", tell(CARGO_HOME=str(home)))
    assert (sources.hosts, sources.folders, sources.remarks) == ((), (tmp_path / "vendor",), ())
    (home / "config").write_text("[source", encoding="utf-8")
    assert "cannot be read" in (await ask("rust", tell(CARGO_HOME=str(home)))).remarks[0]


async def test_cargo_default(tell: Tell) -> None:
    """Cargo's own registry is read from its complaint; one that uses git is a remark."""
    said = "error: failed to download from `https://crates.example.com/%s`"
    sources = await ask("rust", tell({"cargo": f"echo '{said % 'config.json'}' >&2; exit 101"}))
    assert sources.hosts == ("crates.example.com",)
    assert "does not answer" in sources.remarks[0]
    sources = await ask("rust", tell({"cargo": "echo 'failed to fetch `https://git.example.com/x`' >&2; exit 101"}))
    assert sources.hosts == ()
    assert "1.70" in sources.remarks[0]


def certificate(folder: Path, host: str) -> tuple[Path, ssl.SSLContext]:
    """Make a certificate that signs itself, and what serves with it."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, host)])
    day = dt.datetime(2020, 1, 1, tzinfo=dt.UTC)
    signed = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day + dt.timedelta(days=36500))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(host)]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    public, private = folder / "public.pem", folder / "private.pem"
    public.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
    private.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(public, private)
    return public, context


async def test_cargo_downloads(tell: Tell, tmp_path: Path) -> None:
    """A sparse index says where its crates are: asked over TLS, through a company's proxy, with its certificates."""
    public, context = certificate(tmp_path, "crates.example.com")
    paths: list[bytes] = []

    async def index(_: Origin, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        paths.append((await reader.readuntil(b"\r\n\r\n")).split()[1])
        body = b'{"dl": "https://static.example.org/crates/{crate}", "auth-required": true}'
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(body), body))
        await writer.drain()

    async with origin(index, ssl=context) as inner:
        names = Names({"crates.example.com": [["127.0.0.1"]]})
        allowed = Allowed.parse([f"crates.example.com:{inner.port}"])
        async with serving(allowed, resolve=names.resolve) as company:
            said = f"failed to download from `https://crates.example.com:{inner.port}/index/config.json`"
            made = tell({"cargo": f"echo '{said}' >&2; exit 101"})
            machine = Machine(made.environment, ca_bundle=public, https_proxy=company.url, path=made.path)
            sources = await ask("rust", machine)
    assert sources.hosts == (f"crates.example.com:{inner.port}", "static.example.org")
    assert paths == [b"/index/config.json"]
    assert "token" in sources.remarks[0]


SETTINGS = f"""\
<settings xmlns="http://maven.apache.org/SETTINGS/1.2.0">
  <servers><server><id>corp</id><username>me</username><password>{SECRET}</password></server></servers>
  <mirrors>
    <mirror><id>no</id><mirrorOf>external:http:*</mirrorOf><url>http://0.0.0.0/</url><blocked>true</blocked></mirror>
    <mirror><id>corp</id><mirrorOf>*,!other</mirrorOf><url>https://maven.example.com:8443/all</url></mirror>
    <mirror><id>secret</id><mirrorOf>x</mirrorOf><url>{WITH_SECRET}/x</url></mirror>
  </mirrors>
</settings>
"""
MODEL = """\
<project xmlns="http://maven.apache.org/POM/4.0.0"><repositories><repository><id>central</id>
<url>https://central.example.org/maven2</url></repository></repositories></project>
"""


def maven(tmp_path: Path, machine: Machine) -> None:
    """Install a stand-in for Maven."""
    installed = tmp_path / "maven"
    for folder in ("bin", "lib", "conf"):
        (installed / folder).mkdir(parents=True)
    (installed / "bin/mvn").write_text("", encoding="utf-8")
    (installed / "bin/mvn").chmod(0o755)
    (Path(machine.path) / "mvn").symlink_to(installed / "bin/mvn")
    with zipfile.ZipFile(installed / "lib/maven-model-builder-3.9.9.jar", "w") as jar:
        jar.writestr("org/apache/maven/model/pom-4.0.0.xml", MODEL)


async def test_maven(tell: Tell, tmp_path: Path) -> None:
    """Without mirrors, Maven's own repository; with one, that one alone, and settings that hold nothing else."""
    machine = tell()
    maven(tmp_path, machine)
    sources = await ask("java", machine)
    assert (sources.hosts, sources.files) == (("central.example.org",), {})
    (machine.home / ".m2").mkdir()
    (machine.home / ".m2/settings.xml").write_text(SETTINGS, encoding="utf-8")
    sources = await ask("java", machine)
    assert sources.hosts == ("maven.example.com:8443",)
    written = ET.fromstring(sources.files[".m2/settings.xml"])
    assert [element.text for element in written.iterfind("./mirrors/mirror/")] == [
        "corp", "*,!other", "https://maven.example.com:8443/all",
    ]  # fmt: skip
    assert hides(sources)
    assert sum("credentials" in remark for remark in sources.remarks) == 2
    (machine.home / ".m2/settings.xml").write_text("<settings>", encoding="utf-8")
    sources = await ask("java", machine)
    assert sources.hosts == ("central.example.org",)
    assert "cannot be read" in sources.remarks[0]


async def test_clean_environment(tell: Tell) -> None:
    """A manager is told what is about packages, runs in `/`, and is told none of the server's secrets."""
    script = 'printf \'{"registry": "https://npm.example.com%s"}\' "$PWD"; /usr/bin/env > "$HOME/env"'
    machine = tell(
        {"npm": script}, GITHUB_TOKEN=SECRET, GOOGLE_KEY=SECRET, npm_config_loglevel="error", PIP_TIMEOUT="9"
    )
    sources = await ask("node", machine)
    assert sources.environment["npm_config_registry"] == "https://npm.example.com/"
    told = (machine.home / "env").read_text(encoding="utf-8")
    assert SECRET not in told
    assert "npm_config_loglevel=error" in told


def real(name: str) -> bool:
    """Whether a package manager is installed where sandboxes find it."""
    return shutil.which(name, path="/usr/local/bin:/usr/bin:/bin") is not None


@pytest.mark.skipif(not real("npm"), reason="npm is not installed")
async def test_real_npm(tmp_path: Path) -> None:
    """The real npm says so, and shows no token."""
    file = tmp_path / "npmrc"
    file.write_text(
        f"registry=https://npm.example.com/a/\n@corp:registry=https://corp.example.com/\n//npm.example.com/a/:_authToken={SECRET}\n",
        encoding="utf-8",
    )
    sources = await ask("node", Machine({"HOME": str(tmp_path), "NPM_CONFIG_USERCONFIG": str(file)}))
    assert sources.hosts == ("npm.example.com", "corp.example.com")
    assert hides(sources)


@pytest.mark.skipif(not real("go"), reason="Go is not installed")
async def test_real_go(tmp_path: Path) -> None:
    """The real Go says so."""
    file = tmp_path / "env"
    file.write_text("GOPROXY=https://go.example.com,direct\nGOSUMDB=off\n", encoding="utf-8")
    sources = await ask("go", Machine({"HOME": str(tmp_path), "GOENV": str(file)}))
    assert sources.hosts == ("go.example.com",)
    assert sources.environment == {"GOPROXY": "https://go.example.com", "GOSUMDB": "off"}


async def test_real_pip(tmp_path: Path) -> None:
    """The real pip says so, with its default where nothing is configured."""
    machine = Machine({"HOME": str(tmp_path), "PATH": os.environ["PATH"], "PIP_CONFIG_FILE": os.devnull})
    if not machine.programs("python3"):
        pytest.skip("there is no python3")
    sources = await ask("python", machine)
    if sources.remarks:
        pytest.skip("no python3 has pip")
    assert len(sources.hosts) == 2
    told = Machine({**machine.environment, "PIP_INDEX_URL": "https://pip.example.com/simple"})
    assert (await ask("python", told)).hosts == ("pip.example.com",)


@pytest.mark.skipif(not real("mvn"), reason="Maven is not installed")
async def test_real_maven(tmp_path: Path) -> None:
    """The installed Maven has a default repository."""
    sources = await ask("java", Machine({"HOME": str(tmp_path)}))
    assert len(sources.hosts) == 1
