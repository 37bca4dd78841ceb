"""Each test runs on our hub, and with the marker `e2e` on the emulator too."""

from collections.abc import Iterator

import pytest

from bot.testing.hub.state.apps import new_key
from tests.contract.github import backends
from tests.contract.github.backends import Backend


@pytest.fixture(scope="module", params=["hub", pytest.param("emulator", marks=pytest.mark.e2e)])
def github(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Backend]:
    """One GitHub for all tests of the module, each of which makes its own issues and branches."""
    folder = tmp_path_factory.mktemp(request.param)
    start = backends.hub if request.param == "hub" else backends.emulator
    with start(folder, new_key()) as backend:
        yield backend
