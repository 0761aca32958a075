"""One run of ``podqos check``: from options to the library, and from its answer to output and exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from podqos.advice.checks.baseline import Baseline, BaselineEntry, baseline_of
from podqos.advice.checks.bundle import CheckOptions
from podqos.advice.checks.catalogue import check_named
from podqos.advice.checks.configuration import demands_of, options_of
from podqos.advice.checks.finding import FailOn, FindingSeverity, SuppressedBy
from podqos.advice.checks.gate import Gate
from podqos.answers.check import Checked
from podqos.answers.findings import CheckReport
from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, cluster_of, object_arguments, profile_of
from podqos.cli.inputs import refuse_scenarios, stored_policies
from podqos.cli.options import rendering_of
from podqos.cli.output import emit, object_name, print_file, say_assumptions
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import say_left_out, selection_of
from podqos.cli.terminal import style_of
from podqos.controls import own
from podqos.errors import InvalidConfiguration, InvalidOption
from podqos.eviction.kubelet_file import read_kubelet
from podqos.library.check import run_checks
from podqos.library.parallel import over_cores
from podqos.manifest.encoding import json_bytes
from podqos.model.profile import parse_version
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.other_objects import count_not_judged
from podqos.reading.baseline import read_baseline, write_baseline
from podqos.reading.cluster_part import Part
from podqos.reading.configuration import checks_named, configuration_for
from podqos.reading.configured import FILE_NAME
from podqos.reading.files import read_bytes
from podqos.reading.gathering import existing_files, manifest_files
from podqos.reading.loading import LoadRequest, load_all
from podqos.report.text.style import Style
from podqos.wording import counted, listed

if TYPE_CHECKING:
    from podqos.answers.scores import NamespaceScores

# At most this many baseline entries are listed one by one.
_STALE_SHOWN = 10
# Computing the replacement takes a few milliseconds per finding.
_MOST_FIXES = 2_000
_OF_SCORES = ("table", "json", "yaml", "name")


class CheckRun:
    """One run of the command."""

    def __init__(self, arguments: argparse.Namespace) -> None:
        self._arguments = arguments
        self._stdin_name = arguments.stdin_filename or STDIN
        if arguments.stdin_filename is not None and not (arguments.files or arguments.kustomize):
            arguments.files = [STDIN]
        object_arguments(arguments)
        if arguments.all:
            self._want_scores()
        given = list(arguments.files or ())
        kubelet = arguments.kubelet_config
        if kubelet is not None:
            given.append(kubelet)
            # Its errors are reported with their place, as for any file; here it only must be a configuration.
            with suppress(InvalidConfiguration):
                if kubelet != STDIN:
                    read_kubelet(kubelet, read_bytes(kubelet))
        if [*given, *arguments.policies, *arguments.resize].count(STDIN) > 1:
            raise InvalidOption("standard input can be read only once", where=STDIN, fix="use files for the rest")
        if arguments.usage is not None and not arguments.resize:
            raise InvalidOption("only a resize is compared with usage", where="--usage", fix="add --resize FILE")
        refuse_scenarios(given)
        if arguments.stdin_filename is not None and STDIN not in given:
            raise InvalidOption("standard input is not read", where="--stdin-filename", fix="add -f -")
        named = [self._stdin_name if path == STDIN else path for path in given]
        self._config = configuration_for(named, arguments.config_file)
        is_text = arguments.fix or arguments.diff or arguments.stdin_filename is not None
        rendering = replace(rendering_of(arguments), splits_stdin=not is_text)
        if arguments.fix and (rendering.render or rendering.directories):
            raise InvalidOption(
                "rendered manifests cannot be fixed in place", where="--fix", fix="use --patch-format kustomize"
            )
        self._stored = stored_policies(arguments)
        cluster = None if arguments.files or arguments.kustomize else cluster_of(arguments, Part(usage=False))
        if cluster is not None and (arguments.fix or arguments.diff):
            where = "--fix" if arguments.fix else "--diff"
            fix = "--patch-format kubectl prints commands"
            raise InvalidOption("podqos does not change a cluster", where=where, fix=fix)
        if cluster is None:
            inputs = self._with_stdin_named(manifest_files(given, "check", rendering))
        else:
            inputs = cluster.declared()
            inputs = inputs.only((*inputs.files, *map(InputFile, given)))
        self._inputs = inputs.only(self._without_own_files(inputs.files))

    def _with_stdin_named(self, inputs: Inputs) -> Inputs:
        """Let standard input be the file that ``--stdin-filename`` names, instead of one that is saved under it."""
        name = self._stdin_name
        if name == STDIN:
            return inputs
        others = [file for file in inputs.files if os.path.realpath(file.path) != os.path.realpath(name)]
        return inputs.only(InputFile(name, data=read_bytes(STDIN)) if file.path == STDIN else file for file in others)

    def _want_scores(self) -> None:
        """Validate ``--all``, which without files is about the live cluster."""
        arguments = self._arguments
        if arguments.output not in _OF_SCORES:
            fix = f"use one of {', '.join(_OF_SCORES)}"
            raise InvalidOption(f"scores cannot be printed as {arguments.output}", where="--all", fix=fix)
        for option in ("fix", "diff", "patch_format", "write_baseline"):
            if getattr(arguments, option):
                name = f"--{option.replace('_', '-')}"
                raise InvalidOption(f"--all and {name} cannot be combined", fix="give one of them")
        if not (arguments.files or arguments.kustomize or arguments_name_cluster(arguments)):
            arguments.all_namespaces = True

    def run(self) -> int:
        """Check, print, and return the exit code."""
        arguments = self._arguments
        if print_problems(self._config.problems):
            return 2
        if arguments.write_baseline and self._baseline_path is None:
            raise InvalidOption(
                "no file to write the baseline to", where="--write-baseline", fix="give it with --baseline FILE"
            )
        checked = self._checked()
        if arguments.write_baseline:
            return self._write_baseline(checked)
        if arguments.patch_format and (arguments.diff or not arguments.fix):
            from podqos.answers.object_patches import patch_lines

            print_file(patch_lines(checked.patches(), arguments.patch_format))
            say_assumptions(checked.assumptions)
        elif arguments.diff or arguments.fix:
            return self._fix(checked)
        else:
            self._print(checked)
        return self._end(checked)

    def _end(self, checked: Checked) -> int:
        """Print stale baseline entries and problems, and return the exit code."""
        self._tell_stale(checked.stale)
        has_errors = print_problems(checked.problems)
        if text := count_not_judged(checked.objects.unjudged):
            print(text, file=sys.stderr)
        if has_errors:
            unread = checked.unread
            files = listed(unread) if len(unread) <= _STALE_SHOWN else counted(len(unread), "file")
            print(f"not checked, or not all of it: {files}", file=sys.stderr)
            return 2
        if not checked.subjects:
            others = checked.objects.left_out
            skipped = f" (skipped {counted(others, 'other object')})" if others else ""
            print(f"nothing to check: no workloads, policies or kubelet configurations{skipped}", file=sys.stderr)
            return 2
        return 1 if any(checked.gate.fail_on.fails(finding.severity) for finding in checked.open) else 0

    def _fix(self, checked: Checked) -> int:
        """Show what would be fixed; without ``--diff`` fix it and report what is left."""
        from podqos.cli.commands.fixing import print_diff, print_summary, write_fixes

        arguments = self._arguments
        style = style_of(arguments)
        fixes, after = checked.fix()
        if arguments.diff:
            print_diff(fixes, style)
            print_summary(fixes, style, is_written=False)
            say_assumptions(checked.assumptions)
            return self._end(checked)
        is_piped = STDIN in (self._arguments.files or ()) or STDIN in self._inputs.paths
        from_stdin = checked.text(self._stdin_name) if is_piped else None
        errors = write_fixes(fixes, from_stdin, self._stdin_name)
        # Standard output is taken where the text of standard input goes there.
        patch_format = arguments.patch_format if from_stdin is None else None
        print_summary(fixes, style, is_written=True, errors=errors, with_patches=patch_format is None)
        if patch_format is not None:
            from podqos.answers.object_patches import patch_lines

            refused = [
                (refused_object.subject, refused_object.patch)
                for refused_object in fixes.refused
                if refused_object.patch is not None
            ]
            print_file(patch_lines(refused, patch_format))
        elif from_stdin is None:
            self._print(after)
        code = self._end(after)
        return 3 if errors else code

    # ---- settings ------------------------------------------------------------------------------------------------

    def _checked(self) -> Checked:
        arguments = self._arguments
        given = [*arguments.policies, *map(self._config.resolve, self._config.configuration.policies)]
        policies = Inputs(existing_files(given).files if given else [])
        progress = progress_line("reading file")
        request = LoadRequest(
            policies=(policies, *(() if self._stored is None else (self._stored,))),
            stated=options.stated_classes(arguments),
            version=self._options.profile.version,
            kinds=self._config.configuration.kinds,
            selection=selection_of(arguments),
            keeps_texts=False,
        )
        resized = existing_files(arguments.resize) if arguments.resize else Inputs([])
        checked = run_checks(
            load_all((self._inputs,), request, over_cores(progress)),
            self._options,
            self._gate,
            resized=load_all((resized,), replace(request, policies=(), stated=())),
            usage=arguments.usage,
            progress=progress,
            tries_all=bool(arguments.fix or arguments.diff or arguments.patch_format),
        )
        say_left_out(len(checked.subjects), checked.left_out, "object")
        return checked

    @property
    def _options(self) -> CheckOptions:
        arguments, settings = self._arguments, self._config.configuration
        version = arguments.kubernetes_version or settings.kubernetes_version
        options = options_of(settings.options, CheckOptions())
        return replace(
            options,
            node_memory_bytes=arguments.node_memory or options.node_memory_bytes,
            profile=parse_version(version) if version else profile_of(arguments),
            demands=demands_of(settings, FILE_NAME),
            today=datetime.now(UTC).date(),
            inject=tuple(dict.fromkeys((*settings.inject, *arguments.inject))),
            disabled=checks_named(settings.disable),
            only=frozenset(check_named(each, "only").id for name in arguments.only for each in name.split(",")),
        )

    @property
    def _gate(self) -> Gate:
        arguments, settings = self._arguments, self._config.configuration
        path = self._baseline_path
        is_new = arguments.write_baseline and path is not None and not os.path.exists(path)
        return Gate(
            min_severity=FindingSeverity(arguments.min_severity or settings.min_severity or FindingSeverity.INFO),
            fail_on=FailOn(arguments.fail_on or settings.fail_on or FailOn.WARNING),
            ignore=settings.ignore,
            folder=self._config.folder,
            baseline=Baseline() if path is None or is_new else read_baseline(path),
            show_suppressed=arguments.show_suppressed or arguments.output in {"sarif", "junit"},
        )

    def _without_own_files(self, files: list[InputFile]) -> list[InputFile]:
        """Leave out podqos' own files in a directory of manifests."""
        baseline = self._baseline_path and os.path.realpath(self._baseline_path)
        return [
            file
            for file in files
            if os.path.basename(file.path) != FILE_NAME and (not baseline or os.path.realpath(file.path) != baseline)
        ]

    @cached_property
    def _baseline_path(self) -> str | None:
        if self._arguments.baseline is not None:
            return str(self._arguments.baseline)
        stated = self._config.configuration.baseline
        return None if stated is None else self._config.resolve(stated)

    def _write_baseline(self, checked: Checked) -> int:
        """Write the new baseline; entries about objects that were not checked stay."""
        path = self._baseline_path
        assert path is not None
        if print_problems(checked.problems):
            return 2
        known = [
            finding
            for finding in checked.findings
            if checked.gate.is_severe(finding)
            and (finding.suppression is None or finding.suppression.by is SuppressedBy.BASELINE)
        ]
        unseen = [entry for entry in checked.gate.baseline.findings if entry.object_key not in checked.object_keys]
        write_baseline(path, Baseline(tuple(sorted([*baseline_of(known).findings, *unseen]))))
        print(f"{path}: {counted(len(known), 'known finding')}", file=sys.stderr)
        return 0

    # ---- output --------------------------------------------------------------------------------------------------

    def _print(self, checked: Checked) -> None:
        arguments = self._arguments
        asked = arguments.min_severity or self._config.configuration.min_severity
        verbose = arguments.verbose or asked == FindingSeverity.INFO
        if arguments.all:
            from podqos.answers.scores import namespace_scores
            from podqos.report.check.scores import table

            whole = namespace_scores(checked.report, checked.with_pods)
            emit(whole, arguments, table, names=_namespace_names)
            return
        lines = partial(_lines, output=arguments.output, checked=checked, verbose=verbose, was_fixed=arguments.fix)
        emit(checked.report, self._arguments, lines, names=_names)

    def _tell_stale(self, stale: tuple[BaselineEntry, ...]) -> None:
        """Print which baseline entries are no longer needed."""
        for entry in stale[:_STALE_SHOWN]:
            print(f"{self._baseline_path}: {_described(entry)} is no longer found", file=sys.stderr)
        if stale:
            more = f"{len(stale) - _STALE_SHOWN} more; " if len(stale) > _STALE_SHOWN else ""
            print(f"{self._baseline_path}: {more}--write-baseline removes these entries", file=sys.stderr)


def _namespace_names(whole: NamespaceScores) -> Iterator[str]:
    return (object_name("Namespace", item.namespace) for item in whole.items if item.namespace)


def _names(report: CheckReport) -> Iterator[str]:
    """Yield the objects with findings."""
    return (object_name(item.kind, item.name) for item in report.items)


def _lines(
    report: CheckReport, style: Style, output: str, checked: Checked, *, verbose: bool, was_fixed: bool
) -> Iterable[str]:
    """Return the report in the format for people, CI servers or code scanners."""
    match output:
        case "github":
            from podqos.report.check.github import github

            return (own("::") + command[2:] for command in github(report, checked.problems, verbose=verbose))
        case "junit":
            from podqos.report.check.junit import junit

            return (junit(report, checked.named_subjects),)
        case "sarif":
            return (_sarif(report, checked),)
        case _:
            from podqos.report.check.table import table

            return table(report, style, verbose=verbose, was_fixed=was_fixed)


def _sarif(report: CheckReport, checked: Checked) -> str:
    from podqos import __version__
    from podqos.library.check_examples import good_example
    from podqos.report.check.sarif import sarif

    fixes = checked.replacements() if len(report.items) <= _MOST_FIXES else None
    log = sarif(report, __version__, good_example, problems=checked.problems, fixes=fixes)
    return json_bytes(log).decode()


def _described(entry: BaselineEntry) -> str:
    key = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
    container = f", container {entry.container}" if entry.container else ""
    return f"{entry.check} of {entry.kind} {key}{container}"
