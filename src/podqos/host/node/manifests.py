"""Reads the directory of manifests into pods as the API server would have stored them.

Files come and go, are renamed into place, and may be half written. An unreadable file keeps its last content; only a
removed file removes its pods. LimitRanges, PriorityClasses, RuntimeClasses and Namespaces in the directory apply to the
pods beside them when those are first seen: an API server admits a pod only once, too.

A pod's uid is derived from its name and manifest, as in the kubelet: a changed manifest is a new pod. Unlike the
kubelet's, these pods are not static: they can be evicted, unless marked as critical (``kubernetes.io/config.source:
file``, or a system priority class).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import admit
from podqos.admission.policies import Policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.host.storage.pod_run import PodRun, pod_run, unsupported
from podqos.manifest.contents import Reading
from podqos.manifest.kinds import is_policy, meant_policy
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import Plain
from podqos.manifest.policies import Policy, read_policy
from podqos.manifest.problems import Severity
from podqos.manifest.reading import read
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.policy import LimitRange, Namespace, PriorityClass, RuntimeClass
from podqos.model.profile import LATEST, Profile

T = TypeVar("T")

_SUFFIXES = (".yaml", ".yml", ".json")


class Wanted(Struct, frozen=True):
    """A pod of the directory, as written."""

    pod: Pod
    """With its uid, not yet admitted."""
    run: PodRun
    source: str


class Refused(Struct, frozen=True):
    """A pod of the directory that the API server would have rejected."""

    key: str
    source: str
    why: str


class _File(Struct, frozen=True):
    signature: tuple[int, int, int]
    wanted: tuple[Wanted, ...]
    policies: tuple[Policy, ...]


class ManifestFolder:
    """A directory of manifests, reread when it changes."""

    def __init__(self, folder: Path, note: Callable[[str], None], profile: Profile = LATEST) -> None:
        self.folder = folder
        self._note = note
        self._profile = profile
        self._files: dict[str, _File] = {}

    def scan(self) -> list[Wanted]:
        """Return the pods now in the directory; of two with the same name the first file's counts."""
        there = sorted(self._found())
        self._files = {name: file for name, file in self._files.items() if name in dict(there)}
        for name, signature in there:
            known = self._files.get(name)
            if known is None or known.signature != signature:
                self._read(name, signature, known)
        pods: dict[str, Wanted] = {}
        for name in sorted(self._files):
            for wanted in self._files[name].wanted:
                first = pods.setdefault(wanted.pod.key, wanted)
                if first is not wanted and first.source != wanted.source:
                    self._note(f"{wanted.source}: pod {wanted.pod.key} is already in {first.source}")
        return list(pods.values())

    def admitted(self, wanted: Wanted) -> Pod | Refused:
        """Run admission for a pod, with the policies beside it."""
        admission = admit(wanted.pod, self._policies(wanted.pod.metadata.namespace or "default"), self._profile)
        if admission.refusal is not None:
            return Refused(wanted.pod.key, wanted.source, admission.refusal.message)
        return admission.pod

    def _found(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        try:
            with os.scandir(self.folder) as entries:
                for entry in entries:
                    if entry.name.endswith(_SUFFIXES) and not entry.name.startswith(".") and entry.is_file():
                        about = entry.stat()
                        yield entry.name, (about.st_mtime_ns, about.st_size, about.st_ino)
        except OSError as error:
            self._note(f"{self.folder}: {error.strerror}")

    def _read(self, name: str, signature: tuple[int, int, int], known: _File | None) -> None:
        try:
            data = (self.folder / name).read_bytes()
        except OSError:
            return  # it is gone again; the next scan will show
        reading = read(name, data)
        errors = [problem for problem in reading.problems if problem.severity is Severity.ERROR]
        if errors or not data.strip():
            for problem in errors:
                self._note(f"{name}:{problem.line}: {problem.what}")
            kept = (known.wanted, known.policies) if known is not None else ((), ())
            self._files[name] = _File(signature, *kept)
            return
        for problem in reading.problems:
            self._note(f"{name}:{problem.line}: {problem.what}")
        lookup = Lookup(data)
        self._files[name] = _File(
            signature, tuple(self._wanted(name, reading, lookup)), tuple(self._found_policies(name, reading, lookup))
        )

    def _wanted(self, source: str, reading: Reading, lookup: Lookup) -> Iterator[Wanted]:
        for workload, place in zip(reading.workloads, reading.places, strict=True):
            value = lookup.plain(place)
            try:
                run = pod_run(_spec(value, workload))
            except msgspec.ValidationError as error:
                self._note(f"{source}: {workload.pod.key}: {error}")
                continue
            for line in unsupported(run):
                self._note(f"{source}: {workload.pod.key}: {line}")
            for pod in _pods(workload, value):
                yield Wanted(pod, run, source)

    def _found_policies(self, source: str, reading: Reading, lookup: Lookup) -> Iterator[Policy]:
        for other in reading.others:
            if meant_policy(other.kind) is None or not is_policy(other.kind, other.api_version):
                continue
            found = read_policy(other.kind, other.api_version, lookup.plain(other.place))
            for finding in found.findings:
                self._note(f"{source}: {other.kind} {other.metadata.name}: {finding.what}")
            if found.policy is not None:
                yield found.policy

    def _policies(self, namespace: str) -> Policies:
        every = [policy for name in sorted(self._files) for policy in self._files[name].policies]
        own = [policy for policy in every if isinstance(policy, Namespace) and policy.metadata.name == namespace]
        classes = {each.metadata.name: each for each in (*SYSTEM_CLASSES, *_of(PriorityClass, every))}
        return Policies(
            namespace=own[-1] if own else Namespace(ObjectMeta(namespace)),
            limit_ranges=tuple(
                each for each in _of(LimitRange, every) if (each.metadata.namespace or "default") == namespace
            ),
            priority_classes=tuple(classes.values()),
            runtime_classes=tuple(_of(RuntimeClass, every)),
        )


def _of(kind: type[T], policies: Iterable[object]) -> list[T]:
    return [policy for policy in policies if isinstance(policy, kind)]


def _spec(value: Plain, workload: Workload) -> Plain:
    for step in (*(workload.pod_path.split(".") if workload.pod_path else ()), "spec"):
        assert isinstance(value, dict)
        value = value[step]
    return value


def _pods(workload: Workload, value: Plain) -> Iterator[Pod]:
    """Yield the pods of a workload; those of a controller are numbered."""
    digest = sha256(msgspec.json.encode(value, order="deterministic"))
    count = 1 if not workload.pod_path else (1 if workload.replicas is None else workload.replicas)
    for number in range(count):
        metadata = workload.pod.metadata
        name = metadata.name or metadata.generate_name
        if workload.pod_path:
            name = f"{name}-{number}"
        identity = digest.copy()
        identity.update(f"\0{metadata.namespace}/{name}".encode())
        yield replace(
            workload.pod,
            metadata=ObjectMeta(
                name=name,
                namespace=metadata.namespace,
                uid=str(UUID(bytes=identity.digest()[:16])),
                labels=metadata.labels,
                annotations=metadata.annotations,
            ),
        )
