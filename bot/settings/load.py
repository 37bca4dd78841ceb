"""Read settings: the one place that reads YAML, the environment and the files that they name."""

import os
from collections.abc import Callable, Mapping, MutableMapping
from pathlib import Path
from typing import cast
from urllib.parse import unquote

from pydantic import SecretStr, ValidationError
from pydantic_settings import EnvSettingsSource, SettingsError
from pydantic_settings.sources.utils import parse_env_vars

from bot.errors import OperatorError
from bot.settings.problems import Key, dotted, explain, hint, quoted, secret_keys
from bot.settings.reading import MAX_BYTES, Document, packed, read_document
from bot.settings.server import PREFIX, ROOT_STATE_DIR, ServerSettings

NO_SANDBOX = f"{PREFIX}NO_SANDBOX"
"""Variable that has to say `accepted` beside `sandbox.kind: none`; no setting, so that no file alone can say it."""
_SERVICE_LINKS = ("SERVICE_HOST", "SERVICE_PORT", "PORT_")
_KEY_FALLBACKS = {
    ("anthropic", "api_key"): "ANTHROPIC_API_KEY",
    ("openai", "api_key"): "OPENAI_API_KEY",
    ("azure", "api_key"): "AZURE_OPENAI_API_KEY",
    ("google", "api_key"): "GEMINI_API_KEY",
    ("bedrock", "api_key"): "AWS_BEARER_TOKEN_BEDROCK",
}
"""Variables that other programs of the same vendor read."""
_NETWORK_FALLBACKS = {"https_proxy": "HTTPS_PROXY", "no_proxy": "NO_PROXY", "ca_bundle": "SSL_CERT_FILE"}
"""Variables that other programs read, the first two in small letters too; they count where nobody said anything."""
_PROXIES = frozenset({"HTTPS_PROXY", "HTTP_PROXY", "ALL_PROXY"})


def environment() -> MutableMapping[str, str]:
    """Return the environment of this process, for those who start it."""
    return os.environ


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
    """Put a higher layer over a lower one; a secret and the file or command that has it replace each other."""
    for name, value in higher.items():
        below = lower.get(name)
        if isinstance(value, Mapping) and isinstance(below, dict):
            _merge(below, value)
            continue
        for other in set(_ways(name)) - higher.keys():
            lower.pop(other, None)
        lower[name] = dict(value) if isinstance(value, Mapping) else value


def _ways(name: str) -> tuple[str, str, str]:
    """Return the keys by which a secret can be said: itself, its file, its command; a name is any of the three."""
    secret = name.removesuffix("_file").removesuffix("_command")
    return secret, f"{secret}_file", f"{secret}_command"


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
        if environ.get(variable) and isinstance(group, dict) and not set(_ways(key[1])) & group.keys():
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
        if not isinstance(group, dict):
            continue
        said = [(*key[:-1], name) for name in _ways(key[-1]) if group.get(name)]
        if len(said) > 1:
            raise OperatorError(f"{where(said[1])}: `{dotted(said[0])}` and `{dotted(said[1])}` are both set; keep one")
        if not (path := group.get(f"{key[-1]}_file")):
            continue
        place = where((*key[:-1], f"{key[-1]}_file"))
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
