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
        pytest.param({"command": ["java", "-Xmx2g"]}, "-Xmx2g", "-Xmx1024m", id="java-command"),
        pytest.param(env("GOMEMLIMIT", "2GiB"), "2GiB", "1024MiB", id="go"),
        pytest.param(
            env("NODE_OPTIONS", "--max-old-space-size=2048"),
            "--max-old-space-size=2048",
            "--max-old-space-size=1024",
            id="node",
        ),
        pytest.param({"args": ["--maxmemory 2gb"]}, "--maxmemory 2gb", "--maxmemory 1024mb", id="redis"),
        pytest.param(
            {"args": ["-c", "shared_buffers=1GB"]}, "shared_buffers=1GB", "shared_buffers=512MB", id="postgres"
        ),
    ],
)
def test_a_setting_keeps_its_share_of_a_limit_that_is_halved(container, text, expected):
    (change,) = runtime_changes(settings(container), 4 * GIB, 2 * GIB)
    assert change.because is Follows.SCALED
    assert edited(text, change) == expected


def test_a_heap_grows_with_its_limit_after_an_oom_kill():
    (change,) = runtime_changes(settings(env("JAVA_OPTS", "-Xmx2g")), 4 * GIB, 6 * GIB)
    assert (change.before, change.after) == ("-Xmx2g", "-Xmx3072m")


def test_a_heap_that_leaves_no_room_for_the_rest_is_lowered():
    """All of the limit: three quarters of the new one."""
    (change,) = runtime_changes(settings(env("JAVA_OPTS", "-Xmx4g")), 4 * GIB, 2 * GIB)
    assert (change.after, change.because) == ("-Xmx1536m", Follows.LOWERED)


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
