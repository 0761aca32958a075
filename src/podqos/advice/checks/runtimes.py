"""PQ122–PQ125: what a runtime is told to use, held against the memory limit of its container.

What is told is read by ``manifest.runtime_memory``; here is what it means.
"""

from __future__ import annotations

from fractions import Fraction

from podqos.advice.checks import examples
from podqos.advice.checks.check import ERROR, INFO, WARNING, check
from podqos.advice.checks.check_identity import Example
from podqos.advice.checks.finding import Choice, Effect, Fact
from podqos.advice.checks.view import View
from podqos.advice.sizing.runtime_settings import ROOM
from podqos.manifest.runtime_memory import MemorySetting, Runtime, memory_settings
from podqos.model.pod import Container
from podqos.model.quantity import Quantity
from podqos.model.resources import MEMORY

_MEMORY_MAX = "Linux: Documentation/admin-guide/cgroup-v2.rst (memory.max)"
_JAVA = "JDK: java(1), -Xmx and -XX:MaxRAMPercentage"
_GO = "Go: runtime/debug.SetMemoryLimit"
_MEBIBYTE = 1 << 20


def find_runtime_memory(view: View) -> None:
    """Find runtimes that may use more than their container is allowed, or nearly all of it."""
    if view.written is None:
        return
    stored = (*view.stored.spec.containers, *view.stored.spec.init_containers)
    harmless = view.written.harmless_bytes
    limits = [_limit(view, container) for container in stored]
    if harmless is not None and all(limit is None or limit.value >= harmless for limit in limits):
        return
    for (path, written), container in zip(view.written_containers(), stored, strict=True):
        for setting in memory_settings(written, path, _amounts(container)):
            _judge(view, setting, container)


def _amounts(container: Container) -> dict[str, int]:
    sides = (("limits", container.resources.limits), ("requests", container.resources.requests))
    return {f"{side}.memory": amounts[MEMORY].value for side, amounts in sides if amounts.get(MEMORY)}


def _judge(view: View, setting: MemorySetting, container: Container) -> None:
    limit = _limit(view, container)
    where = setting.variable if setting.variable and not setting.text.startswith(setting.variable) else ""
    if setting.is_malformed:
        facts: Fact = MalformedSetting(setting.runtime, setting.text, where)
        view.report(malformed, setting.path, facts, view.choose(Choice.UNIT, setting.path), container=container.name)
        return
    if limit is None:
        return
    if setting.unknown:
        facts = SettingNotJudged(setting.text, setting.unknown, str(limit))
        patch = view.choose(Choice.KNOWN_SETTING, setting.path)
        view.report(not_judged, setting.path, facts, patch, container=container.name)
        return
    amount = Fraction(setting.amount_bytes or 0) if setting.share is None else setting.share * limit.value
    share = amount / limit.value
    room = ROOM[setting.runtime]
    if share <= room.largest:
        return
    is_above = share >= 1 and setting.runtime is not Runtime.GO
    facts = RuntimeMemory(
        setting.runtime, setting.text, where, _in_words(int(amount)), str(limit), int(share * 100), room.beside
    )
    patch = view.choose(Choice.HEAP, setting.path)
    view.report(above_limit if is_above else near_limit, setting.path, facts, patch, container=container.name)


def _limit(view: View, container: Container) -> Quantity | None:
    """Return what a container may use: its own limit, or else the pod's."""
    of_pod = view.stored.spec.resources
    return container.resources.limits.get(MEMORY) or (None if of_pod is None else of_pod.limits.get(MEMORY)) or None


def _in_words(count: int) -> str:
    return str(Quantity.of_units(count // _MEBIBYTE * _MEBIBYTE if count >= _MEBIBYTE else count, "BinarySI"))


class RuntimeMemory(Fact, frozen=True, gc=False):
    """What a runtime may use beside the limit of its container."""

    runtime: str
    setting: str
    variable: str
    """The environment variable that says so; empty where the setting names it, or the command says so."""
    amount: str
    limit: str
    percent: int
    """Of the limit."""
    beside: str
    """What else needs memory."""

    def sentence(self, container: str) -> str:
        """Return the setting as an amount, beside the limit."""
        said = f"{self.setting} in {self.variable}" if self.variable else self.setting
        lets = f"{said} lets {self.runtime} in {container} use {self.amount}"
        return f"{lets}, {self.percent}% of its memory limit of {self.limit}; {self.beside}"


class MalformedSetting(Fact, frozen=True, gc=False):
    """An amount that a runtime cannot read."""

    runtime: str
    setting: str
    variable: str

    def sentence(self, container: str) -> str:
        """Return the setting, and what follows."""
        said = f"{self.setting} in {self.variable}" if self.variable else self.setting
        return f"{self.runtime} in {container} cannot read {said}, and does not start"


class SettingNotJudged(Fact, frozen=True, gc=False):
    """A setting whose value is elsewhere."""

    setting: str
    source: str
    limit: str

    def sentence(self, container: str) -> str:
        """Return where the value is."""
        return f"{self.setting} of {container} comes from {self.source}: not compared with its limit of {self.limit}"


def _web(limit: str, variable: str, value: str) -> str:
    environment = f"      env:\n        - name: {variable}\n          value: {value}\n"
    limits = f'cpu: "1", memory: {limit}, ephemeral-storage: 1Gi'
    return examples.pod(examples.container("web", "cpu: 500m, memory: 1Gi", limits) + environment)


@check("PQ122", "runtime-memory-above-limit", ERROR, _JAVA, _MEMORY_MAX, effect=Effect.LIMIT, rule=find_runtime_memory)
def above_limit() -> Example:
    """PQ122: A runtime may use more memory than its container's limit.

    The runtime believes it has room left, so it neither collects garbage nor evicts keys, and the kernel kills the
    container at its limit: OOMKilled with exit code 137 instead of an OutOfMemoryError or an eviction of old keys.
    podqos reads -Xmx, -Xms, -XX:MaxHeapSize, -XX:MaxRAM and -XX:MaxRAMPercentage from wherever they are set
    (JAVA_TOOL_OPTIONS, JAVA_OPTS, ES_JAVA_OPTS, KAFKA_HEAP_OPTS, the command), --max-old-space-size, GOMEMLIMIT,
    --maxmemory, shared_buffers, memcached's -m, --innodb-buffer-pool-size, --wiredTigerCacheSizeGB and .NET's
    GCHeapHardLimit; environments of live clusters are not read.

    Fix: Lower the setting, or raise the limit above it: kubectl top pod --containers shows what the process uses now.
    """
    return Example(
        _web("2Gi", "JAVA_TOOL_OPTIONS", "-Xmx2g"),
        chosen={"spec.containers[0].env[0].value": "-XX:MaxRAMPercentage=75"},
    )


@check(
    "PQ123",
    "runtime-memory-near-limit",
    WARNING,
    _JAVA,
    _GO,
    _MEMORY_MAX,
    effect=Effect.LIMIT,
    rule=find_runtime_memory,
)
def near_limit() -> Example:
    """PQ123: A runtime may use nearly all of its container's memory limit.

    The setting covers only part of what the process uses, but the limit covers all of it. Reported above 80% of the
    limit for a Java heap, 85% for Node.js and MySQL, 90% for Redis, memcached and .NET, 80% for MongoDB's cache, 50%
    for PostgreSQL's shared_buffers. GOMEMLIMIT is a soft limit and is reported above 100%, where it cannot help. When
    it is fine: if load tests at full heap have shown what comes on top.

    Fix: Lower the setting, or raise the limit: kubectl top pod --containers shows what the process uses now, jcmd 1
    VM.native_memory summary (with -XX:NativeMemoryTracking=summary) what a JVM needs besides its heap.
    """
    return Example(
        _web("2Gi", "JAVA_TOOL_OPTIONS", "-Xmx1900m"), chosen={"spec.containers[0].env[0].value": "-Xmx1500m"}
    )


@check("PQ124", "runtime-memory-not-judged", INFO, _JAVA, _GO, effect=Effect.NONE, rule=find_runtime_memory)
def not_judged() -> Example:
    """PQ124: How much memory a runtime may use is not in the manifest.

    The variable comes from a ConfigMap or a Secret, which podqos does not read: whether a heap fits the limit was not
    checked.

    Fix: Compare the value with the limit (kubectl get configmap NAME -o yaml), or write it into the manifest, next to
    the limit.
    """
    value = "valueFrom:\n            configMapKeyRef: {name: web, key: options}"
    text = _web("2Gi", "JAVA_TOOL_OPTIONS", "-Xmx1g").replace("value: -Xmx1g", value)
    return Example(text, good=_web("2Gi", "JAVA_TOOL_OPTIONS", "-Xmx1g"))


@check("PQ125", "runtime-memory-malformed", ERROR, _JAVA, _GO, effect=Effect.NONE, rule=find_runtime_memory)
def malformed() -> Example:
    """PQ125: A runtime cannot read its memory setting.

    Runtimes have their own units: Go reads 400MiB and not 400Mi, a JVM -Xmx4g and not -Xmx4Gi, Redis 4gb and not 4Gi. A
    runtime that cannot read the amount exits immediately, and the container restarts forever.

    Fix: Write the runtime's own unit.
    """
    return Example(_web("2Gi", "GOMEMLIMIT", "1500Mi"), chosen={"spec.containers[0].env[0].value": "1500MiB"})
