"""Read settings: the one place that reads YAML, the environment and the files that they name."""

import os
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, cast
from urllib.parse import unquote

import yaml
from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError
from pydantic_settings.sources.utils import parse_env_vars

from bot.errors import BotError, OperatorError
from bot.settings.problems import Key, dotted, explain, hint, quoted, secret_keys
from bot.settings.server import PREFIX, ROOT_STATE_DIR, ServerSettings

MAX_BYTES = 64 * 1024
"""Size of a file of settings; ours has 5 kB, and more is an attack or a mistake."""
MAX_DEPTH = 20
"""Lists and mappings inside each other."""

_SCALARS = frozenset(f"tag:yaml.org,2002:{name}" for name in ("null", "bool", "int", "float", "str", "timestamp"))
_Loader = cast("type[yaml.SafeLoader]", getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # the same in C
NO_SANDBOX = f"{PREFIX}NO_SANDBOX"
"""Variable that has to say `accepted` beside `sandbox.kind: none`; no setting, so that no file alone can say it."""
_SERVICE_LINKS = ("SERVICE_HOST", "SERVICE_PORT", "PORT_")
_KEY_FALLBACKS = {
    ("anthropic", "api_key"): "ANTHROPIC_API_KEY",
    ("openai", "api_key"): "OPENAI_API_KEY",
    ("azure", "api_key"): "AZURE_OPENAI_API_KEY",
    ("google", "api_key"): "GEMINI_API_KEY",
}
"""Variables that other programs of the same vendor read."""
_NETWORK_FALLBACKS = {"https_proxy": "HTTPS_PROXY", "no_proxy": "NO_PROXY", "ca_bundle": "SSL_CERT_FILE"}
"""Variables that other programs read, the first two in small letters too; they count where nobody said anything."""
_PROXIES = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"})


class _Mark(Protocol):
    """A place in a file, from 0, as both builds of the parser give it."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Document:
    """A YAML file and where each of its keys stands."""

    name: str
    values: Mapping[str, object]
    marks: Mapping[Key, tuple[int, int]]
    """Line and column, from 1, of each key and list item."""

    def where(self, key: Key) -> str:
        """Name the place of a key, or of the nearest one above it, as `config/server.yaml:3:5`."""
        while key and key not in self.marks:
            key = key[:-1]
        line, column = self.marks.get(key, (1, 1))
        return f"{self.name}:{line}:{column}"


def environment() -> MutableMapping[str, str]:
    """Return the environment of this process, for those who start it."""
    return os.environ


def read_document(text: bytes | str, name: str, refuse: Callable[[str], BotError]) -> Document:
    """Read a YAML mapping of plain values; no aliases, no tags, no key twice.

    Args:
        text: UTF-8.
        name: the file's name, for messages.
        refuse: makes the error to raise of `name:line:column: what is wrong`.
    """
    reader = _Reader(name, refuse)
    try:
        return reader.read(text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise reader.refusal(mark, reader.plain(error)) from None
    except yaml.YAMLError as error:
        raise reader.refusal(None, f"cannot be read as YAML: {' '.join(str(error).split())[:200]}") from None


class _Reader:
    """Reads one file."""

    def __init__(self, name: str, refuse: Callable[[str], BotError]) -> None:
        self._name = name
        self._refuse = refuse
        self._marks: dict[Key, tuple[int, int]] = {}
        self._lines: list[str] = []

    def refusal(self, mark: _Mark | None, problem: str) -> BotError:
        line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        return self._refuse(f"{self._name}:{line}:{column}: {problem}")

    def read(self, text: bytes | str) -> Document:
        plain = self._decode(text)
        self._lines = plain.splitlines()
        self._check_events(plain)
        node = yaml.compose(plain, Loader=_Loader)
        if node is None:
            return Document(self._name, {}, {})
        if not isinstance(node, yaml.MappingNode):
            raise self.refusal(node.start_mark, "must be a mapping of keys to values")
        values = cast("dict[str, object]", self._value(node, ()))  # a mapping node gives a mapping
        return Document(self._name, values, self._marks)

    def plain(self, error: yaml.MarkedYAMLError) -> str:
        """Say in our words what the parser could not read."""
        problem = " ".join(str(error.problem or error.context).split())
        mark = error.problem_mark
        line = self._lines[mark.line] if mark and mark.line < len(self._lines) else ""
        if mark and "start any token" in problem and line[mark.column : mark.column + 1] == "\t":
            return "a tab cannot indent in YAML; use spaces"
        if "nesting depth" in problem:
            return f"has more than {MAX_DEPTH} levels"
        return f"cannot be read as YAML: {problem}"

    def _decode(self, text: bytes | str) -> str:
        data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
        if len(data) > MAX_BYTES:
            raise self.refusal(None, f"is larger than {MAX_BYTES // 1024} KiB")
        try:
            return data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            column = error.start - (data.rfind(b"\n", 0, error.start) + 1) + 1
            raise self._refuse(f"{self._name}:{line}:{column}: is not UTF-8") from None

    def _check_events(self, text: str) -> None:
        """Refuse what could grow or run before anything is built of it."""
        depth = 0
        for event in yaml.parse(text, Loader=_Loader):
            if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
                raise self.refusal(event.start_mark, "anchors and aliases are not supported; write the value out")
            if isinstance(event, yaml.CollectionStartEvent):
                depth += 1
                if depth > MAX_DEPTH:
                    raise self.refusal(event.start_mark, f"has more than {MAX_DEPTH} levels")
            elif isinstance(event, yaml.CollectionEndEvent):
                depth -= 1

    def _value(self, node: yaml.Node, key: Key) -> object:
        if isinstance(node, yaml.MappingNode) and node.tag == "tag:yaml.org,2002:map":
            return dict(self._pairs(node, key))
        if isinstance(node, yaml.SequenceNode) and node.tag == "tag:yaml.org,2002:seq":
            items: list[object] = []
            for index, item in enumerate(node.value):
                self._mark((*key, index), item)
                items.append(self._value(item, (*key, index)))
            return items
        if isinstance(node, yaml.ScalarNode) and node.tag in _SCALARS:
            return self._scalar(node)
        raise self.refusal(node.start_mark, f"the tag {quoted(str(node.tag))} is not supported")

    def _pairs(self, node: yaml.MappingNode, key: Key) -> Iterator[tuple[str, object]]:
        seen: set[str] = set()
        for name, value in node.value:
            if not isinstance(name, yaml.ScalarNode):
                raise self.refusal(name.start_mark, "a key must be plain text")
            if name.value in seen:
                raise self.refusal(name.start_mark, f"the key {quoted(name.value)} stands here twice")
            seen.add(name.value)
            self._mark((*key, name.value), name)
            yield name.value, self._value(value, (*key, name.value))

    def _mark(self, key: Key, node: yaml.Node) -> None:
        self._marks[key] = (node.start_mark.line + 1, node.start_mark.column + 1)

    def _scalar(self, node: yaml.ScalarNode) -> object:
        if node.tag.endswith((":timestamp", ":str")):
            return node.value
        loader = yaml.SafeLoader("")
        try:
            return cast("object", loader.construct_object(node))
        except (ValueError, KeyError, OverflowError):
            raise self.refusal(node.start_mark, f"{quoted(node.value)} is no {node.tag.rpartition(':')[2]}") from None
        finally:
            loader.dispose()


def packed(name: str) -> Path:
    """Return one of our own files of `config/`: inside the package where it is installed, beside it in a checkout."""
    inside = Path(__file__).parent.parent / "_config" / name
    return inside if inside.exists() else Path(__file__).parent.parent.parent / "config" / name


def config_path(config: Path | None, environ: Mapping[str, str]) -> Path:
    """Return the file of the operator's settings: as a flag says, as the environment says, or the packed one.

    A `config/server.yaml` in the working directory is not looked for: the directory may be anybody's repository.
    """
    return config or Path(environ.get(f"{PREFIX}CONFIG") or packed("server.yaml"))


def load_server(
    config: Path | None, environ: Mapping[str, str], overrides: Mapping[str, object] | None = None
) -> ServerSettings:
    """Put the operator's settings together: defaults < file < environment < overrides.

    Args:
        config: the file that a flag names; None looks on, see `config_path`.
        environ: the environment; not changed.
        overrides: values of flags by dotted key, as `limits.turns`; None counts as not given.

    Raises:
        OperatorError: with `file:line:column` or the variable's name, all problems at once where possible.
    """
    path = config_path(config, environ)
    try:
        text = path.read_bytes()
    except OSError as error:
        raise OperatorError(f"{path}: cannot be read: {error.strerror}") from None
    document = read_document(text, str(path), OperatorError)
    flags = _nested({key: value for key, value in (overrides or {}).items() if value is not None})
    _refuse_secrets(document, flags)
    layers = (_without_null(document.values), _from_environment(environ), flags)
    merged: dict[str, object] = {}
    for layer in layers:
        _merge(merged, layer)
    _places(merged, environ)
    _usual_network(merged, environ)

    def where(key: Key) -> str:
        return _where(key, document, environ, flags)

    _read_files(merged, where)
    try:
        return ServerSettings.model_validate(merged)
    except ValidationError as error:
        raise OperatorError("\n".join(explain(error, ServerSettings, where))) from None


def secret_values(settings: ServerSettings) -> tuple[str, ...]:
    """Return the values of all secrets that are set, for masking."""
    found = []
    for key in secret_keys(ServerSettings):
        value: object = settings
        for part in key:
            value = getattr(value, part)
        if isinstance(value, SecretStr) and (text := value.get_secret_value()):
            found.append(text)
            if key[-1].endswith("_login"):
                # Half of it is secret by itself too.
                found.append(text.partition(":")[2])
    return tuple(found)


def take_secrets(environ: MutableMapping[str, str]) -> None:
    """Remove the variables that hold secrets, so that no process we start inherits them."""
    names = {_variable(key) for key in secret_keys(ServerSettings)} | set(_KEY_FALLBACKS.values())
    for name in [name for name in environ if name.upper() in names]:
        del environ[name]
    for name in [name for name in environ if name.upper() in _PROXIES and "@" in environ[name]]:
        del environ[name]


def _variable(key: Key) -> str:
    return PREFIX + "__".join(str(part) for part in key).upper()


def _nested(flat: Mapping[str, object]) -> dict[str, object]:
    nested: dict[str, object] = {}
    for name, value in flat.items():
        *groups, last = name.split(".")
        inner = nested
        for group in groups:
            inner = cast("dict[str, object]", inner.setdefault(group, {}))  # only groups stand before a dot
        inner[last] = value
    return nested


def _without_null(values: Mapping[str, object]) -> dict[str, object]:
    """Drop keys that say `null`: they ask for the default."""
    return {
        name: _without_null(value) if isinstance(value, Mapping) else value
        for name, value in values.items()
        if value is not None
    }


def _merge(lower: dict[str, object], higher: Mapping[str, object]) -> None:
    """Put a higher layer over a lower one; a secret and the file that holds it replace each other."""
    for name, value in higher.items():
        below = lower.get(name)
        if isinstance(value, Mapping) and isinstance(below, dict):
            _merge(below, value)
            continue
        other = name.removesuffix("_file") if name.endswith("_file") else f"{name}_file"
        if other not in higher:
            lower.pop(other, None)
        lower[name] = dict(value) if isinstance(value, Mapping) else value


def _refuse_secrets(document: Document, flags: Mapping[str, object]) -> None:
    """Take no secret from where others can read it."""
    for key in secret_keys(ServerSettings):
        remedy = f"set the variable {_variable(key)}" + (f" or `{dotted(key)}_file`" if len(key) > 1 else "")
        if key in document.marks and _at(document.values, key) is not None:
            raise OperatorError(f"{document.where(key)}: `{dotted(key)}` is a secret and may not stand here; {remedy}")
        if _at(flags, key) is not None:
            raise OperatorError(f"`{dotted(key)}` is a secret and cannot be a flag; {remedy}")


def _at(values: Mapping[str, object], key: Key) -> object:
    value: object = values
    for part in key:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def _from_environment(environ: Mapping[str, str]) -> dict[str, object]:
    """Read the variables that begin with our prefix, and the keys of vendors."""
    for name in environ:
        _check_variable(name, environ[name])
    source = EnvSettingsSource(ServerSettings)
    source.env_vars = parse_env_vars(environ, ignore_empty=True)
    try:
        values = source()
    except SettingsError as error:
        raise OperatorError(f"the environment: {error}") from None
    for key, variable in _KEY_FALLBACKS.items():
        group = values.setdefault(key[0], {})
        if environ.get(variable) and isinstance(group, dict) and not {key[1], f"{key[1]}_file"} & group.keys():
            group[key[1]] = environ[variable]
    return values


def _check_variable(name: str, value: str) -> None:
    """Refuse a variable of ours that sets nothing; Kubernetes makes some of its own for a service of our name."""
    if not name.upper().startswith(PREFIX) or name.upper() in {f"{PREFIX}CONFIG", NO_SANDBOX}:
        return
    rest = name.upper().removeprefix(PREFIX)
    if rest == "PORT" and value.startswith("tcp://"):
        raise OperatorError(
            f"{name}: Kubernetes set this for a service of the same name; set enableServiceLinks: false"
        )
    key = rest.lower().partition("__")[0]
    if key not in ServerSettings.model_fields and not rest.startswith(_SERVICE_LINKS):
        close = hint(key, ServerSettings.model_fields)
        raise OperatorError(f"{name}: no such setting {quoted(key)}; {close}")


def _places(merged: dict[str, object], environ: Mapping[str, str]) -> None:
    """Fill in the default of `state_dir`, and read `~` as the environment's home."""
    default = ServerSettings.model_fields["state_dir"].default
    if "state_dir" not in merged and (base := environ.get("XDG_STATE_HOME")):
        merged["state_dir"] = str(Path(base) / "issuewright")
    elif "state_dir" not in merged and os.geteuid() == 0:
        # Work trees belong to other users then, who cannot pass through root's home.
        merged["state_dir"] = ROOT_STATE_DIR
    text = str(merged.get("state_dir", default))
    if text.startswith("~/"):
        merged["state_dir"] = str(Path(environ.get("HOME") or Path.home()) / text[2:])


def _usual_network(merged: dict[str, object], environ: Mapping[str, str]) -> None:
    """Take proxy and certificates from where other programs take them, where no layer says anything of them."""
    network = merged.setdefault("network", {})
    if not isinstance(network, dict):
        return
    said = set(network)
    for key, name in _NETWORK_FALLBACKS.items():
        if key not in said and (value := environ.get(name.lower()) or environ.get(name)):
            network[key] = value
    if "https_proxy" in said or "https_proxy" not in network:
        return
    scheme, mark, rest = str(network["https_proxy"]).rpartition("://")
    login, at, place = rest.rpartition("@")
    # Without a scheme it is plain HTTP, as for curl.
    network["https_proxy"] = f"{scheme}{mark}{place}" if mark else f"http://{place}"
    if at and not {"https_proxy_login", "https_proxy_login_file"} & said:
        network["https_proxy_login"] = unquote(login)


def _read_files(merged: dict[str, object], where: Callable[[Key], str]) -> None:
    """Read the secrets that stand in files of their own."""
    for key in secret_keys(ServerSettings):
        group = _at(merged, key[:-1]) if len(key) > 1 else None
        if not isinstance(group, dict) or not (path := group.get(f"{key[-1]}_file")):
            continue
        place = where((*key[:-1], f"{key[-1]}_file"))
        if group.get(key[-1]):
            raise OperatorError(f"{place}: `{dotted(key)}` and `{dotted(key)}_file` are both set; keep one")
        try:
            data = Path(str(path)).expanduser().read_bytes()[: MAX_BYTES + 1]
            group[key[-1]] = data.decode().strip("\r\n")
        except OSError as error:
            raise OperatorError(f"{place}: {path} cannot be read: {error.strerror}") from None
        except UnicodeDecodeError:
            raise OperatorError(f"{place}: {path} is not UTF-8 text") from None
        if not group[key[-1]] or len(data) > MAX_BYTES:
            raise OperatorError(f"{place}: {path} is empty or larger than {MAX_BYTES // 1024} KiB")


def _where(key: Key, document: Document, environ: Mapping[str, str], flags: Mapping[str, object]) -> str:
    """Name the layer that a value came from."""
    if _at(flags, key) is not None:
        return "a flag"
    set_here = {name.upper(): value for name, value in environ.items()}
    for end in range(len(key), 0, -1):
        name = _variable(key[:end])
        if set_here.get(name):
            return name
    fallback = _KEY_FALLBACKS.get((str(key[0]), str(key[-1]))) if key else None
    if len(key) > 1 and key[0] == "network":
        fallback = _NETWORK_FALLBACKS.get(str(key[1]).removesuffix("_login"))
    if fallback and _at(document.values, key) is None and set_here.get(fallback):
        return fallback
    return document.where(key)
