"""Write down a live cluster at this moment, for every command to take with --snapshot.

Read, never written: nodes, pods, workloads, LimitRanges, quotas, priority and runtime classes, disruption budgets,
autoscalers, Services, Ingresses and the Events that tell why something died; what kubelets measured, and their
settings (by way of the API server, which needs the right to get nodes/proxy; else usage is what metrics.k8s.io says).
What may not be read is left out and said.

Only what answers rest on is kept: no environment, command, arguments, managedFields, Secrets or ConfigMaps, and of
annotations only those podqos reads. --anonymize replaces all names, the same one everywhere.

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
