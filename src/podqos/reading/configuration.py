"""Find ``.podqos.yaml`` near the checked files, and read it strictly.

A misspelt setting that is silently ignored is worse than none, so every unknown field is an error, with its line and
the name that was probably meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator

from msgspec import Struct

from podqos.advice.checks.catalogue import CHECKS, check_names
from podqos.advice.checks.configuration import Configuration
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Problem
from podqos.model.profile import parse_version
from podqos.model.quantity import Quantity
from podqos.naming import naming
from podqos.objects.files import STDIN
from podqos.reading.configured import find_configuration
from podqos.reading.paths import relative, with_slashes


class ReadConfiguration(Struct, frozen=True):
    """A configuration and the file it is from; without one, the defaults."""

    configuration: Configuration = Configuration()
    path: str = ""
    problems: tuple[Problem, ...] = ()
    """With any error, the configuration must not be used."""

    @property
    def folder(self) -> str:
        """The directory that its paths are relative to."""
        return os.path.dirname(self.path)

    def resolve(self, path: str) -> str:
        """Return a path of the configuration relative to the current directory."""
        return with_slashes(os.path.join(self.folder, path))


def relative_path(path: str, folder: str) -> str:
    """Return a path as a configuration in a directory would write it."""
    if path == STDIN:
        return path
    return relative(os.path.realpath(path), os.path.realpath(folder or "."))


def read_configuration(path: str) -> ReadConfiguration:
    """Read a configuration file with all its problems."""
    from podqos.reading.strict_files import StrictFile

    read = StrictFile(path, Configuration, _REFUSED)
    if read.value is None:
        return ReadConfiguration(path=path, problems=read.problems)
    problems = [read.problem(*nonsense) for nonsense in _nonsense(read.value)]
    return ReadConfiguration(read.value, path, tuple(sorted(problems)))


_REFUSED = {
    name: ("is a budget of a policy", f"policy: {{budgets: [{{name: {of}, resource: {of}, limits: RATIO}}]}}")
    for name, of in (("cpuBudget", "cpu"), ("memoryBudget", "memory"))
}
_Nonsense = tuple[FieldPath, str, str]


def _nonsense(configuration: Configuration) -> Iterator[_Nonsense]:
    """Yield values of the right shape that make no sense."""
    from podqos.admission.injectors import INJECTORS
    from podqos.manifest.fields import suggestion

    known = check_names()
    for index, name in enumerate(configuration.disable):
        if name not in known:
            yield ("disable", index), f'unknown check "{name}"', suggestion(name, known)
    for index, name in enumerate(configuration.inject):
        if name not in INJECTORS:
            yield ("inject", index), f'unknown injector "{name}"', suggestion(name, INJECTORS)
    for index, rule in enumerate(configuration.ignore):
        if rule.is_empty:
            what = "does not say what to ignore"
            yield ("ignore", index), what, "add checks, objects, namespaces, containers or paths"
        for number, name in enumerate(rule.checks):
            if name not in known and not set(name) & set("*?["):
                yield ("ignore", index, "checks", number), f'unknown check "{name}"', suggestion(name, known)
    if configuration.kubernetes_version is not None:
        try:
            parse_version(configuration.kubernetes_version)
        except InputError as error:
            yield ("kubernetesVersion",), error.what, error.fix
    if configuration.policy is not None:
        from podqos.policy.reading import nonsense

        yield from (
            (finding.path, finding.what, finding.fix) for finding in nonsense(configuration.policy, ("policy",))
        )
    yield from _amounts(configuration)


def _amounts(configuration: Configuration) -> Iterator[_Nonsense]:
    options = configuration.options
    for name, text in (("growthPerSecond", options.growth_per_second), ("nodeMemory", options.node_memory)):
        if text is None:
            continue
        try:
            amount = Quantity.parse(text)
        except InputError as error:
            yield (
                ("options", name),
                f'"{text}" is not a valid quantity: {error.what}',
                error.fix or "write a quantity such as 512Mi",
            )
        else:
            if amount.value <= 0:
                yield ("options", name), f'"{text}" is not above zero', "write a quantity such as 512Mi"


def configuration_for(checked: list[str], given: str | None) -> ReadConfiguration:
    """Return the configuration that is ``given`` (``none`` for none), or the nearest one."""
    if given == "none":
        return ReadConfiguration()
    path = given or find_configuration(checked)
    if path is None:
        return ReadConfiguration()
    if given is not None and not os.path.isfile(path):
        raise InvalidArgument("no such file", where=naming("config_file", path), fix="check the path")
    return read_configuration(path)


def checks_named(names: Iterable[str]) -> frozenset[str]:
    """Return the ids of the checks that are named, by id or name."""
    named = set(names)
    return frozenset(check.id for check in CHECKS.values() if named & {check.id, check.name})
