"""Run a scenario in virtual time and show what happened: which pods were killed, by what, when and why.

SCENARIO is a file (see `podqos scenario`) or the name of a built-in scenario, such as race. The same scenario and seed
always give the same run.

  podqos simulate race                     a timeline and a summary
  podqos simulate race --html race.html    a self-contained page to explore
  podqos simulate race -o jsonl            the journal: one line for everything observed, decided and done

SCENARIO can be manifests instead: their pods use what --usage says, and some of them grow. `podqos scenario new --from`
writes such a run as a scenario:

  podqos simulate deploy/ --usage usage.csv --growing search-indexer --growing log-collector --rate 64Mi/s --until 10m

With --from cluster, the scenario is a cluster as it is now, whose pods keep using what they use. --what-if changes
this or any other scenario; --vary runs a scenario once with every combination of values, --seeds with many seeds, and
both compare how each workload fares:

  podqos simulate --from cluster --until 1h --what-if nodeLost@worker-1=10m
  podqos simulate --from cluster --what-if 'memory@shop/db-0=64Mi per minute'
  podqos simulate race --vary kubelet.evictionHard.memory.available=100Mi,1Gi,8Gi --vary phase=0s,2s,4s,6s,8s

Parameters are NAME[@WORKLOAD[:CONTAINER]]=VALUE, with --vary VALUE,VALUE,…:
  growth@WORKLOAD     how much its memory grows, as a multiple of the scenario's growth
  memory@WORKLOAD     private memory on top of the scenario's, such as 1Gi per hour
  nodeLost@NODE       when a node is lost
  limits.memory@WORKLOAD, requests.cpu@WORKLOAD:CONTAINER, replicas@WORKLOAD, priority@WORKLOAD
  kubelet.FIELD       any field of the KubeletConfiguration, on all nodes: kubelet.evictionHard.memory.available
  phase               time of the first eviction check
  policy              how pods are ranked for eviction: kubelet, qos-tiers, qos-usage
  spec.PATH           any other field of the scenario file: spec.nodes[0].capacity.memory

Of more than 12 nodes the timeline lists those with most kills and evictions; --node shows one.
"""

from __future__ import annotations

import argparse
import sys
from itertools import islice

from podqos.agent.journal import encode
from podqos.api import sweep
from podqos.cli.cluster import add_whole_cluster_options
from podqos.cli.from_manifests import add_manifest_run_options
from podqos.cli.options import (
    add_hold_placement_option,
    add_list_option,
    add_scenario_argument,
    add_value_option,
    duration_option,
)
from podqos.cli.output import add_output_options, emit, print_csv, say_assumptions
from podqos.cli.progress import progress_line
from podqos.cli.scenarios import scenario_argument, scenario_to_run
from podqos.cli.spelling import spelled
from podqos.errors import InvalidOption
from podqos.model.time_units import SECOND_US
from podqos.reading.built_page import built_viewer
from podqos.reading.written_files import write_file
from podqos.runs import timeline, variations
from podqos.runs.run import simulate

_LINES_AT_ONCE = 10_000
_OF_ONE_RUN = ("from", "snapshot", "context", "what-if", "seed", "until", "node", "html", "svg")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos simulate``."""
    about = "a scenario file, the name of a built-in scenario, or manifests: a file or a directory"
    add_scenario_argument(parser, about, "SCENARIO|DIR")
    add_manifest_run_options(parser)
    about = "simulate a cluster as it is now: the live cluster of the current context, or a --snapshot"
    parser.add_argument("--from", dest="origin", choices=("cluster",), help=about)
    add_whole_cluster_options(parser)
    about = "change a parameter, as described above, for this run"
    add_list_option(parser, "--what-if", "PARAMETER=VALUE", about)
    add_list_option(parser, "--vary", "PARAMETER=VALUES", "run with each of these values, and compare the outcomes")
    about = "run every combination with seeds 0 to N-1, and compare the outcomes"
    parser.add_argument("--seeds", metavar="N", help=about)
    add_hold_placement_option(parser)
    parser.add_argument("--seed", type=int, metavar="N", help="seed of random demand (default: the scenario's)")
    about = "how long to run, such as 90s or 2h (default: the scenario's duration; cluster: 1h; manifests: 10m)"
    add_value_option(parser, "--until", duration_option, about, "DURATION")
    about = "show this node; may be repeated (default: the nodes with the most kills and evictions)"
    parser.add_argument("--node", metavar="NAME", action="append", help=about)
    parser.add_argument("--html", metavar="FILE", help="save a page to explore the run in a browser")
    parser.add_argument("--svg", metavar="FILE", help="save the run as a picture")
    about = "text: timeline and summary; jsonl: journal; csv: one line per workload; json: everything"
    add_output_options(parser, ("text", "json", "yaml", "jsonl", "csv"), "podqos.runs.view:RunView", about)


def run(arguments: argparse.Namespace) -> int:
    """Simulate, write, print, and return the exit code."""
    if arguments.vary or arguments.seeds is not None:
        return _compare(arguments)
    if arguments.html is not None:
        built_viewer()  # what is missing for the page is said before a long run, not after it
    scenario = scenario_to_run(arguments)
    # The page and JSON have every node that is shown; a picture records what it draws when it is drawn.
    is_drawn = arguments.output in {"json", "yaml"} or arguments.html is not None
    tell, seconds = progress_line("simulating second"), scenario.duration_us // SECOND_US
    done = simulate(
        scenario,
        nodes=arguments.node,
        record=is_drawn or arguments.output == "text",
        progress=None if tell is None else lambda time_us, _: tell(time_us // SECOND_US, seconds),
    )
    if tell is not None:
        tell(seconds, seconds)
    if arguments.html is not None:
        _write(arguments.html, done.html(built_viewer()))
    if arguments.svg is not None:
        _write(arguments.svg, done.svg(*arguments.node or ()))
    match arguments.output:
        case "jsonl":
            entries = iter(done.journal)
            while written := encode(islice(entries, _LINES_AT_ONCE)):
                sys.stdout.buffer.write(written)
            say_assumptions(done.assumptions)
        case "csv":
            print_csv(*timeline.csv_table(done.summary), has_header=not arguments.no_headers)
            say_assumptions(done.assumptions)
        case output:
            emit(done.words if output == "text" else done.report, arguments, timeline.timeline)
    displaced = "" if arguments.hold_placement else variations.displaced_words(done.journal, arguments.what_if)
    if displaced:
        print(f"podqos: {spelled(displaced)}", file=sys.stderr)
    return 0


def _write(path: str, text: str) -> None:
    data = text.encode()
    write_file(path, data)
    print(f"wrote {path} ({len(data):,} bytes)", file=sys.stderr)


def _compare(arguments: argparse.Namespace) -> int:
    """Run a scenario with many values and seeds, and print how each workload fares."""
    several, seeds = "--vary" if arguments.vary else "--seeds", arguments.seeds or "1"
    for name in _OF_ONE_RUN:
        if getattr(arguments, {"from": "origin", "what-if": "what_if"}.get(name, name)) not in (None, [], ()):
            fix = f"give --vary one value, or leave out {several}"
            raise InvalidOption(f"--{name} and {several} cannot be combined", fix=fix)
    if arguments.output == "jsonl":
        what = f"the journal is that of one run, {several} makes many"
        raise InvalidOption(what, where="-o jsonl", fix="-o text, json or csv")
    if not seeds.isdecimal():
        fix = "a whole number, for example 20"
        raise InvalidOption(f"{seeds!r} is not a number of seeds", where="--seeds", fix=fix)
    scenario_argument(arguments.scenario, "simulate")  # what is wrong is said once here
    found = sweep(
        arguments.scenario,
        arguments.vary,
        seeds=int(seeds),
        hold_placement=arguments.hold_placement,
        progress=progress_line("run"),
        say=lambda text: print(spelled(text), file=sys.stderr),
    )
    emit(found, arguments, variations.table, variations.csv_table)
    return 0
