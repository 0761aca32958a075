"""The colour of a pod: the same in pictures that Python draws and in every view of the page."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from podqos.model.pod import QOSClass
from podqos.text.svg import shade

COLOURS = Path(__file__).parents[2] / "viewer" / "src" / "app" / "colours.ts"
PODS = [
    "shop/web",
    "shop/web-0",
    "shop/web-5d9c7bd4f-x2x4z",
    "shop/web-x2x4z",
    "shop/web-0-r1",
    "kube-system/agent-worker-r12",
    "shop/cache-1-5d9c7bd4f-x2x4z",
    "batch/search-indexer-12",
    "kube-system/coredns",
    "übung/größe-3",
    *(f"team-{number % 7}/service-{number}-api" for number in range(200)),
]


def test_the_page_gives_a_pod_the_colour_that_pictures_give_it():
    node = shutil.which("node")
    if node is None:
        pytest.skip("no node on this machine")
    script = COLOURS.read_text().replace("export ", "")
    for typed in (
        ": Readonly<Record<string, readonly string[]>>",
        ": string | null",
        ": string",
        ": number",
        " as string",
    ):
        script = script.replace(typed, "")
    asked = json.dumps([(pod, str(qos_class)) for pod in PODS for qos_class in QOSClass])
    script += f"console.log(JSON.stringify({asked}.map(([pod, qosClass]) => colourOf(pod, qosClass))))"
    told = subprocess.run([node, "--input-type=module"], input=script, capture_output=True, text=True, check=True)
    assert json.loads(told.stdout) == [shade(qos_class, pod) for pod in PODS for qos_class in QOSClass]
