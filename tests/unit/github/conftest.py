"""Servers, keys and clients for the tests of this room."""

import random
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

from bot.github.client import GitHubAppClient, GitHubClient
from tests.unit.github.fake import APP_ID, INSTALLATION_ID, FakeGitHub, Time, serve


@pytest.fixture(scope="session")
def private_key() -> str:
    """The App's key."""
    key = rsa.generate_private_key(65537, 2048)
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    ).decode()


@pytest.fixture(scope="session")
def public_key(private_key: str) -> str:
    """What GitHub knows of it."""
    key = serialization.load_pem_private_key(private_key.encode(), None).public_key()
    return key.public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo).decode()


@pytest.fixture
def time() -> Time:
    """The clock of a test."""
    return Time()


@pytest.fixture
async def hub(time: Time, public_key: str) -> AsyncIterator[FakeGitHub]:
    """A GitHub."""
    fake = FakeGitHub(time, public_key)
    async for url in serve(fake.app()):
        fake.url = url
        yield fake


@pytest.fixture
async def other_hub(time: Time, public_key: str) -> AsyncIterator[FakeGitHub]:
    """Another GitHub, on another host."""
    fake = FakeGitHub(time, public_key)
    async for url in serve(fake.app()):
        fake.url = url
        yield fake


@pytest.fixture
def make_app(time: Time, private_key: str) -> Callable[..., GitHubAppClient]:
    """Make clients of a GitHub; whoever makes one closes it."""

    def make(url: str, **more: Any) -> GitHubAppClient:
        known: dict[str, Any] = {
            "app_id": APP_ID,
            "private_key": private_key,
            "clock": time.clock,
            "random": random.Random(1).random,
            "sleep": time.sleep,
            "monotonic": time.monotonic,
            "write_interval_s": 0.0,
            "timeout_s": 2.0,
        }
        return GitHubAppClient(api_url=url, **{**known, **more})

    return make


@pytest.fixture
async def app(hub: FakeGitHub, make_app: Callable[..., GitHubAppClient]) -> AsyncIterator[GitHubAppClient]:
    """The App on that GitHub."""
    made = make_app(hub.url)
    yield made
    await made.close()


@pytest.fixture
def github(app: GitHubAppClient) -> GitHubClient:
    """One installation."""
    return app.installation(INSTALLATION_ID)
