"""Find ``.podqos.yaml`` near the checked files, and read it strictly.

A misspelt setting that is silently ignored is worse than none, so every unknown field is an error, with its line and
the name that was probably meant.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.baseline import Baseline
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import CHECKS, check_named, check_names
from podqos.advice.checks.configuration import Configuration, demands_of, options_of
from podqos.advice.checks.finding import FailOn, FindingSeverity
from podqos.advice.checks.gate import Gate
from podqos.errors import InputError, InvalidArgument
from podqos.manifest.plain import FieldPath
from podqos.manifest.problems import Problem
from podqos.model.profile import Profile, parse_version
from podqos.model.quantity import Quantity
from podqos.naming import naming
from podqos.objects.files import STDIN, Inputs, file_behind
from podqos.objects.sources import Source
from podqos.reading.baseline import read_baseline
from podqos.reading.configured import FILE_NAME, find_configuration
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

    @property
    def baseline(self) -> str | None:
        """The baseline file, relative to the current directory."""
        stated = self.configuration.baseline
        return None if stated is None else self.resolve(stated)

    def options(
        self, *, version: str | None, otherwise: Profile, node_memory_bytes: int | None, only: Iterable[str]
    ) -> CheckOptions:
        """Return the settings of the checks; what is given wins. ``otherwise``: the rules where nothing states them."""
        settings = self.configuration
        options = options_of(settings.options, CheckOptions())
        stated = version or settings.kubernetes_version
        return replace(
            options,
            node_memory_bytes=node_memory_bytes or options.node_memory_bytes,
            profile=parse_version(stated) if stated else otherwise,
            demands=demands_of(settings, FILE_NAME),
            today=datetime.now(UTC).date(),
            inject=settings.inject,
            disabled=checks_named(settings.disable),
            only=frozenset(check_named(name, "only").id for name in only),
        )

    def gate(
        self, *, min_severity: str | None, fail_on: str | None, baseline: str | None, show_suppressed: bool
    ) -> Gate:
        """Return what is reported and what fails; what is given wins."""
        settings = self.configuration
        return Gate(
            min_severity=FindingSeverity(min_severity or settings.min_severity or FindingSeverity.INFO),
            fail_on=FailOn(fail_on or settings.fail_on or FailOn.WARNING),
            ignore=settings.ignore,
            folder=self.folder,
            baseline=Baseline() if baseline is None else read_baseline(baseline),
            show_suppressed=show_suppressed,
        )

    def paths_of(self, sources: Iterable[Source]) -> dict[str, str]:
        """Return files as this configuration writes them, where it says which findings to ignore."""
        return paths_below(self.folder, sources) if self.configuration.ignore else {}

    def without_own_files(self, inputs: Inputs, baseline: str | None) -> Inputs:
        """Leave out podqos' own files in a directory of manifests."""
        own = baseline and os.path.realpath(baseline)
        return inputs.only(
            file
            for file in inputs.files
            if os.path.basename(file.path) != FILE_NAME and (not own or os.path.realpath(file.path) != own)
        )


def paths_below(folder: str, sources: Iterable[Source]) -> dict[str, str]:
    """Return files as a configuration in a directory would write them."""
    top = os.path.realpath(folder or ".")
    files = {source.path: file_behind(source.path) or source.path for source in sources}
    return {path: file if file == STDIN else relative(os.path.realpath(file), top) for path, file in files.items()}


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
