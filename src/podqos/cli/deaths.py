"""What is given to commands about deaths: logs, files with pods, nodes and events, a cluster, the name of a pod."""

from __future__ import annotations

import argparse
import os
import re
import sys
from typing import TYPE_CHECKING, TypedDict

from msgspec.structs import replace

from podqos.cli import options
from podqos.cli.cluster import arguments_name_cluster, check_name_of_cluster, cluster_of, profile_of
from podqos.cli.inputs import read_objects
from podqos.cli.progress import progress_line
from podqos.errors import InvalidOption
from podqos.logs.said import WhatWasRead
from podqos.model.profile import Profile
from podqos.objects.files import STDIN, Inputs
from podqos.objects.kubelet_node import Kubelet
from podqos.objects.objects import Objects
from podqos.questions.autopsy_oom import MOST_SHOWN
from podqos.reading.autopsy_inputs import is_text, read_file, told_apart, what_is_given
from podqos.reading.files import NO_RENDERING
from podqos.reading.gathering import gather
from podqos.reading.logs import Log

if TYPE_CHECKING:
    from podqos.objects.cluster_snapshot import ClusterSnapshot

_POD = re.compile(r"(?:pods?/)?([a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?)")
_GUIDE = """\
podqos autopsy explains OOM kills and evictions from whatever you have:

  from the cluster, read only      podqos autopsy -n NAMESPACE POD
                                   podqos autopsy -A
  kubectl's output                 kubectl get pods,nodes,events -A -o json | podqos autopsy -
                                   kubectl describe pod -n NAMESPACE POD | podqos autopsy -
  this machine's kernel log        sudo dmesg | podqos autopsy -
                                   journalctl -k --since=-2h -o short-iso | podqos autopsy -
  a file                           podqos autopsy kern.log pods.yaml
  the clipboard                    podqos autopsy -        paste, then Ctrl-D

A kernel log says what ran out of memory and why that process was killed. Pods, nodes and events
add names, limits and evictions. Give both if you can.
"""


class AskedOptions(TypedDict):
    """What an autopsy is asked to assume."""

    most_shown: int
    kubelet: Kubelet | None
    growth_bytes_per_second: int | None
    profile: Profile


def asked_options(arguments: argparse.Namespace) -> AskedOptions:
    """Return what options say of the node, and how much to show."""
    return AskedOptions(
        most_shown=MOST_SHOWN if arguments.top is None else arguments.top,
        kubelet=options.kubelet_option(arguments.kubelet_config, arguments.kubernetes_version),
        growth_bytes_per_second=arguments.growth,
        profile=profile_of(arguments),
    )


def inputs_of_deaths(
    arguments: argparse.Namespace, pod: str
) -> tuple[list[str | Log], Objects | None, ClusterSnapshot | None, WhatWasRead]:
    """Return logs, objects or a cluster, and where they come from."""
    if [*arguments.logs, *arguments.filename].count(STDIN) > 1:
        raise InvalidOption("standard input can be read only once", fix="give - once")
    texts = [given for given in arguments.filename if is_text(given)]
    arguments.logs = [*arguments.logs, *texts]
    arguments.filename = [given for given in arguments.filename if given not in texts]
    arguments.files = [*arguments.logs, *arguments.filename]
    if not (arguments.files or arguments_name_cluster(arguments)):
        print(_GUIDE, file=sys.stderr)
        is_piped = sys.stdin is not None and not sys.stdin.closed and not sys.stdin.isatty()
        fix = "for example: dmesg | podqos autopsy - or podqos autopsy -n shop db-0"
        raise InvalidOption("no log and no pod given", fix="- reads standard input; " + fix if is_piped else fix)
    if STDIN in arguments.files and sys.stdin.isatty():
        print("podqos: paste a log or the output of kubectl, then press Ctrl-D", file=sys.stderr)
    found, logs = told_apart(arguments.logs)
    cluster, of_nodes = scene_of(arguments, pod)
    files = object_files(arguments, Inputs(found))
    is_live = arguments_name_cluster(arguments) and arguments.snapshot is None
    objects = objects_of(files, cluster)
    read = replace(
        what_is_given(files, logs),
        snapshot=arguments.snapshot or "",
        cluster=arguments.cluster.source if is_live else "",
        context=arguments.context or "",
    )
    return [*logs, *of_nodes], objects, cluster, read


def asked_pod(arguments: argparse.Namespace) -> str:
    """Treat an argument that is not a file as the name of a pod, and return it; empty if there is none."""
    names_cluster = arguments_name_cluster(arguments)
    found = []
    for given in arguments.logs:
        named = None if given == STDIN or os.path.exists(given) else _POD.fullmatch(given)
        # A name with a dot may be a pod's, and is more likely a file that is not there.
        if named is not None and (names_cluster or given.startswith(("pod/", "pods/")) or "." not in given):
            found.append((given, named[1]))
    if len(found) > 1:
        raise InvalidOption(f"two pods: {found[0][0]} and {found[1][0]}", fix="give one")
    if not found:
        return ""
    arguments.logs = [log for log in arguments.logs if log != found[0][0]]
    if not (arguments.logs or arguments.filename):
        check_name_of_cluster(arguments, found[0][0], "pod")
        arguments.objects = [("pod", found[0][1])]
    return found[0][1]


def scene_of(arguments: argparse.Namespace, pod: str = "") -> tuple[ClusterSnapshot | None, list[Log]]:
    """Return the cluster that the options name, and logs of its nodes; of a live cluster, only what explains deaths."""
    if not arguments_name_cluster(arguments):
        return None, []
    if arguments.snapshot is not None:
        return cluster_of(arguments), []
    from podqos.cluster.cluster import connect
    from podqos.reading.cluster_autopsy import scene_of_deaths

    with connect(arguments.context, kubeconfig=arguments.kubeconfig) as cluster:
        inside = arguments.namespace or ("" if arguments.all_namespaces else cluster.namespace)
        if pod:
            arguments.namespace = inside
        arguments.cluster, logs = scene_of_deaths(cluster, inside, pod, progress=progress_line("querying kubelet"))
        return arguments.cluster, logs


def object_files(arguments: argparse.Namespace, found: Inputs) -> Inputs:
    """Return the files with objects, read: those that an option names, and those found among the arguments."""
    given = gather(arguments.filename, NO_RENDERING) if arguments.filename else Inputs([])
    return Inputs([*map(read_file, given.files), *found.files], given.problems)


def objects_of(files: Inputs, cluster: ClusterSnapshot | None) -> Objects | None:
    """Return the objects of the files or of the cluster, or None."""
    if cluster is not None:
        if files.files:
            raise InvalidOption("files with pods and a cluster cannot be combined", fix="give one of them")
        return cluster.objects
    return read_objects(files, full_statuses=True) if files.files else None
