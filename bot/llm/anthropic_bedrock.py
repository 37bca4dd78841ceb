"""Anthropic's models on Amazon Bedrock: requests are signed, replies come in frames of AWS's event stream.

Source: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-messages-api.html

Of Bedrock's two endpoints this is `bedrock-runtime`: it has all models in all regions, and inference profiles.
"""

import importlib.util
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from bot.errors import MalformedReply, ModelError, ModelRejected, ModelUnavailable, OperatorError
from bot.llm.anthropic_errors import Host
from bot.llm.keys import ApiKey, current
from bot.redaction import mask

if TYPE_CHECKING:
    import httpx2

    from bot.llm.anthropic_platform import Client

BEDROCK = Host(
    name="Amazon Bedrock",
    key="Set AWS_BEARER_TOKEN_BEDROCK, or `bedrock.access_key_id` with its secret, or log AWS's own tools in anew",
    permission="Allow these credentials `bedrock:InvokeModelWithResponseStream` on this model, and ask for access to "
    "it in the region of `bedrock.region`",
    absent="Set the model to one that `bedrock.region` has, as `bedrock:us.anthropic.claude-…`",
)


@dataclass(frozen=True, slots=True)
class AwsKeys:
    """Keys of an identity; without any, AWS's own chain is asked: environment, profile, role of the machine."""

    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)


class Bedrock:
    """Bedrock in one region."""

    host = BEDROCK
    as_given = False

    def __init__(
        self, region: str, *, base_url: str | None = None, bearer: ApiKey = "", keys: AwsKeys | None = None
    ) -> None:
        """Prepare; no credentials are looked for yet.

        Args:
            region: as `us-east-1`.
            base_url: another endpoint, as one inside a company's network; None: Amazon's own.
            bearer: an API key of Bedrock, sent in place of a signature; empty: requests are signed.
            keys: with which they are signed.
        """
        self.base_url = base_url or f"https://bedrock-runtime.{region}.amazonaws.com"
        self._region = region
        self._bearer = bearer
        self._keys = keys or AwsKeys()

    def connect(self, http: "httpx2.AsyncClient", max_retries: int) -> "Client":
        """Make the client."""
        import anthropic  # noqa: PLC0415 - costs 1.3 s of CPU

        # A bearer token also needs AWS's library: it reads the frames.
        if importlib.util.find_spec("boto3") is None or importlib.util.find_spec("botocore") is None:
            raise OperatorError(
                "Models on Amazon Bedrock need AWS's SDK, which is not installed. "
                "Run `pip install 'issuewright[bedrock]'`"
            )
        # With this key the SDK looks for none in the environment; what counts is set behind it.
        client = anthropic.AsyncAnthropicBedrock(
            api_key="none",
            aws_region=self._region,
            base_url=self.base_url,
            max_retries=max_retries,
            timeout=http.timeout,
            http_client=http,
        )
        client.api_key = None
        client.aws_access_key = self._keys.access_key_id
        client.aws_secret_key = self._keys.secret_access_key
        client.aws_session_token = self._keys.session_token
        return client

    async def authorize(self, client: Any, name: str) -> None:  # Any: see the protocol
        """Give the client the bearer token, where there is one."""
        if self._bearer:
            client.api_key = await current(self._bearer)

    def meaning(self, error: Exception, name: str) -> ModelError | None:
        """Return a broken frame, a place that did not answer, or credentials that are missing."""
        import botocore.eventstream  # noqa: PLC0415 - an extra; `connect` has looked for it
        import botocore.exceptions  # noqa: PLC0415

        of_aws, reason = botocore.exceptions, mask(str(error))
        if isinstance(error, botocore.eventstream.ParserError):
            return MalformedReply(f"The stream of {name} cannot be read: {reason}")
        if isinstance(error, of_aws.HTTPClientError | of_aws.ConnectionError):
            return ModelUnavailable(f"What gives the credentials for {name} cannot be reached: {reason}")
        # The SDK has a plain error for "no credentials at all".
        if isinstance(error, of_aws.BotoCoreError | of_aws.ClientError | RuntimeError):
            return ModelRejected(f"There are no AWS credentials for {name} ({reason}). {self.host.key}")
        return None
