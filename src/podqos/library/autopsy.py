"""Why processes were killed and pods evicted, by logs: read as a stream, in the memory of a few chunks and reports."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Unpack

from msgspec.structs import replace

from podqos.answers.autopsy import AutopsyKeywords, AutopsyRequest, autopsies, autopsy_of
from podqos.objects.cluster_snapshot import ClusterSnapshot
from podqos.objects.files import Inputs
from podqos.objects.objects import Objects
from podqos.reading.autopsy_inputs import what_is_given
from podqos.reading.live_log import follow, growing
from podqos.reading.logs import Log, opened
from podqos.survival.autopsy.autopsy import Autopsies, Examiner

_NOTHING_KNOWN = AutopsyRequest()


def autopsy(paths: Iterable[str | Log], **known: Unpack[AutopsyKeywords]) -> Autopsies:
    """Return every OOM and eviction in logs of the kernel, of kubelets and of podqos; ``-`` is standard input.

    ``objects`` hold the pods, nodes and events of the cluster, or ``cluster`` does. ``most_shown`` rows of each ranking
    are kept. ``kubelet`` says what the node reserves and when it evicts; ``growth_bytes_per_second``, how fast memory
    was used up, says which threshold would have saved a victim. Raises InputError for a log that cannot be read.
    """
    logs, request = list(paths), AutopsyRequest(**known)
    if not request.read.is_given:
        request = replace(request, read=what_is_given(Inputs([]), logs))
    return autopsies(map(opened, logs), request)


def live_autopsy(
    path: str | None,
    request: AutopsyRequest = _NOTHING_KNOWN,
    *,
    known: Callable[[], ClusterSnapshot | Objects | None] = lambda: None,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Autopsies]:
    """Yield OOMs as they happen, by the log of this machine or a file that grows.

    ``known`` returns what is known of the cluster at that moment. ``say`` is told what is followed, and what is lost.
    Raises HostError where there is no right to read the log.
    """
    examiner = Examiner(request.most_shown)
    with growing(path, say) as log:
        say(f"following {path or 'the kernel log of this machine'}")
        for report in follow(log, say):
            now = known()
            cluster, objects = (now, None) if isinstance(now, ClusterSnapshot) else (None, now)
            yield autopsy_of(report, examiner, replace(request, cluster=cluster, objects=objects))
