"""The workloads that ``podqos advise`` is about, and what is known about each: descriptions, samples, answers."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.sizing.description import DescribedWorkload, description_from_annotations, read_descriptions
from podqos.advice.sizing.matching import match_samples
from podqos.advice.sizing.matrix import Description
from podqos.advice.sizing.samples import Samples, read_samples
from podqos.advice.sizing.sizing import Usage
from podqos.cli.asking import ask_description, ask_name, check_terminal
from podqos.errors import InputError
from podqos.library.inputs.files import applied_files, read_bytes
from podqos.library.inputs.objects import FoundWorkload, Objects
from podqos.manifest.plain import Plain
from podqos.manifest.problems import Severity
from podqos.model.pod import Pod
from podqos.survival.drift import Identity


class Subject(Struct, frozen=True):
    """A workload that is advised, and what is known about it."""

    found: FoundWorkload
    identity: Identity
    description: Description | None
    usages: Mapping[str, Usage]
    is_new: bool = False
    """Whether there is no manifest of it."""

    @property
    def pod(self) -> Pod:
        """As written."""
        return self.found.workload.pod


def read_subjects(arguments: argparse.Namespace, objects: Objects) -> list[Subject]:
    """Read everything the options name into ``objects``, and return the workloads to advise."""
    return _Reader(arguments, objects).read()


class _Reader:
    """Puts together what files, descriptions, samples and answers say about workloads."""

    def __init__(self, arguments: argparse.Namespace, objects: Objects) -> None:
        self._arguments, self._objects = arguments, objects

    def read(self) -> list[Subject]:
        """Return the workloads that something is known about, by name."""
        arguments = self._arguments
        described = {each.name: each for each in self._descriptions()}
        if arguments.files:
            for path in applied_files(arguments.files, "advise"):
                self._objects.add_file(path)
        found = {identity_of(each): each for each in self._objects.latest()}
        by_identity = {identity: _described(identity, described) for identity in found}
        existing = set(found)
        used = {each.name for each in by_identity.values() if each is not None}
        for name, entry in described.items():
            if name not in used:
                created = self._create(entry)
                found[identity_of(created)] = created
                by_identity[identity_of(created)] = entry
        if not found:
            raise InputError("nothing to advise about", fix="name manifests with -f, or descriptions with --describe")
        samples = self._samples()
        matched = match_samples({identity: each.workload.pod for identity, each in found.items()}, samples)
        for name in matched.strangers:
            print(f"samples of {name} belong to no workload", file=sys.stderr)
        subjects = [
            self._subject(found[identity], identity, by_identity[identity], matched.usages.get(identity, {}))
            for identity in sorted(found)
        ]
        return self._known([replace(each, is_new=each.identity not in existing) for each in subjects])

    def _descriptions(self) -> tuple[DescribedWorkload, ...]:
        arguments = self._arguments
        if arguments.ask:
            check_terminal()
        if arguments.describe is not None:
            return read_descriptions(arguments.describe, read_bytes(arguments.describe))
        if arguments.ask and not arguments.files:
            name = ask_name()
            return (DescribedWorkload(name, ask_description(name)),)
        return ()

    def _samples(self) -> tuple[Samples, ...]:
        arguments = self._arguments
        found: tuple[Samples, ...] = ()
        if arguments.usage is not None:
            found += read_samples(arguments.usage, read_bytes(arguments.usage))
        if arguments.cpu_usage is not None:
            found += read_samples(arguments.cpu_usage, read_bytes(arguments.cpu_usage), unnamed="cpu")
        return found

    def _create(self, described: DescribedWorkload) -> FoundWorkload:
        """Make a Deployment for a workload of which there is no manifest."""
        text = msgspec.yaml.encode(_deployment(described))
        before = len(self._objects.workloads)
        self._objects.add_text(f"{self._arguments.describe or '(asked)'} {described.name}", text)
        if len(self._objects.workloads) == before:
            print_problems(self._objects)
            raise InputError(f"{described.name!r} cannot be the name of a workload", fix="write name or namespace/name")
        return self._objects.workloads[-1]

    def _subject(
        self,
        found: FoundWorkload,
        identity: Identity,
        described: DescribedWorkload | None,
        usages: Mapping[str, Usage],
    ) -> Subject:
        if described is not None:
            return Subject(found, identity, described.description, _expected(described, found, usages))
        metadata, pod = found.workload.metadata, found.workload.pod.metadata
        try:
            description = description_from_annotations({**metadata.annotations, **pod.annotations})
        except InputError as error:
            self._objects.refuse(found, f"{error.where}: {error.what}", error.fix)
            return Subject(found, identity, None, usages)
        if description is None and self._arguments.ask:
            description = ask_description(str(identity))
        return Subject(found, identity, description, usages)

    def _known(self, subjects: list[Subject]) -> list[Subject]:
        """Return the workloads that something is known about."""
        known = [each for each in subjects if each.description is not None or each.usages]
        left_out = len(subjects) - len(known)
        if not known:
            if print_problems(self._objects):
                raise InputError("nothing is left to advise about", fix="mend what is said above")
            fix = "annotate them (podqos.dev/latency-sensitive: ...), or give --describe, --ask or --usage"
            raise InputError(f"nothing is known about {left_out} workload{'s' if left_out > 1 else ''}", fix=fix)
        if left_out:
            print(f"{left_out} left out, of which nothing is known", file=sys.stderr)
        return known


def print_problems(objects: Objects) -> int:
    """Print what is wrong with the files, and return how many errors there are."""
    for problem in sorted(objects.problems):
        print(problem, file=sys.stderr)
    return sum(problem.severity is Severity.ERROR for problem in objects.problems)


def identity_of(found: FoundWorkload) -> Identity:
    """Return who a workload is."""
    namespace, _, name = found.workload.pod.key.partition("/")
    return Identity(namespace, found.workload.kind, name)


def _described(identity: Identity, described: Mapping[str, DescribedWorkload]) -> DescribedWorkload | None:
    return described.get(f"{identity.namespace}/{identity.name}") or described.get(identity.name)


def _expected(described: DescribedWorkload, found: FoundWorkload, usages: Mapping[str, Usage]) -> Mapping[str, Usage]:
    """Return what is known about the containers; what was expected counts where nothing was measured."""
    containers = found.workload.pod.running_containers
    if usages or len(containers) != 1 or (described.cpu is None and described.memory is None):
        return usages
    memory, cpu = described.memory, described.cpu
    expected = Usage(
        () if memory is None else (memory.value,), () if cpu is None else (cpu.milli_value,), is_expected=True
    )
    return {containers[0].name: expected}


def _deployment(described: DescribedWorkload) -> dict[str, Plain]:
    namespace, slash, name = described.name.rpartition("/")
    metadata: dict[str, Plain] = {"name": name, **({"namespace": namespace} if slash else {})}
    labels: dict[str, Plain] = {"app.kubernetes.io/name": name}
    container: dict[str, Plain] = {"name": name, "image": described.image or name}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata,
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
