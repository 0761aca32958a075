"""Reads the directory of manifests into pods as the API server would have stored them.

Files come and go, are renamed into place, and may be half written. Only a removed file removes its pods. A file that
cannot be read, or is not in order, keeps its last content; if that is not known, or the directory cannot be listed,
pods that came from there are left as they are (``Scan.leaves``). LimitRanges, PriorityClasses, RuntimeClasses and
Namespaces in the directory apply to the pods next to them when those are first seen: an API server admits a pod only
once, too.

A pod's uid is derived from its name and manifest, as in the kubelet: a changed manifest is a new pod. Unlike the
kubelet's, these pods are not static: they can be evicted, unless marked as critical (``kubernetes.io/config.source:
file``, or a system priority class).

Reading takes as long as there is to read; the node does it on another thread. A scan shares nothing with the next one.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.admission.chain import admit
from podqos.admission.decoding import decoding_refusal
from podqos.admission.policies import Policies
from podqos.admission.priority import SYSTEM_CLASSES
from podqos.errors import PodqosError
from podqos.host.storage.pod_run import PodRun, pod_run, unsupported
from podqos.manifest.contents import Reading
from podqos.manifest.kinds import group_of, is_custom_group, is_policy, meant_policy
from podqos.manifest.lookup import Lookup
from podqos.manifest.plain import Number, Plain
from podqos.manifest.policies import Policy, read_policy
from podqos.manifest.problems import Severity
from podqos.manifest.reading import read
from podqos.model.pod import ObjectMeta, Pod, Workload
from podqos.model.policy import LimitRange, Namespace, PriorityClass, RuntimeClass
from podqos.model.profile import LATEST, Profile

T = TypeVar("T")
Signature = tuple[int, int, int, int]
_Note = Callable[[str], None]

_SUFFIXES = (".yaml", ".yml", ".json")
_MOST_FILE_BYTES = 16 << 20
_MOST_OBJECT_BYTES = 3 << 20  # what the API server takes (MaxRequestBodyBytes)
_MOST_WORDS = 2000  # of a refusal, which quotes what it is about
_LEFT = "the pods of this file stay as they are"


class Wanted(Struct, frozen=True):
    """A pod of the directory, as written."""

    pod: Pod
    """With its uid, not yet admitted."""
    run: PodRun
    source: str
    why_not: str = ""
    """Why the API server could not read it."""
    is_replica: bool = False
    """Whether a controller would have made it, which waits for a place."""


class RefusedManifest(Struct, frozen=True):
    """A pod of the directory that the API server would have rejected."""

    key: str
    source: str
    why: str


class FolderReading(Struct, frozen=True):
    """How far a directory could be read."""

    is_listed: bool = True
    """Whether it is known which files there are."""
    is_settled: bool = True
    """Whether no file changed while it was read."""
    unknown: frozenset[str] = frozenset()
    """Files of which it is not known what they say now."""
    notes: tuple[str, ...] = ()
    """Problems."""


class Scan:
    """The pods and policies of a directory at one time."""

    def __init__(
        self,
        wanted: Iterable[Wanted] = (),
        policies: Iterable[Policy] = (),
        *,
        reading: FolderReading | None = None,
        profile: Profile = LATEST,
    ) -> None:
        self.wanted = tuple(wanted)
        self.reading = reading or FolderReading()
        self._profile = profile
        self._every = tuple(policies)
        self._policies: dict[str, Policies] = {}

    def leaves(self, source: str) -> bool:
        """Whether pods that came from this file are left as they are: what it says now is not known."""
        return not self.reading.is_listed or source in self.reading.unknown

    def admitted(self, wanted: Wanted) -> Pod | RefusedManifest:
        """Run admission for a pod, with the policies next to it."""
        why = wanted.why_not
        if not why:
            policies = self._of_namespace(wanted.pod.metadata.namespace_or_default)
            admission = admit(wanted.pod, policies, self._profile)
            if admission.refusal is None:
                return admission.pod
            why = admission.refusal.message
        return RefusedManifest(_clean(wanted.pod.key), wanted.source, _clean(why))

    def _of_namespace(self, namespace: str) -> Policies:
        if namespace not in self._policies:
            every = self._every
            own = [each for each in _of(Namespace, every) if each.metadata.name == namespace]
            classes = {
                priority_class.metadata.name: priority_class
                for priority_class in (*SYSTEM_CLASSES, *_of(PriorityClass, every))
            }
            self._policies[namespace] = Policies(
                namespace=own[-1] if own else Namespace(ObjectMeta(namespace)),
                limit_ranges=tuple(
                    limit_range
                    for limit_range in _of(LimitRange, every)
                    if limit_range.metadata.namespace_or_default == namespace
                ),
                priority_classes=tuple(classes.values()),
                runtime_classes=tuple(_of(RuntimeClass, every)),
            )
        return self._policies[namespace]


class _File(Struct, frozen=True):
    signature: Signature
    wanted: tuple[Wanted, ...] = ()
    policies: tuple[Policy, ...] = ()
    is_known: bool = True
    """Whether this is what the file says, and not what it said before or nothing."""


class _Unsettled(Exception):
    """A file changed while it was read."""


class ManifestFolder:
    """A directory of manifests, reread when it changes."""

    def __init__(self, folder: Path, profile: Profile = LATEST, max_pods: int = 110) -> None:
        self.folder = folder
        self._profile = profile
        self._max_pods = max_pods
        self._files: dict[str, _File] = {}

    def scan(self) -> Scan:
        """Return the pods now in the directory; of two with the same name the first file's counts."""
        notes: list[str] = []
        is_listed, is_settled = True, True
        unknown: set[str] = set()
        try:
            with os.scandir(self.folder) as entries:
                names = {_shown(entry.name): entry.name for entry in entries if _is_manifest(entry.name)}
        except OSError as error:
            notes.append(f"{self.folder}: {error.strerror}: pods stay as they are")
            is_listed, names = False, {}
        else:
            self._files = {name: file for name, file in self._files.items() if name in names}
        for name in sorted(names):
            try:
                self._look(name, self.folder / names[name], notes.append)
            except _Unsettled:
                is_settled = False
                unknown.add(name)
            except FileNotFoundError:
                if (self.folder / names[name]).is_symlink():
                    notes.append(f"{name}: its target does not exist: {_LEFT}")
                    unknown.add(name)
                else:
                    self._files.pop(name, None)  # it is gone again
            except Exception as error:  # noqa: BLE001 - whatever it is, it is about this file only
                why = error.strerror if isinstance(error, OSError) else f"cannot be read ({type(error).__name__})"
                notes.append(f"{name}: {why}: {_LEFT}")
                unknown.add(name)
        unknown |= {name for name, file in self._files.items() if not file.is_known}
        pods: dict[str, Wanted] = {}
        for name in sorted(self._files):
            for wanted in self._files[name].wanted:
                first = pods.setdefault(wanted.pod.key, wanted)
                if first is not wanted and first.source != wanted.source:
                    notes.append(f"{wanted.source}: pod {wanted.pod.key} is already in {first.source}")
        return Scan(
            pods.values(),
            [policy for name in sorted(self._files) for policy in self._files[name].policies],
            reading=FolderReading(is_listed, is_settled, frozenset(unknown), tuple(notes)),
            profile=self._profile,
        )

    def _look(self, name: str, path: Path, note: _Note) -> None:
        """Read a file if it has changed."""
        known = self._files.get(name)
        about = path.stat()
        if not stat.S_ISREG(about.st_mode):
            raise OSError(0, "not a regular file")
        if known is not None and known.signature == _signature(about):
            return
        signature, data = _content(path)
        reading = read(name, data)
        errors = [problem for problem in reading.problems if problem.severity is Severity.ERROR]
        for problem in errors or reading.problems:
            note(f"{name}:{problem.line}: {problem.what}")
        if errors or not data.strip():
            self._files[name] = replace(known or _File(signature), signature=signature, is_known=False)
            return
        lookup = Lookup(data)
        self._files[name] = _File(
            signature,
            tuple(self._wanted(name, reading, lookup, note)),
            tuple(_found_policies(name, reading, lookup, note)),
        )

    def _wanted(self, source: str, reading: Reading, lookup: Lookup, note: _Note) -> Iterator[Wanted]:
        for workload, place in zip(reading.workloads, reading.places, strict=True):
            value = lookup.plain(place)
            spec, run, encoded = _spec(value, workload), PodRun(), b""
            try:
                encoded = msgspec.json.encode(value, enc_hook=_number, order="deterministic")
                why_not = _undecodable(workload, value, len(encoded))
                if not why_not:
                    run = pod_run(spec or {})
            except Exception as error:  # noqa: BLE001 - whatever it is, it is about this workload only
                is_worded = isinstance(error, PodqosError | msgspec.ValidationError)
                why_not = str(error) if is_worded else f"{type(error).__name__}: {error}"
            for line in unsupported(run):
                note(f"{source}: {workload.pod.key}: {line}")
            beyond = (workload.replicas or 0) - self._max_pods
            if workload.pod_path and beyond > 0:
                note(
                    f"{source}: {workload.kind} {workload.pod.key}: {workload.replicas} replicas, and this node runs "
                    f"at most {self._max_pods} pods: {beyond} are not created"
                )
            for pod in _pods(workload, encoded or repr(value).encode(), self._max_pods):
                yield Wanted(pod, run, source, why_not, bool(workload.pod_path))


def _is_manifest(name: str) -> bool:
    return name.endswith(_SUFFIXES) and not name.startswith(".")


def _shown(name: str) -> str:
    """Return a file's name as text: it may be any bytes."""
    return os.fsencode(name).decode(errors="backslashreplace")


def _number(value: object) -> str:
    assert isinstance(value, Number)
    return value.text


def _clean(text: str) -> str:
    """Return a text that can be shown: it may quote a megabyte of anything."""
    text = text.encode(errors="backslashreplace").decode()
    return text if len(text) <= _MOST_WORDS else f"{text[:_MOST_WORDS]}…"


def _signature(about: os.stat_result) -> Signature:
    return about.st_mtime_ns, about.st_ctime_ns, about.st_size, about.st_ino


def _content(path: Path) -> tuple[Signature, bytes]:
    """Read a file as it is at one time, without waiting for a pipe that took its place."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise OSError(0, "not a regular file")
        if before.st_size > _MOST_FILE_BYTES:
            raise OSError(0, f"larger than {_MOST_FILE_BYTES >> 20} MiB")
        data = bytearray()
        while len(data) <= _MOST_FILE_BYTES and (piece := file.read(1 << 20)):
            data += piece
        if len(data) != before.st_size or _signature(os.fstat(descriptor)) != _signature(before):
            raise _Unsettled
    return _signature(before), bytes(data)


def _found_policies(source: str, reading: Reading, lookup: Lookup, note: _Note) -> Iterator[Policy]:
    for other in reading.others:
        if meant_policy(other.kind) is None or not is_policy(other.kind, other.api_version):
            continue
        found = read_policy(other.kind, other.api_version, lookup.plain(other.place))
        for finding in found.findings:
            note(f"{source}: {other.kind} {other.metadata.name}: {finding.what}")
        if found.policy is not None:
            yield found.policy


def _of(kind: type[T], policies: Iterable[object]) -> list[T]:
    return [policy for policy in policies if isinstance(policy, kind)]


def _undecodable(workload: Workload, value: Plain, size: int) -> str:
    """Return why the API server could not read an object; empty if it can, or has sent it itself."""
    api_version = str(value.get("apiVersion") or "v1") if isinstance(value, dict) else "v1"
    if size > _MOST_OBJECT_BYTES:
        return f"Request entity too large: limit is {_MOST_OBJECT_BYTES}"
    if workload.is_live or is_custom_group(group_of(api_version)):
        return ""
    refusal = decoding_refusal(value, workload.kind, api_version, _path(workload))
    return "" if refusal is None else refusal.message


def _path(workload: Workload) -> tuple[str, ...]:
    return tuple(workload.pod_path.split(".")) if workload.pod_path else ()


def _spec(value: Plain, workload: Workload) -> Plain:
    for step in (*_path(workload), "spec"):
        value = value.get(step) if isinstance(value, dict) else None
    return value


def _pods(workload: Workload, encoded: bytes, most: int) -> Iterator[Pod]:
    """Yield the pods of a workload; those of a controller are numbered, and no more than a node can have."""
    digest = sha256(encoded)
    metadata = workload.pod.metadata
    count = 1 if not workload.pod_path or workload.replicas is None else min(workload.replicas, most)
    for number in range(count):
        name = metadata.name or (metadata.generate_name and f"{metadata.generate_name}{digest.hexdigest()[:5]}")
        if workload.pod_path:
            name = f"{name}-{number}"
        identity = digest.copy()
        identity.update(f"\0{metadata.namespace}/{name}".encode(errors="backslashreplace"))
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
