"""Check manifests and kubelet configurations: what will fail when memory runs short, why, and what to write instead.

Reads workloads and the objects that affect their pods: policies, priority classes, Services, Nodes and
KubeletConfigurations, in the same files or given with --policies. Suppress a finding with the annotation
podqos.dev/ignore, in .podqos.yaml (in the directory of the files or above it), or with a baseline of known findings.

The table and GitHub's annotations leave out infos, unless -v, --min-severity info or --fail-on info is given. All
other outputs have every finding.

Exit codes: 0 no findings at or above --fail-on; 1 findings; 2 something could not be read; 3 a file could not be
written.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Iterable
from contextlib import suppress

from msgspec.structs import replace

from podqos import __version__
from podqos.advice.checks.catalogue import CHECKS, check_named
from podqos.amounts import counted, listed
from podqos.cli import options
from podqos.cli.cluster import cluster_of, object_arguments, profile_of
from podqos.cli.inputs import refuse_scenarios, stored_policies
from podqos.cli.output import (
    add_output_options,
    emit,
    object_name,
    print_file,
    print_lines,
    print_names,
    print_value,
    say_assumptions,
)
from podqos.cli.problems import print_problems
from podqos.cli.progress import progress_line
from podqos.cli.selecting import add_manifest_options, say_left_out, selection_of
from podqos.cli.terminal import style_of
from podqos.cli.usage_files import usage_option
from podqos.controls import own
from podqos.errors import HostError, InvalidConfiguration, InvalidOption
from podqos.eviction.thresholds import read_kubelet
from podqos.manifest.encoding import json_bytes
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.other_objects import count_not_judged
from podqos.parallel import over_cores
from podqos.questions import check_formats
from podqos.questions.check import Checked
from podqos.questions.findings import CheckReport, csv_rows, table
from podqos.questions.patches import diff_lines, patch_lines, summary_lines
from podqos.reading.baseline import write_baseline
from podqos.reading.cluster_part import Part
from podqos.reading.configuration import ReadConfiguration, configuration_for
from podqos.reading.files import read_bytes
from podqos.reading.gathering import existing_files, manifest_files
from podqos.reading.loading import LoadRequest, load_all
from podqos.reading.written_files import replace_file
from podqos.text.style import Style

_SEVERITIES = ("error", "warning", "info")
_NAMED = 10
"""So many baseline entries, and files that cannot be read, are listed one by one."""
_MOST_FIXES = 2_000
"""In SARIF: computing the replacement takes a few milliseconds per finding."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos check``."""
    add_manifest_options(parser)
    add_output_options(
        parser,
        ("table", "json", "yaml", "csv", "name", "sarif", "github", "junit"),
        "podqos.questions.findings:CheckReport",
        (
            "table: for people; json, yaml: everything; sarif: for code scanning; github: annotations on a pull "
            "request; junit: for CI servers"
        ),
    )
    about = "the file that standard input (-f -) is reported as, and whose .podqos.yaml applies; never written"
    parser.add_argument("--stdin-filename", metavar="PATH", help=about)
    about = "also show infos, suppressed findings, and every location of a finding"
    parser.add_argument("-v", "--verbose", action="store_true", help=about)
    cluster = parser.add_argument_group("the cluster")
    about = "the cluster's policies, priority classes, Services, Nodes and kubelet configurations: they apply "
    options.add_list_option(cluster, "--policies", "FILE|DIR", f"{about}but are not checked themselves")
    about = "workloads of -f with new resources, to check an in-place resize"
    options.add_list_option(cluster, "--resize", "FILE|DIR", about)
    about = "what the pods of --resize use now, as for podqos rank: no memory limit can be lowered below that"
    cluster.add_argument("--usage", metavar="FILE", help=about)
    options.add_node_memory_option(cluster, "a node's memory")
    options.add_kubelet_option(cluster)
    options.add_version_option(cluster)
    gate = parser.add_argument_group("CI gate")
    about = "hide findings below this severity; info shows infos as well"
    gate.add_argument("--min-severity", choices=_SEVERITIES, help=about)
    about = "exit with 1 if a finding has this severity or a higher one (default: warning)"
    gate.add_argument("--fail-on", choices=(*_SEVERITIES, "never"), help=about)
    gate.add_argument("--baseline", metavar="FILE", help="file of known findings, which are not reported again")
    about = "write all findings to the --baseline file and exit with 0"
    gate.add_argument("--write-baseline", action="store_true", help=about)
    about = 'configuration file, or "none" (default: the nearest .podqos.yaml)'
    gate.add_argument("--config-file", metavar="FILE", help=about)
    fixes = parser.add_argument_group("fixes")
    about = "apply the fixes that need no decision, and report the rest; standard input is fixed on standard output"
    fixes.add_argument("--fix", action="store_true", help=about)
    about = (
        "run only these checks, by id or name; --fix then also applies fixes with a cost, such as a CPU limit "
        "(PQ101), or that rest on a rule of thumb (PQ105) or another object's policy (PQ201)"
    )
    options.add_list_option(fixes, "--only", "CHECK", about)
    about = "show what --fix would change, without writing anything, even with --fix"
    fixes.add_argument("--diff", action="store_true", help=about)
    options.add_patch_option(fixes)
    checks = parser.add_argument_group("about the checks")
    checks.add_argument("--list", action="store_true", help="list all checks and exit (-o json or yaml too)")
    checks.add_argument("--explain", metavar="ID", help="explain one check, by id or name, and exit")


def run(arguments: argparse.Namespace) -> int:
    """Check, print, and return the exit code."""
    if arguments.list or arguments.explain:
        return _about_checks(arguments)

    if arguments.stdin_filename is not None and not (arguments.files or arguments.kustomize):
        arguments.files = [STDIN]
    object_arguments(arguments)
    given = _given(arguments)
    named = [_stdin_name(arguments) if path == STDIN else path for path in given]
    config = configuration_for(named, arguments.config_file)
    inputs = _inputs(arguments, given)
    if print_problems(config.problems):
        return 2
    baseline = arguments.baseline or config.baseline
    if arguments.write_baseline and baseline is None:
        fix = "give it with --baseline FILE"
        raise InvalidOption("no file to write the baseline to", where="--write-baseline", fix=fix)
    checked = _checked(arguments, config, config.without_own_files(inputs, baseline), baseline)
    if arguments.write_baseline:
        assert baseline is not None
        return _write_baseline(baseline, checked)
    if arguments.patch and (arguments.diff or not arguments.fix):
        print_file(patch_lines(checked.patches(), arguments.patch))
        say_assumptions(checked.assumptions)
    elif arguments.diff or arguments.fix:
        is_piped = STDIN in given or STDIN in inputs.paths
        return _fix(arguments, config, checked, baseline, is_piped=is_piped)
    else:
        _print(arguments, config, checked)
    return _end(checked, baseline)


def _about_checks(arguments: argparse.Namespace) -> int:
    style = style_of(arguments)
    checks = [check_named(arguments.explain, "explain")] if arguments.explain else list(CHECKS.values())
    if arguments.output in {"json", "yaml"}:
        print_value(check_formats.check_list(checks), arguments.output)
    elif arguments.output == "name":
        print_names(check.id for check in checks)
    elif arguments.explain:
        print_lines(check_formats.page(checks[0], style))
    else:
        print_lines(check_formats.list_table(checks, style), style)
    return 0


# ---- read ------------------------------------------------------------------------------------------------------------


def _stdin_name(arguments: argparse.Namespace) -> str:
    return arguments.stdin_filename or STDIN


def _given(arguments: argparse.Namespace) -> list[str]:
    """Return the files that are named, with the kubelet's; raise where options contradict each other."""
    given, kubelet = list(arguments.files or ()), arguments.kubelet_config
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
    if arguments.stdin_filename is not None and STDIN not in given:
        raise InvalidOption("standard input is not read", where="--stdin-filename", fix="add -f -")
    refuse_scenarios(given)
    return given


def _inputs(arguments: argparse.Namespace, given: list[str]) -> Inputs:
    """Return what is checked: files, or the objects of a cluster."""
    is_text = arguments.fix or arguments.diff or arguments.stdin_filename is not None
    rendering = replace(options.rendering_of(arguments), splits_stdin=not is_text)
    if arguments.fix and (rendering.render or rendering.directories):
        what, fix = "rendered manifests cannot be fixed in place", "use --patch kustomize"
        raise InvalidOption(what, where="--fix", fix=fix)
    cluster = None if arguments.files or arguments.kustomize else cluster_of(arguments, Part(usage=False))
    if cluster is not None:
        if arguments.fix or arguments.diff:
            where = "--fix" if arguments.fix else "--diff"
            fix = "--patch kubectl prints commands"
            raise InvalidOption("podqos does not change a cluster", where=where, fix=fix)
        inputs = cluster.declared()
        return inputs.only((*inputs.files, *map(InputFile, given)))
    inputs, name = manifest_files(given, "check", rendering), arguments.stdin_filename
    if name is None:
        return inputs
    # Standard input is the file of that name, instead of what is saved under it.
    others = [file for file in inputs.files if os.path.realpath(file.path) != os.path.realpath(name)]
    return inputs.only(InputFile(name, data=read_bytes(STDIN)) if file.path == STDIN else file for file in others)


def _checked(arguments: argparse.Namespace, config: ReadConfiguration, inputs: Inputs, baseline: str | None) -> Checked:
    # The policies of a cluster have its version, too.
    stored = stored_policies(arguments)
    check_options = config.options(
        version=arguments.kubernetes_version,
        otherwise=profile_of(arguments),
        node_memory_bytes=arguments.node_memory,
        only=[each for name in arguments.only for each in name.split(",")],
    )
    gate = config.gate(
        min_severity=arguments.min_severity,
        fail_on=arguments.fail_on,
        baseline=None if arguments.write_baseline and not os.path.exists(baseline or "") else baseline,
        show_suppressed=arguments.verbose or arguments.output in {"sarif", "junit"},
    )
    policies = [*arguments.policies, *map(config.resolve, config.configuration.policies)]
    progress = progress_line("reading file")
    request = LoadRequest(
        policies=(
            existing_files(policies) if policies else Inputs([]),
            *(() if stored is None else (stored,)),
        ),
        stated=options.stated_classes(arguments),
        version=check_options.profile.version,
        kinds=config.configuration.kinds,
        selection=selection_of(arguments),
        keeps_texts=False,
    )
    objects = load_all((inputs,), request, over_cores(progress))
    resized = existing_files(arguments.resize) if arguments.resize else Inputs([])
    resized_objects = load_all((resized,), replace(request, policies=(), stated=()))
    checked = Checked(
        objects,
        check_options,
        gate,
        resized=resized_objects,
        usage=() if arguments.usage is None else usage_option(arguments.usage),
        tries_all=bool(arguments.fix or arguments.diff or arguments.patch),
        paths=config.paths_of((*objects.sources, *resized_objects.sources)),
        spread=over_cores(progress),
    )
    say_left_out(len(checked.subjects), checked.left_out, "object")
    return checked


# ---- written ---------------------------------------------------------------------------------------------------------


def _fix(
    arguments: argparse.Namespace,
    config: ReadConfiguration,
    checked: Checked,
    baseline: str | None,
    *,
    is_piped: bool,
) -> int:
    """Show what would be fixed; without ``--diff`` fix it, a file as a whole or not at all, and report what is left."""
    style = style_of(arguments)
    fixes, after = checked.fix()
    if arguments.diff:
        for line in diff_lines(fixes, style):
            sys.stdout.write(line + "\n")
        _say(summary_lines(fixes, style, is_written=False))
        say_assumptions(checked.assumptions)
        return _end(checked, baseline)
    name = _stdin_name(arguments)
    text, errors = checked.text(name) if is_piped else None, dict[str, HostError]()
    for file in fixes.files:
        try:
            if file.source == name:
                text = file.after
            else:
                replace_file(file.source, file.before, file.after)
        except HostError as error:
            errors[file.source] = error
    if text is not None:
        sys.stdout.flush()
        sys.stdout.buffer.write(text)
        sys.stdout.buffer.flush()
    # Standard output is taken where the text of standard input goes there.
    notation = arguments.patch if text is None else None
    done = replace(fixes, files=tuple(file for file in fixes.files if file.source not in errors))
    if done.files or done.refused or not errors:
        _say(summary_lines(done, style, is_written=True, with_patches=notation is None))
    _say(style.alarm(str(error)) for error in errors.values())
    if notation is not None:
        print_file(patch_lines(((each.subject, each.patch) for each in fixes.refused if each.patch), notation))
    elif text is None:
        _print(arguments, config, after)
    code = _end(after, baseline)
    return 3 if errors else code


def _write_baseline(path: str, checked: Checked) -> int:
    if print_problems(checked.problems):
        return 2
    known, baseline = checked.new_baseline()
    write_baseline(path, baseline)
    _say((f"{path}: {counted(known, 'known finding')}",))
    return 0


# ---- printed ---------------------------------------------------------------------------------------------------------


def _say(lines: Iterable[str]) -> None:
    for line in lines:
        print(line, file=sys.stderr)


def _print(arguments: argparse.Namespace, config: ReadConfiguration, checked: Checked) -> None:
    asked = arguments.min_severity or config.configuration.min_severity
    verbose = arguments.verbose or asked == "info"

    def lines(report: CheckReport, style: Style) -> Iterable[str]:
        return _lines(report, style, checked, arguments.output, verbose=verbose, was_fixed=arguments.fix)

    emit(
        checked.report,
        arguments,
        lines,
        csv_rows,
        names=lambda report: (object_name(item.kind, item.name) for item in report.items),
    )


def _lines(
    report: CheckReport, style: Style, checked: Checked, output: str, *, verbose: bool, was_fixed: bool
) -> Iterable[str]:
    """Return the report in the format for people, CI servers or code scanners."""
    match output:
        case "github":
            commands = check_formats.github(report, checked.problems, verbose=verbose)
            return (own("::") + command[2:] for command in commands)
        case "junit":
            return (check_formats.junit(report, checked.named_subjects),)
        case "sarif":
            fixes = checked.replacements() if len(report.items) <= _MOST_FIXES else None
            log = check_formats.sarif(report, __version__, problems=checked.problems, fixes=fixes)
            return (json_bytes(log).decode(),)
        case _:
            return table(report, style, verbose=verbose, was_fixed=was_fixed)


def _end(checked: Checked, baseline: str | None) -> int:
    """Print stale baseline entries and problems, and return the exit code."""
    stale = checked.stale
    for entry in stale[:_NAMED]:
        key = f"{entry.namespace}/{entry.name}" if entry.namespace else entry.name
        container = f", container {entry.container}" if entry.container else ""
        _say((f"{baseline}: {entry.check} of {entry.kind} {key}{container} is no longer found",))
    if stale:
        more = f"{len(stale) - _NAMED} more; " if len(stale) > _NAMED else ""
        _say((f"{baseline}: {more}--write-baseline removes these entries",))
    has_errors = print_problems(checked.problems)
    if text := count_not_judged(checked.objects.unjudged):
        _say((text,))
    if has_errors:
        unread = checked.unread
        files = listed(unread) if len(unread) <= _NAMED else counted(len(unread), "file")
        _say((f"not checked, or not all of it: {files}",))
        return 2
    if not checked.subjects:
        others = checked.objects.left_out
        skipped = f" (skipped {counted(others, 'other object')})" if others else ""
        _say((f"nothing to check: no workloads, policies or kubelet configurations{skipped}",))
        return 2
    return int(any(checked.gate.fail_on.fails(finding.severity) for finding in checked.open))
