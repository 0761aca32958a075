"""One run of ``podqos check``: settings, findings, what is left alone, output, exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podqos.advice.baseline import Baseline, BaselineEntry, Compared, baseline_of, compare
from podqos.advice.bundle import CheckOptions
from podqos.advice.configuration import FailOn, ignored, options_of
from podqos.advice.finding import Finding, Severity, SuppressedBy
from podqos.cli.check_baseline import read_baseline, write_baseline
from podqos.cli.check_config import FILE_NAME, checks_named, configuration_for
from podqos.cli.check_files import Checked, Checking, Inputs
from podqos.cli.inputs import STDIN
from podqos.cli.options import amount_option, existing_files, manifest_files
from podqos.cli.terminal import style_for
from podqos.errors import InvalidOption
from podqos.manifest.problems import Problem
from podqos.manifest.problems import Severity as ProblemSeverity
from podqos.model.profile import LATEST, parse_version
from podqos.report.check import CheckReport, Summary

# So many entries of a baseline are told one by one.
_STALE_SHOWN = 10


class CheckRun:
    """The command at work."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        given = [*arguments.paths, *(arguments.files or ())]
        if [*given, *arguments.policies, *arguments.resize].count(STDIN) > 1:
            raise InvalidOption("standard input can be read only once", where=STDIN, fix="name files for the rest")
        self._config = configuration_for(given, arguments.config_file)
        self._files = self._without_own_files(manifest_files(given, "check"))
        settings = self._config.configuration
        self._min_severity = Severity(arguments.min_severity or settings.min_severity or Severity.INFO)
        self._fail_on = FailOn(arguments.fail_on or settings.fail_on or FailOn.WARNING)

    def run(self) -> int:
        """Check, print, and return the exit code."""
        if self._config.problems:
            return _close(self._config.problems)
        if self._arguments.write_baseline and self._baseline_path is None:
            raise InvalidOption("into which file?", where="--write-baseline", fix="name it with --baseline FILE")
        options = self._options()
        checking = Checking(self._inputs(), options)
        checked = checking.check()
        compared = self._compared(checked)
        if self._arguments.write_baseline:
            return self._write_baseline(checked, compared)
        shown = [finding for finding in compared.findings if self._is_shown(finding)]
        report = CheckReport(
            items=tuple(checking.report(shown)),
            summary=self._summary(checked, compared),
            kubernetes_version=".".join(map(str, options.profile.version)),
            fail_on=self._fail_on,
        )
        self._print(report, checked)
        self._tell_stale(compared)
        if _close(checked.problems):
            return 2
        self._tell_nothing(checked)
        return 1 if any(map(self._fails, compared.findings)) else 0

    # ---- settings ------------------------------------------------------------------------------------------------

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
        return compare(findings, baseline, {(each.kind, each.namespace, each.name) for each in checked.subjects})

    def _ignored(self, finding: Finding) -> Finding:
        rules = self._config.configuration.ignore
        if finding.suppression is not None or not rules:
            return finding
        suppression = ignored(finding, rules, self._config.relative(finding.subject.source))
        return finding if suppression is None else replace(finding, suppression=suppression)

    def _is_severe(self, finding: Finding) -> bool:
        return finding.severity.rank <= self._min_severity.rank

    def _is_shown(self, finding: Finding) -> bool:
        if not self._is_severe(finding):
            return False
        shows_suppressed = self._arguments.show_suppressed or self._arguments.output in {"sarif", "junit"}
        return finding.suppression is None or shows_suppressed

    def _fails(self, finding: Finding) -> bool:
        return self._is_severe(finding) and finding.suppression is None and self._fail_on.fails(finding.severity)

    def _summary(self, checked: Checked, compared: Compared) -> Summary:
        left = Counter(finding.suppression.by for finding in compared.findings if finding.suppression is not None)
        counts = Counter(
            finding.severity
            for finding in compared.findings
            if finding.suppression is None and self._is_severe(finding)
        )
        below = sum(finding.suppression is None and not self._is_severe(finding) for finding in compared.findings)
        return Summary(
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

    def _write_baseline(self, checked: Checked, compared: Compared) -> int:
        """Write what is to be known from now on; entries about objects that were not checked stay."""
        path = self._baseline_path
        assert path is not None
        known = [
            finding
            for finding in compared.findings
            if self._is_severe(finding)
            and (finding.suppression is None or finding.suppression.by is SuppressedBy.BASELINE)
        ]
        if _close(checked.problems):
            return 2
        seen = {(each.kind, each.namespace, each.name) for each in checked.subjects}
        old = read_baseline(path).findings if os.path.exists(path) else ()
        unseen = [entry for entry in old if entry.object_key not in seen]
        baseline = baseline_of(known)
        write_baseline(path, replace(baseline, findings=tuple(sorted([*baseline.findings, *unseen]))))
        print(f"{path}: {len(known)} known finding{'' if len(known) == 1 else 's'}", file=sys.stderr)
        return 0

    # ---- output --------------------------------------------------------------------------------------------------

    def _print(self, report: CheckReport, checked: Checked) -> None:
        match self._arguments.output:
            case "table":
                from podqos.report.check_table import table

                _print_lines(table(report, style_for(self._arguments.color)))
            case "github":
                from podqos.report.check_github import github

                _print_lines(github(report))
            case "html":
                from podqos.report.check_html import html

                _print_lines(html(report))
            case "junit":
                from podqos.report.check_junit import junit

                print(junit(report, checked.subjects))
            case "sarif":
                self._print_sarif(report, checked)
            case notation:
                from podqos.cli.output import print_value

                print_value(report, notation)

    def _print_sarif(self, report: CheckReport, checked: Checked) -> None:
        import msgspec

        from podqos import __version__
        from podqos.report.check_sarif import sarif

        log = sarif(report, __version__, problems=checked.problems)
        print(msgspec.json.format(msgspec.json.encode(log), indent=2).decode())

    def _tell_stale(self, compared: Compared) -> None:
        """Say which entries of the baseline are no longer needed."""
        for entry in compared.stale[:_STALE_SHOWN]:
            print(f"{self._baseline_path}: {_described(entry)} is no longer found", file=sys.stderr)
        if compared.stale:
            count = len(compared.stale)
            more = f"{count - _STALE_SHOWN} more; " if count > _STALE_SHOWN else ""
            print(f"{self._baseline_path}: {more}--write-baseline removes what is gone", file=sys.stderr)

    def _tell_nothing(self, checked: Checked) -> None:
        """Say what was not looked at, where that is worth knowing."""
        if not checked.subjects:
            others = f" ({checked.others} others skipped)" if checked.others else ""
            print(f"nothing to check: no workloads, policies or kubelet configurations{others}", file=sys.stderr)


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
