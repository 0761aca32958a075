"""One run of ``podqos check``: settings, findings, what is left alone, output, exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from podqos.advice.checks.baseline import Baseline, BaselineEntry, Compared, ObjectKey, baseline_of, compare
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.configuration import FailOn, ignored, options_of
from podqos.advice.checks.finding import Finding, Severity, SuppressedBy
from podqos.cli.options import amount_option
from podqos.cli.terminal import style_for
from podqos.errors import InvalidConfiguration, InvalidOption
from podqos.library.checking.baseline import read_baseline, write_baseline
from podqos.library.checking.configuration import FILE_NAME, checks_named, configuration_for
from podqos.library.checking.files import Checked, Checking, Inputs
from podqos.library.inputs.files import STDIN, existing_files, manifest_files
from podqos.library.inputs.kubelet_node import kubelet_of
from podqos.manifest.problems import Problem
from podqos.manifest.problems import Severity as ProblemSeverity
from podqos.model.profile import LATEST, parse_version
from podqos.report.check.value import CheckReport, CheckSummary
from podqos.report.text.words import unknown_classes

# So many entries of a baseline are told one by one.
_STALE_SHOWN = 10
# Working out what to replace takes a few thousandths of a second for each finding.
_MOST_FIXES = 2_000


class Look(Struct, frozen=True):
    """The files at one moment, and what is to be said about them."""

    checking: Checking
    checked: Checked
    compared: Compared


class CheckRun:
    """The command at work."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        given = [*arguments.paths, *(arguments.files or ())]
        kubelet = arguments.kubelet_config
        if kubelet is not None:
            given.append(kubelet)
            # What is wrong with a configuration is told with its place, as of any file; here it has to be one.
            with suppress(InvalidConfiguration):
                if kubelet != STDIN:
                    kubelet_of(kubelet)
        if [*given, *arguments.policies, *arguments.resize].count(STDIN) > 1:
            raise InvalidOption("standard input can be read only once", where=STDIN, fix="name files for the rest")
        self._config = configuration_for(given, arguments.config_file)
        self._files = self._without_own_files(manifest_files(given, "check"))
        settings = self._config.configuration
        self._min_severity = Severity(arguments.min_severity or settings.min_severity or Severity.INFO)
        self._relative_paths: dict[str, str] = {}
        self._fail_on = FailOn(arguments.fail_on or settings.fail_on or FailOn.WARNING)

    def run(self) -> int:
        """Check, print, and return the exit code."""
        if self._config.problems:
            return _close(self._config.problems)
        if self._arguments.write_baseline and self._baseline_path is None:
            raise InvalidOption("into which file?", where="--write-baseline", fix="name it with --baseline FILE")
        look = self._look()
        if self._arguments.write_baseline:
            return self._write_baseline(look)
        if self._arguments.patch_format and not self._arguments.fix:
            return self._print_patches(look)
        if self._arguments.diff or self._arguments.fix:
            return self._fix(look)
        self._print(look)
        return self._end(look)

    def _look(self, texts: Mapping[str, bytes] | None = None) -> Look:
        """Check everything; ``texts`` are what files are to hold, whatever they say now."""
        checking = Checking(self._inputs, self._options, texts)
        checked = checking.check()
        return Look(checking, checked, self._compared(checked))

    def _end(self, look: Look) -> int:
        """Say what else there is to say, and return the exit code."""
        self._tell_stale(look.compared)
        if look.checked.unknown:
            print(unknown_classes(look.checked.unknown), file=sys.stderr)
        if _close(look.checked.problems):
            return 2
        if not look.checked.subjects:
            others = f" ({look.checked.others} others skipped)" if look.checked.others else ""
            print(f"nothing to check: no workloads, policies or kubelet configurations{others}", file=sys.stderr)
        return 1 if any(map(self._fails, look.compared.findings)) else 0

    # ---- mending -------------------------------------------------------------------------------------------------

    def _fix(self, look: Look) -> int:
        """Show what would be mended, or mend it and go on with what is left."""
        from podqos.advice.fixes.fixing import fix
        from podqos.cli.commands.fixing import print_diff, print_summary, write_fixes

        arguments = self._arguments
        style = style_for(arguments.color)
        after = look

        def recheck(changed: Mapping[str, bytes]) -> list[Finding]:
            nonlocal after
            after = self._look(look.checking.texts.changed(changed))
            return self._open(after)

        fixes = fix(self._open(look), look.checking.texts.text, recheck)
        if arguments.diff:
            print_diff(fixes, style)
        if not arguments.fix:
            print_summary(fixes, style, is_written=False)
            return self._end(look)
        from_stdin = look.checking.texts.text(STDIN) if STDIN in look.checking.texts.paths else None
        errors = write_fixes(fixes, from_stdin)
        # Standard output is taken where the text of standard input goes there.
        patch_format = arguments.patch_format if from_stdin is None else None
        print_summary(fixes, style, is_written=True, errors=errors, with_patches=patch_format is None)
        if patch_format is not None:
            from podqos.report.check.object_patches import patch_lines

            refused = [(each.subject, each.patch) for each in fixes.refused if each.patch is not None]
            _print_lines(patch_lines(refused, patch_format))
        elif from_stdin is None:
            self._print(after)
        code = self._end(after)
        return 3 if errors else code

    def _print_patches(self, look: Look) -> int:
        """Print what to apply to a cluster, or to build on, instead of editing the files."""
        from podqos.report.check.object_patches import patch_lines

        _print_lines(patch_lines(look.checking.patches(self._open(look)), self._arguments.patch_format))
        return self._end(look)

    def _open(self, look: Look) -> list[Finding]:
        """Return the findings that nobody has left alone."""
        return [
            finding for finding in look.compared.findings if finding.suppression is None and self._is_severe(finding)
        ]

    # ---- settings ------------------------------------------------------------------------------------------------

    @cached_property
    def _inputs(self) -> Inputs:
        arguments = self._arguments
        stored = [*arguments.policies, *map(self._config.resolve, self._config.configuration.policies)]
        known = set(map(os.path.realpath, self._files))
        described = existing_files(stored) if stored else []
        return Inputs(
            files=self._files,
            described=[path for path in described if os.path.realpath(path) not in known],
            resized=existing_files(arguments.resize) if arguments.resize else [],
            namespace=arguments.namespace,
        )

    @cached_property
    def _options(self) -> CheckOptions:
        arguments, settings = self._arguments, self._config.configuration
        version = arguments.kubernetes_version or settings.kubernetes_version
        options = options_of(settings.options, CheckOptions())
        if arguments.node_memory is not None:
            options = replace(options, node_memory_bytes=amount_option(arguments.node_memory, "--node-memory"))
        return replace(
            options,
            profile=parse_version(version) if version else LATEST,
            inject=tuple(dict.fromkeys((*settings.inject, *arguments.inject))),
            disabled=checks_named(settings.disable),
        )

    def _without_own_files(self, files: list[str]) -> list[str]:
        """Leave out what a directory of manifests holds for podqos itself."""
        baseline = self._baseline_path and os.path.realpath(self._baseline_path)
        return [
            file
            for file in files
            if os.path.basename(file) != FILE_NAME and (not baseline or os.path.realpath(file) != baseline)
        ]

    @property
    def _baseline_path(self) -> str | None:
        if self._arguments.baseline is not None:
            return str(self._arguments.baseline)
        stated = self._config.configuration.baseline
        return None if stated is None else self._config.resolve(stated)

    # ---- what is left alone --------------------------------------------------------------------------------------

    def _compared(self, checked: Checked) -> Compared:
        """Mark what the configuration and the baseline say is to be left alone."""
        findings = [self._ignored(finding) for finding in checked.findings]
        path = self._baseline_path
        is_new = self._arguments.write_baseline and path is not None and not os.path.exists(path)
        baseline = Baseline() if path is None or is_new else read_baseline(path)
        return compare(findings, baseline, _object_keys(checked))

    def _ignored(self, finding: Finding) -> Finding:
        rules = self._config.configuration.ignore
        if finding.suppression is not None or not rules:
            return finding
        source = finding.subject.source
        if source not in self._relative_paths:
            self._relative_paths[source] = self._config.relative(source)
        suppression = ignored(finding, rules, self._relative_paths[source])
        return finding if suppression is None else replace(finding, suppression=suppression)

    def _is_severe(self, finding: Finding) -> bool:
        return finding.severity.rank <= self._min_severity.rank

    def _is_shown(self, finding: Finding) -> bool:
        if not self._is_severe(finding):
            return False
        shows_suppressed = self._arguments.show_suppressed or self._arguments.output in {"sarif", "junit"}
        return finding.suppression is None or shows_suppressed

    def _shown(self, look: Look) -> list[Finding]:
        return [finding for finding in look.compared.findings if self._is_shown(finding)]

    def _fails(self, finding: Finding) -> bool:
        return self._is_severe(finding) and finding.suppression is None and self._fail_on.fails(finding.severity)

    def _summary(self, look: Look) -> CheckSummary:
        checked, compared = look.checked, look.compared
        left = Counter(finding.suppression.by for finding in compared.findings if finding.suppression is not None)
        counts = Counter(
            finding.severity
            for finding in compared.findings
            if finding.suppression is None and self._is_severe(finding)
        )
        below = sum(finding.suppression is None and not self._is_severe(finding) for finding in compared.findings)
        return CheckSummary(
            files=len({subject.source for subject in checked.subjects}),
            objects=len(checked.subjects),
            errors=counts[Severity.ERROR],
            warnings=counts[Severity.WARNING],
            infos=counts[Severity.INFO],
            suppressed=left[SuppressedBy.ANNOTATION] + left[SuppressedBy.CONFIGURATION],
            in_baseline=left[SuppressedBy.BASELINE],
            below_min_severity=below,
            stale_baseline_entries=len(compared.stale),
        )

    def _write_baseline(self, look: Look) -> int:
        """Write what is to be known from now on; entries about objects that were not checked stay."""
        path = self._baseline_path
        assert path is not None
        if _close(look.checked.problems):
            return 2
        known = [
            finding
            for finding in look.compared.findings
            if self._is_severe(finding)
            and (finding.suppression is None or finding.suppression.by is SuppressedBy.BASELINE)
        ]
        old = read_baseline(path).findings if os.path.exists(path) else ()
        seen = _object_keys(look.checked)
        unseen = [entry for entry in old if entry.object_key not in seen]
        write_baseline(path, Baseline(tuple(sorted([*baseline_of(known).findings, *unseen]))))
        print(f"{path}: {len(known)} known finding{'' if len(known) == 1 else 's'}", file=sys.stderr)
        return 0

    # ---- output --------------------------------------------------------------------------------------------------

    def _report(self, look: Look) -> CheckReport:
        return CheckReport(
            items=tuple(look.checking.report(self._shown(look))),
            summary=self._summary(look),
            kubernetes_version=".".join(map(str, self._options.profile.version)),
            fail_on=self._fail_on,
            notes=tuple(_notes(look.checked)),
        )

    def _print(self, look: Look) -> None:
        report = self._report(look)
        match self._arguments.output:
            case "table":
                from podqos.report.check.table import table

                _print_lines(table(report, style_for(self._arguments.color)))
            case "github":
                from podqos.report.check.github import github

                _print_lines(github(report, look.checked.problems))
            case "html":
                from podqos.library.checking.examples import good_example
                from podqos.report.check.html import html

                _print_lines(html(report, good_example))
            case "junit":
                from podqos.report.check.junit import junit

                print(junit(report, look.checked.subjects))
            case "sarif":
                self._print_sarif(report, look)
            case notation:
                from podqos.cli.output import print_value

                print_value(report, notation)

    def _print_sarif(self, report: CheckReport, look: Look) -> None:
        import msgspec

        from podqos import __version__
        from podqos.library.checking.examples import good_example
        from podqos.report.check.sarif import sarif

        fixes = look.checking.replacements(self._shown(look)) if len(report.items) <= _MOST_FIXES else None
        log = sarif(report, __version__, good_example, problems=look.checked.problems, fixes=fixes)
        print(msgspec.json.format(msgspec.json.encode(log), indent=2).decode())

    def _tell_stale(self, compared: Compared) -> None:
        """Say which entries of the baseline are no longer needed."""
        for entry in compared.stale[:_STALE_SHOWN]:
            print(f"{self._baseline_path}: {_described(entry)} is no longer found", file=sys.stderr)
        if compared.stale:
            count = len(compared.stale)
            more = f"{count - _STALE_SHOWN} more; " if count > _STALE_SHOWN else ""
            print(f"{self._baseline_path}: {more}--write-baseline removes what is gone", file=sys.stderr)


def _notes(checked: Checked) -> Iterator[str]:
    yield from (str(each) for each in checked.problems if each.severity is ProblemSeverity.WARNING)
    if checked.unknown:
        yield unknown_classes(checked.unknown)


def _object_keys(checked: Checked) -> set[ObjectKey]:
    return {(each.kind, each.namespace, each.name) for each in checked.subjects}


def _described(entry: BaselineEntry) -> str:
    key = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    container = f", container {entry.container}" if entry.container else ""
    return f"{entry.check} about {entry.kind} {key}{container}"


def _close(problems: Iterable[Problem]) -> int:
    """Print the problems of the input; return 2 if one of them is an error."""
    errors = 0
    for problem in problems:
        errors += problem.severity is ProblemSeverity.ERROR
        print(problem, file=sys.stderr)
    return 2 if errors else 0


def _print_lines(lines: Iterator[str]) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)
