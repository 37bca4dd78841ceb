"""The operator's settings: every key that `config/server.yaml`, the environment and flags may set."""

import base64
import binascii
import fnmatch
from functools import partial
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import quote, urlsplit

from pydantic import BeforeValidator, Field, SecretStr, field_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

from bot.domain.task import Mode, PlanAs, Ready
from bot.settings.catalogue import default_model
from bot.settings.section import CommandLine, ModelName, Paths, Section, Texts, Url, split

PREFIX = "ISSUEWRIGHT_"
"""Begins the name of each environment variable."""

DEFAULT_STATE_DIR = Path("~/.local/state/issuewright")
ROOT_STATE_DIR = "/var/lib/issuewright"


def _is_local(host: str) -> bool:
    return host in {"localhost", "::1"} or host.startswith("127.")


def _covers(entry: str, host: str) -> bool:
    """Say whether an entry as `example.org`, `.example.org` or `*` names a host; networks are not understood."""
    name = entry.lower().partition(":")[0].removeprefix("*").removeprefix(".")
    return entry == "*" or (name != "" and (host == name or host.endswith(f".{name}")))


class GitHubSection(Section):
    """The GitHub App: who we are and how we reach GitHub."""

    app_id: int | None = Field(None, ge=1, description="The App's numeric id. `null` until the App is set up.")
    private_key: SecretStr | None = Field(
        None, description="The App's private key in PEM form; `\\n` may stand for line ends, or the whole in Base64."
    )
    private_key_file: Path | None = Field(None, description="File that holds the App's private key.")
    webhook_secret: SecretStr | None = Field(None, description="The secret with which GitHub signs deliveries.")
    webhook_secret_file: Path | None = Field(None, description="File that holds the webhook secret.")
    webhook_secret_previous: SecretStr | None = Field(
        None, description="The secret before the last change; accepted too, so that a change loses no delivery."
    )
    webhook_secret_previous_file: Path | None = Field(None, description="File that holds the previous secret.")
    api_url: Url = Field(
        "https://api.github.com", description="GitHub's API. On GitHub Enterprise Server `https://HOST/api/v3`."
    )
    web_url: Url | None = Field(None, description="GitHub's pages and git. `null` follows from `api_url`.")
    content_interval_s: float = Field(
        1.0, ge=0, le=60, description="Seconds between two things we create (comments, pull requests) on GitHub."
    )

    @field_validator("private_key")
    @classmethod
    def _pem(cls, value: SecretStr | None) -> SecretStr | None:
        if value is None:
            return None
        text = value.get_secret_value().strip()
        if not text.startswith("-----BEGIN "):
            try:
                text = base64.b64decode(text, validate=True).decode("ascii").strip()
            except (binascii.Error, ValueError):
                text = ""
        text = text.replace("\\n", "\n").strip()
        if not text.startswith("-----BEGIN ") or "PRIVATE KEY-----" not in text:
            msg = "must be a private key in PEM form (`-----BEGIN … PRIVATE KEY-----`)"
            raise ValueError(msg)
        return SecretStr(text + "\n")

    @property
    def webhook_secrets(self) -> tuple[bytes, ...]:
        """The secrets that sign deliveries, the current one first; empty until one is set."""
        both = (self.webhook_secret, self.webhook_secret_previous)
        return tuple(text.encode() for secret in both if secret and (text := secret.get_secret_value()))

    @property
    def web(self) -> str:
        """Where GitHub's pages and git are: `web_url`, or what follows from `api_url`."""
        if self.web_url:
            return self.web_url
        scheme, _, rest = self.api_url.partition("://")
        host = rest.partition("/")[0].removeprefix("api.")
        return f"{scheme}://{host}"


class ModelsSection(Section):
    """Which model does what, and which ones others may choose."""

    act: ModelName = Field(
        default_factory=partial(default_model, "act"), description="The model that does the work, `provider:name`."
    )
    plan: ModelName | None = Field(
        None,
        description="The model that plans it. `null` is the default for plans where `act` is the default too, and else "
        "the same as `act`.",
    )
    fallback: Annotated[tuple[ModelName, ...], BeforeValidator(split)] = Field(
        (), description="Models that go on, in this order, where the one at work cannot be had."
    )
    allowed: Texts = Field(
        (), description="Patterns of models that repositories and commands may choose. Empty: only `act`."
    )
    catalogue: Path | None = Field(
        None, description="File like `config/models.yaml` whose entries come before ours: windows, prices, dialects."
    )
    dialect: Literal["native", "xml", "json", "prose"] | None = Field(
        None,
        description="How tool calls are spelled: by the API, or as text for models that have none. `null` is what "
        "`config/models.yaml` says of the model.",
    )

    @property
    def planner(self) -> str:
        """The model that plans; where the operator chose one for the work alone, its key is the one that is there."""
        if self.plan is not None:
            return self.plan
        return default_model("plan") if self.act == default_model("act") else self.act

    def permits(self, name: str) -> bool:
        """Say whether a repository or a command may choose this model."""
        return name in {self.act, self.plan} or any(fnmatch.fnmatchcase(name, pattern) for pattern in self.allowed)


REGION = r"^[a-z0-9-]+$"
"""It becomes part of a host's name."""


class Access(Section):
    """Access to an API of models."""

    api_key: SecretStr | None = Field(None, description="The API key.")
    api_key_file: Path | None = Field(None, description="File that holds the API key.")
    api_key_command: CommandLine = Field(
        (),
        description="Command that prints the API key, as a list of words or one line; run without a shell, and again "
        "when the key is refused.",
    )
    api_key_lifetime_s: float = Field(
        300, ge=0, le=86_400, description="Seconds for which a key that the command printed is used."
    )
    base_url: Url | None = Field(
        None, description="Another place that speaks the same API. `null` is the vendor's own."
    )

    @property
    def has_key(self) -> bool:
        """Whether there is a key, or a command that prints one."""
        return self.api_key is not None or bool(self.api_key_command)


class AnthropicSection(Access):
    """Access to Anthropic's API, for `anthropic:NAME`. `ANTHROPIC_API_KEY` serves as the key too."""


class BedrockSection(Access):
    """Anthropic's models on Amazon Bedrock, for `bedrock:NAME` (install the extra `bedrock`).

    Without an API key of Bedrock (`AWS_BEARER_TOKEN_BEDROCK` serves too) requests are signed: with the keys below, else
    with what AWS's own tools would use.
    """

    region: str | None = Field(None, pattern=REGION, description="The region, as `us-east-1`.")
    base_url: Url | None = Field(None, description="Another endpoint. `null` is `bedrock-runtime` in that region.")
    access_key_id: str | None = Field(None, description="Id of the access key that signs requests.")
    secret_access_key: SecretStr | None = Field(None, description="The access key itself.")
    secret_access_key_file: Path | None = Field(None, description="File that holds the access key itself.")
    session_token: SecretStr | None = Field(None, description="What belongs to an access key that expires.")
    session_token_file: Path | None = Field(None, description="File that holds the session token.")
    facts_of: ModelName | None = Field(
        None, description="The model behind, as `anthropic:claude-sonnet-4-5`: what is known of it then counts."
    )


class VertexSection(Access):
    """Anthropic's models on Google's Vertex AI, for `vertex:NAME` (install the extra `vertex`).

    Without an access token as the key, or a command that prints one, Google's own chain is asked: the file that
    `GOOGLE_APPLICATION_CREDENTIALS` names, `gcloud`, the account of the machine.
    """

    project: str | None = Field(None, pattern=r"^[a-z0-9.:-]+$", description="Id of the project that pays.")
    region: str | None = Field(None, pattern=REGION, description="The region, as `europe-west1`, `eu` or `global`.")
    base_url: Url | None = Field(
        None, description="Another place that speaks the same API, with its `/v1`. `null` is Google's own."
    )
    facts_of: ModelName | None = Field(
        None, description="The model behind, as `anthropic:claude-sonnet-4-5`: what is known of it then counts."
    )


class OpenAISection(Access):
    """Access to OpenAI's Responses API, for `openai:NAME`. `OPENAI_API_KEY` serves as the key too."""


class OpenAIChatSection(Access):
    """Access to a server that speaks OpenAI's Chat Completions, for `openai-chat:NAME`: OpenRouter, Ollama, vLLM."""

    base_url: Url | None = Field(None, description="The server's address, with its `/v1`.")


class AzureSection(Access):
    """Access to OpenAI's models on Azure, for `azure:NAME`. `AZURE_OPENAI_API_KEY` serves as the key too."""

    base_url: Url | None = Field(None, description="The resource's address, without `/openai`.")
    api_version: str | None = Field(None, description="Version of Azure's API, as `2025-04-01-preview`.")
    deployment: str | None = Field(None, description="Name of the deployment. `null` is the model's NAME.")
    facts_of: ModelName | None = Field(
        None, description="The model behind the deployment, as `openai:gpt-5`: what is known of it then counts."
    )


class GoogleSection(Access):
    """Access to Google's Gemini API, for `google:NAME` (install the extra `google`). `GEMINI_API_KEY` serves too."""


class LimitsSection(Section):
    """What one run may use; repositories can only lower these."""

    turns: int = Field(60, ge=1, description="Model replies in one run.")
    tokens: int = Field(2_000_000, ge=1000, description="Tokens in one run, input and output, cached ones included.")
    usd: float = Field(2.0, gt=0, allow_inf_nan=False, description="US dollars in one run, where the price is known.")
    budget_usd: float = Field(20.0, gt=0, allow_inf_nan=False, description="The most that `budget` may give one run.")
    minutes: float = Field(60, gt=0, allow_inf_nan=False, description="Minutes of wall clock in one run.")
    command_s: int = Field(600, ge=1, description="Seconds that one command of the model may take.")


class DailySection(Section):
    """Ceilings of what runs on GitHub may cost in one day of UTC.

    Where one is reached, no further run starts: it stays queued until the next day, and its thread says so. A run that
    is going on is not cut, so a day can end above its ceiling by what the running ones still use.
    """

    usd: float | None = Field(
        None,
        gt=0,
        allow_inf_nan=False,
        description="US dollars of all runs together. `null`: no ceiling. Unknown prices count as nothing.",
    )
    usd_per_installation: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="US dollars of the runs of each installation of the App."
    )
    usd_per_repository: float | None = Field(
        None, gt=0, allow_inf_nan=False, description="US dollars of the runs of each repository."
    )


class SandboxSection(Section):
    """What shuts commands in, and what they may use."""

    kind: Literal["auto", "bubblewrap", "landlock", "none"] = Field(
        "auto",
        description="The level of confinement. `auto` is the strongest that withstands its self-test on this machine. "
        "`none` also needs `ISSUEWRIGHT_NO_SANDBOX=accepted` in the environment, and public repositories are refused.",
    )
    min: Literal["bubblewrap", "landlock", "none"] = Field(
        "landlock", description="Below this level no command is run: the model has its file tools only."
    )
    paths: Paths = Field(
        (),
        description="Folders with toolchains that commands may read, as those of nvm, rustup or a hosted runner; a "
        "folder `bin` in one comes first on the path.",
    )
    network: Texts = Field(
        (),
        description="Hosts that the model's commands may reach, and presets `python`, `node`, `rust`, `go`, `java` for "
        "the package index that this machine uses. Empty: none.",
    )
    setup_network: Texts = Field(
        ("python", "node", "rust", "go", "java"),
        description="The same for set-up commands, which run before the model begins, and again before the checks "
        "where it changed what they read; repositories choose among these.",
    )
    private_hosts: Texts = Field(
        (),
        description="Hosts among these that may stand for addresses inside your network, as a package mirror of the "
        "company. This machine and a cloud's metadata are refused even so.",
    )
    parallel_commands: bool = Field(
        False,  # noqa: FBT003 - a field's default
        description="Whether commands that the model sends in one reply run side by side, up to eight. What the limits "
        "below say of one command then holds for all of them together. Repositories can switch it off.",
    )
    memory_mib: int = Field(8192, ge=64, description="Mebibytes of memory of one command and its children.")
    processes: int = Field(1024, ge=16, description="Processes of one command at once.")
    cpu_s: int = Field(3600, ge=1, description="Seconds of processor time of each process.")
    disk_mib: int = Field(10_240, ge=64, description="Mebibytes of a work tree with all that commands put beside it.")


class WorkspaceSection(Section):
    """What a working copy may be."""

    max_files: int = Field(50_000, ge=1, description="Files in a repository; one with more is refused.")
    max_mib: int = Field(1024, ge=1, description="Mebibytes of a checked-out repository; a larger one is refused.")
    first_uid: int = Field(60_000, ge=1000, lt=2**31, description="First user id of working copies, as a number.")
    uids: int = Field(64, ge=1, le=4096, description="User ids from there on, one for each working copy at a time.")


class WorkerSection(Section):
    """How much is done at once."""

    tasks: int = Field(2, ge=1, le=256, description="Runs at once in this process.")
    per_installation: int = Field(2, ge=1, le=256, description="Runs at once for one installation, over all processes.")


class ProgressSection(Section):
    """The progress comment."""

    interval_s: float = Field(15, ge=1, allow_inf_nan=False, description="Seconds between two edits of the comment.")


class PullSection(Section):
    """Pull requests that we open."""

    draft: bool = Field(True, description="Open pull requests as drafts.")  # noqa: FBT003 - a field's default
    ready: Ready = Field(
        "auto",
        description="`auto` marks our pull request ready for review when all checks are green, and asks for one who "
        "asked for the work. `never` leaves that to people.",
    )
    settle_s: int = Field(60, ge=0, le=3600, description="Seconds for which checks stay green before it is marked.")


class NetworkSection(Section):
    """How the server itself reaches the network."""

    ca_bundle: Path | None = Field(
        None,
        description="File of PEM certificates to trust beside the system's own. `null` is `SSL_CERT_FILE`, else none.",
    )
    https_proxy: Url | None = Field(
        None, description="Proxy for what we ask of GitHub, git and models. `null` is `HTTPS_PROXY`, else none."
    )
    https_proxy_login: SecretStr | None = Field(
        None, description="What the proxy asks for, `user:password`, as it is and not quoted."
    )
    https_proxy_login_file: Path | None = Field(None, description="File that holds the proxy's `user:password`.")
    no_proxy: Texts | None = Field(
        None,
        description="Hosts to reach without the proxy, with all below them; `*` is all. `null` is `NO_PROXY`, else "
        "none. This machine is never reached through it.",
    )

    @field_validator("https_proxy_login")
    @classmethod
    def _two_words(cls, value: SecretStr | None) -> SecretStr | None:
        if value is not None and ":" not in value.get_secret_value():
            msg = "must be of the form user:password"
            raise ValueError(msg)
        return value

    def proxy_for(self, url: str) -> str | None:
        """Return the URL of the proxy to reach a URL through, with its login; None where it is reached directly."""
        host = urlsplit(url).hostname or ""
        if self.https_proxy is None or _is_local(host) or any(_covers(entry, host) for entry in self.no_proxy or ()):
            return None
        if self.https_proxy_login is None:
            return self.https_proxy
        user, _, password = self.https_proxy_login.get_secret_value().partition(":")
        scheme, _, rest = self.https_proxy.partition("://")
        return f"{scheme}://{quote(user, safe='')}:{quote(password, safe='')}@{rest}"


class LogSection(Section):
    """The log, on standard error."""

    level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = Field("INFO", description="The least that is written.")
    format: Literal["auto", "json", "text"] = Field(
        "auto", description="`json` is one object a line. `auto` is text on a terminal and JSON elsewhere."
    )


class ServerSettings(BaseSettings):
    """All that the operator says; made by `bot.settings.load.load_server`.

    Making one by hand reads neither the environment nor any file.
    """

    model_config = SettingsConfigDict(
        frozen=True,
        extra="forbid",
        hide_input_in_errors=True,
        env_prefix=PREFIX,
        env_nested_delimiter="__",
        env_ignore_empty=True,
        enable_decoding=False,
    )

    state_dir: Path = Field(
        DEFAULT_STATE_DIR,
        description="Directory for everything that is kept: databases, repositories. `null` is "
        "`$XDG_STATE_HOME/issuewright`; without that variable `~/.local/state/issuewright`, for root "
        "`/var/lib/issuewright`.",
    )
    database_url: SecretStr | None = Field(
        None, description="Postgres URL; secret since it holds a password. `null` is SQLite inside `state_dir`."
    )
    host: str = Field("127.0.0.1", min_length=1, description="Address to listen on.")
    port: int = Field(8080, ge=0, le=65535, description="TCP port to listen on; 0 takes a free one.")
    label: str = Field("agent", min_length=1, max_length=50, description="Label that hands an issue to us.")
    command: str = Field(
        "/agent", pattern=r"^/[A-Za-z][A-Za-z0-9-]{0,38}$", description="Word with which a comment speaks to us."
    )
    mode: Mode = Field(
        "auto",
        description="How a labelled issue is gone about: `auto` posts a plan and works on, and waits only where the "
        "plan asks something, changes protected files or takes more than half of the turns; `plan` always waits; `act` "
        "makes no plan. A command acts at once but under `plan`. The terminal has `--mode`.",
    )
    plan_as: PlanAs = Field(
        "comment",
        description="How a plan that waits is put to people: `comment`, or `pull` for a draft pull request that holds "
        "it as a file, to be reviewed line by line.",
    )
    policy: str = Field(
        "default",
        min_length=1,
        description="Which calls of the model people are asked about: `default`, or `strict` for all that do more than "
        "read; or the path of your own file in the form of `config/policy.yaml`, whose `default` then counts.",
    )
    require_approvals: int = Field(1, ge=1, le=10, description="How many people have to approve such a call, at least.")
    independent_review: bool = Field(
        True,  # noqa: FBT003 - a field's default
        description="Show as a check run whether a writer approved our work who did not ask for it.",
    )
    repositories: Texts = Field(
        ("*/*",), min_length=1, description="Patterns `owner/name` of repositories that we serve."
    )
    github: GitHubSection = GitHubSection()
    models: ModelsSection = ModelsSection()
    anthropic: AnthropicSection = AnthropicSection()
    bedrock: BedrockSection = BedrockSection()
    vertex: VertexSection = VertexSection()
    openai: OpenAISection = OpenAISection()
    openai_chat: OpenAIChatSection = OpenAIChatSection()
    azure: AzureSection = AzureSection()
    google: GoogleSection = GoogleSection()
    limits: LimitsSection = LimitsSection()
    daily: DailySection = DailySection()
    sandbox: SandboxSection = SandboxSection()
    workspace: WorkspaceSection = WorkspaceSection()
    worker: WorkerSection = WorkerSection()
    progress: ProgressSection = ProgressSection()
    pull: PullSection = PullSection()
    network: NetworkSection = NetworkSection()
    log: LogSection = LogSection()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003 - the library passes all of these by name
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take what is passed and nothing else."""
        return (init_settings,)

    @field_validator("repositories")
    @classmethod
    def _two_parts(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        for pattern in value:
            owner, slash, name = pattern.partition("/")
            if not (owner and slash and name) or "/" in name:
                msg = f"`{pattern}` is not of the form owner/name"
                raise ValueError(msg)
        return value

    def covers(self, full_name: str) -> bool:
        """Say whether we serve the repository `owner/name`; case does not count, as on GitHub."""
        owner, _, name = full_name.lower().partition("/")
        for pattern in self.repositories:
            owners, _, names = pattern.lower().partition("/")
            if fnmatch.fnmatchcase(owner, owners) and fnmatch.fnmatchcase(name, names):
                return True
        return False

    def access_to(self, provider: str) -> Access | None:
        """Return how a provider of models is reached; None where there is none of this name."""
        sections: dict[str, Access] = {
            "anthropic": self.anthropic,
            "bedrock": self.bedrock,
            "vertex": self.vertex,
            "openai": self.openai,
            "openai-chat": self.openai_chat,
            "azure": self.azure,
            "google": self.google,
        }
        return sections.get(provider)

    @property
    def loopback(self) -> bool:
        """Whether only this machine can connect."""
        return _is_local(self.host)
