"""Save a live cluster to a file, which every command reads with --snapshot.

Reads, and never changes: nodes, pods, workloads, LimitRanges, quotas, priority and runtime classes, disruption
budgets, autoscalers, Services, Ingresses and the Events that say why something died. Usage and kubelet settings come
from the kubelets, through the API server (which needs permission to get nodes/proxy), or else usage comes from
metrics.k8s.io. Anything podqos has no permission to read is left out, with a note.

Only what answers depend on is saved: no environment variables, commands, arguments, managedFields, Secrets or
ConfigMaps, and only the annotations that podqos reads. --anonymize replaces every name, consistently.

  podqos snapshot -o cluster.json.gz
  podqos snapshot --context prod --anonymize -o - | gzip > cluster.json.gz
"""

from __future__ import annotations

import argparse
import sys

from podqos.cli.cluster import add_live_options
from podqos.cli.output import say_assumptions
from podqos.cli.progress import progress_line
from podqos.cluster.cluster import connect
from podqos.model.assumption import Assumption
from podqos.objects.cluster_snapshot import noting_missing
from podqos.reading.cluster_part import Part
from podqos.reading.live_cluster import snapshot_lines
from podqos.reading.snapshot_files import write_snapshot


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options of ``podqos snapshot``."""
    add_live_options(parser)
    about = "only the pods and workloads of this namespace (default: all)"
    parser.add_argument("-n", "--namespace", metavar="NAME", default="", help=about)
    parser.add_argument("--node", metavar="NAME", default="", help="only this node and its pods")
    parser.add_argument("--no-usage", action="store_true", help="do not query kubelets")
    parser.add_argument("--anonymize", action="store_true", help="replace every name, consistently")
    about = "file to write, gzipped if the name ends in .gz; - for standard output (default: cluster.json.gz)"
    parser.add_argument("-o", "--output", metavar="FILE", default="cluster.json.gz", help=about)


def run(arguments: argparse.Namespace) -> int:
    """Read the cluster, write the file, and return the exit code."""
    part = Part(namespace=arguments.namespace, node=arguments.node, usage=not arguments.no_usage, events=True)
    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        lines = snapshot_lines(cluster, part, anonymous=arguments.anonymize, progress=progress_line("querying kubelet"))
        missing: list[Assumption] = []
        if arguments.output == "-":
            sys.stdout.buffer.writelines(line + b"\n" for line in noting_missing(lines, missing))
        else:
            write_snapshot(noting_missing(lines, missing), arguments.output)
            print(f"wrote {arguments.output}", file=sys.stderr)
    say_assumptions(missing)
    return 0
