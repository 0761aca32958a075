"""What tests of containers share: programs, images, and a daemon for containerd."""

from __future__ import annotations

import pytest

from debian import Missing
from host.container_programs import search_path
from host.runtime_stages import Services
from podqos.host.runtimes.choice import RuntimeChoice, RuntimeName


@pytest.fixture(scope="module")
def services():
    with pytest.MonkeyPatch.context() as patch:
        try:
            for name, value in search_path().items():
                patch.setenv(name, value)
        except Missing as missing:
            yield str(missing)
            return
        found = Services()
        try:
            yield found
        finally:
            found.close()


@pytest.fixture
def choice(services, request):
    name = request.param
    if name is RuntimeName.PROCESS:
        return RuntimeChoice()
    if isinstance(services, str):
        pytest.skip(f"{name} cannot be had: {services}")
    return services.choice(name)
