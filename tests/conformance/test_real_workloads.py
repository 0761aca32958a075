"""The recorded workloads once more, sent to an API server that is started for it (``KUBEBUILDER_ASSETS``)."""

from __future__ import annotations

import json
import re
import shutil
from urllib.error import HTTPError

import pytest

from conformance.compare import vectors
from podqos.cli.families import evaluate
from podqos.manifest.kinds import POD_HOLDERS
from real_api_server import ApiServer, writes

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl to make a key with")
    with ApiServer(tmp_path_factory.mktemp("server")) as started:
        yield started


def created(server: ApiServer, kind: str, value: dict) -> tuple[int, str]:
    """Return what the server answers to a new workload, in a dry run."""
    version = POD_HOLDERS[kind].api_version
    root = f"/apis/{version}" if "/" in version else f"/api/{version}"
    path = f"{root}/namespaces/default/{kind.lower()}s?dryRun=All&fieldValidation=Strict"
    try:
        server.call("POST", path, value)
    except HTTPError as error:
        return error.code, json.loads(error.read())["message"]
    return 201, ""


def parts(message: str) -> list[str]:
    """Return the errors of a message: upstream walks maps from a random place on, so their order is left out."""
    head, _, errors = message.partition(" is invalid: ")
    return [head, *sorted(re.split(", (?=spec|metadata|template)", errors.removeprefix("[").removesuffix("]")))]


@writes
@pytest.mark.parametrize(("family", "step"), [("workload_admission", 1), ("workload_admission_hostile", 3)])
def test_the_server_answers_as_podqos_does(server, family, step):
    wrong = {}
    for line in list(vectors(family))[::step]:
        value = line["input"]
        if isinstance(value.get("metadata"), dict):
            value["metadata"].pop("namespace", None)
        got = evaluate("workload_admission", value)
        code, message = created(server, value["kind"], value)
        if "disallowed by cluster policy" in message:
            continue  # this server does not allow privileged containers, and podqos assumes that it does
        if (code, parts(message)) != (got["code"], parts(got["message"])):
            wrong[line["id"]] = message, got["message"]
    assert wrong == {}
