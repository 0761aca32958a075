from __future__ import annotations

import pytest

from podqos.advice.checks.runtimes import _SHARES
from podqos.advice.sizing.runtime_settings import LARGEST_SHARES, Follows, edited, runtime_changes
from podqos.advice.sizing.sizing import MIB
from podqos.manifest.runtime_memory import memory_settings

GIB = 1024 * MIB


def settings(container):
    return memory_settings({"image": "app", **container}, "spec.containers[0]", {"limits.memory": 4 * GIB})


def env(name, value):
    return {"env": [{"name": name, "value": value}]}


@pytest.mark.parametrize(
    ("container", "text", "expected"),
    [
        pytest.param(
            env("JAVA_TOOL_OPTIONS", "-Xms1g -Xmx3g -ea"), "-Xms1g -Xmx3g -ea", "-Xms1g -Xmx1536m -ea", id="java"
        ),
        pytest.param({"command": ["java", "-Xmx2g"]}, "-Xmx2g", "-Xmx1536m", id="java-command"),
        pytest.param(env("GOMEMLIMIT", "3GiB"), "3GiB", "1843MiB", id="go"),
        pytest.param(
            env("NODE_OPTIONS", "--max-old-space-size=2048"),
            "--max-old-space-size=2048",
            "--max-old-space-size=1638",
            id="node",
        ),
        pytest.param({"args": ["--maxmemory 2gb"]}, "--maxmemory 2gb", "--maxmemory 1638mb", id="redis"),
        pytest.param({"args": ["--maxmemory", "2gb"]}, "2gb", "1638mb", id="redis-in-two-words"),
        pytest.param(
            {"args": ["-c", "shared_buffers=1GB"]}, "shared_buffers=1GB", "shared_buffers=819MB", id="postgres"
        ),
    ],
)
def test_a_setting_that_a_smaller_limit_has_no_room_for_is_lowered(container, text, expected):
    (change,) = runtime_changes(settings(container), 4 * GIB, 2 * GIB)
    assert change.because is Follows.LOWERED
    assert edited(text, change) == expected


@pytest.mark.parametrize(
    ("container", "limit_gib"),
    [
        pytest.param(env("JAVA_OPTS", "-Xmx1g"), 2, id="it-still-fits"),
        # What was OOM-killed needs the room beside its heap.
        pytest.param(env("JAVA_OPTS", "-Xmx2g"), 6, id="a-larger-limit"),
        pytest.param(env("GOMEMLIMIT", "1GiB"), 2, id="go"),
    ],
)
def test_a_setting_that_fits_stays(container, limit_gib):
    assert runtime_changes(settings(container), 4 * GIB, limit_gib * GIB) == ()


@pytest.mark.parametrize(
    "container",
    [
        pytest.param(env("JAVA_TOOL_OPTIONS", "-XX:MaxRAMPercentage=75"), id="percentage"),
        pytest.param(
            {"env": [{"name": "GOMEMLIMIT", "valueFrom": {"resourceFieldRef": {"resource": "limits.memory"}}}]},
            id="reference-to-the-limit",
        ),
        pytest.param(env("GOMEMLIMIT", "off"), id="off"),
        pytest.param({}, id="nothing"),
    ],
)
def test_what_follows_the_limit_by_itself_is_left_alone(container):
    assert runtime_changes(settings(container), 4 * GIB, 2 * GIB) == ()


def test_a_limit_that_stays_or_is_missing_changes_nothing():
    heap = settings(env("JAVA_OPTS", "-Xmx2g"))
    assert runtime_changes(heap, 4 * GIB, 4 * GIB) == runtime_changes(heap, 4 * GIB, None) == ()


def test_a_setting_that_is_not_in_the_field_is_not_edited():
    (change,) = runtime_changes(settings(env("JAVA_OPTS", "-Xmx4g")), 4 * GIB, 2 * GIB)
    assert edited("$(OTHER)", change) == ""


def test_a_first_limit_lowers_only_what_would_not_fit():
    assert runtime_changes(settings(env("JAVA_OPTS", "-Xmx2g")), None, 4 * GIB) == ()
    (change,) = runtime_changes(settings(env("JAVA_OPTS", "-Xmx4g")), None, 4 * GIB)
    assert change.after == "-Xmx3072m"


def test_an_amount_in_a_config_map_is_named_and_not_changed():
    reference = {"name": "JAVA_OPTS", "valueFrom": {"configMapKeyRef": {"name": "app", "key": "options"}}}
    (change,) = runtime_changes(settings({"env": [reference]}), 4 * GIB, 2 * GIB)
    assert (change.after, change.because, change.held_by) == ("", Follows.UNKNOWN, "ConfigMap app")


def test_what_is_advised_passes_the_check():
    assert {runtime: share for runtime, share in LARGEST_SHARES.items() if share > _SHARES[runtime][0]} == {}
