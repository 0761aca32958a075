"""Explain the pods of files, as ``podqos explain`` needs it.

All cores work where that pays, and of a large list no more than a line per container is kept.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING

from msgspec import Struct
from msgspec.structs import replace

from podqos.answers.explain import (
    AUTOSCALERS,
    COUNTED_ELSEWHERE,
    Detail,
    Explained,
    ExplainedNodes,
    ExplainOptions,
    explain_objects,
    explanation_list,
    further_assumptions,
    holders_among,
    nodes_among,
    together,
)
from podqos.controls import cell
from podqos.library.parallel import are_worth_forking
from podqos.model.assumption import Assumption
from podqos.model.pod import QOSClass
from podqos.objects.assumptions import policy_scopes, scoped_policies
from podqos.objects.contents import TakenFile
from podqos.objects.files import STDIN, InputFile, Inputs
from podqos.objects.objects import Objects
from podqos.objects.sources import Source
from podqos.objects.spreading import Progress, one_by_one
from podqos.reading.files import with_data
from podqos.reading.loading import LoadRequest, load_all, objects_of, read_sources
from podqos.survival.node.decision import ExplainSettings, PodDecision, decide

if TYPE_CHECKING:
    from podqos.answers.explanation import ExplanationList
    from podqos.reading.large_list import ListPart

_LARGEST_PIECE = 32  # files that are explained together
_KIND_COUNTED_ELSEWHERE = re.compile(rf"""kind["']?\s*:\s*["']?(?:{"|".join(COUNTED_ELSEWHERE)})""".encode())


class ExplainedFiles(Struct, frozen=True):
    """What files gave."""

    explained: Explained
    settings: ExplainSettings
    """The node of pods that are bound to none."""
    assumptions: tuple[Assumption, ...]
    rows: tuple[str, ...] = ()
    """With ``Detail.DECISIONS``: the lines of ``-o csv``, which is for many pods."""

    def whole(self) -> ExplanationList:
        """Return the published answer."""
        return explanation_list(self.explained, self.settings, self.assumptions)


class _Piece(Struct, frozen=True):
    """What some of the files gave."""

    explained: Explained
    rows: str = ""


def explain_files(
    inputs: Inputs,
    options: ExplainOptions,
    request: LoadRequest,
    detail: Detail = Detail.NODE,
    progress: Progress | None = None,
) -> ExplainedFiles:
    """Explain the pods of files, in their order; all cores work where that pays."""
    files = inputs.files
    is_large = not request.policies and STDIN not in inputs.paths and are_worth_forking(inputs.paths)
    if is_large and len(files) == 1 and detail is Detail.DECISIONS and not inputs.problems and not request.selection:
        nodes = options.nodes()
        parts = _explained_parts(files[0].path, nodes.settings)
        if parts:
            around = objects_of((), request)
            return _explained_files(parts, nodes, around, nodes.assumptions)
    if is_large and len(files) > 1:
        return _ManyFiles(inputs, options, request, detail, progress).explained_files()
    objects = load_all((inputs,), request, partial(one_by_one, progress=progress))
    bound = {found.workload.pod.spec.node_name for found in objects.workloads if objects.takes(found)}
    nodes = options.nodes(nodes_among(objects)).about(bound)
    objects.check_policies()
    objects.check_kubelets()
    assumptions = (*nodes.assumptions, *policy_scopes(objects))
    explained = replace(explain_objects(objects, nodes, detail), unjudged=tuple(objects.unjudged))
    return _explained_files([_piece(explained)], nodes, objects, assumptions)


def _explained_files(
    pieces: Sequence[_Piece], nodes: ExplainedNodes, around: Objects, assumptions: tuple[Assumption, ...]
) -> ExplainedFiles:
    """Put together what files gave; ``around`` has their policies."""
    explained = together([piece.explained for piece in pieces])
    assumptions += further_assumptions(explained, around)
    return ExplainedFiles(explained, nodes.settings, assumptions, tuple(piece.rows for piece in pieces))


def _piece(explained: Explained) -> _Piece:
    """Return what was explained, with lines in place of decisions."""
    return _Piece(replace(explained, decisions=()), _rows(explained.decisions))


class _ManyFiles:
    """Explains files several at a time.

    Policies and Nodes count for the pods of other files, too, so these come first: the files that name such a kind.
    What a search misses, such as a kind behind an anchor, is found in the answer, and then all is explained again.
    """

    def __init__(
        self,
        inputs: Inputs,
        options: ExplainOptions,
        request: LoadRequest,
        detail: Detail,
        progress: Progress | None,
    ) -> None:
        from podqos.library.parallel import usable_cores

        self._inputs = inputs
        self._files = {file.path: file for file in inputs.files}
        self._cores = usable_cores()
        self._pieces = _pieces(list(self._files.values()), self._cores)
        self._options = options
        self._request = request
        self._detail = detail
        self._progress = progress

    def explained_files(self) -> ExplainedFiles:
        """Return what the files give."""
        holders = self._named_holders()
        while True:
            objects = self._objects(holders)
            nodes = self._options.nodes(nodes_among(objects))
            pieces = list(self._fan_out(nodes, objects))
            explained = [piece.explained for piece in pieces]
            found = {path for part in explained for path in part.holders}
            if found.issubset(holders):
                break
            holders = found
        objects.check_policies()
        objects.check_kubelets()
        if self._detail is not Detail.DECISIONS and _has_autoscalers(objects):
            from podqos.objects.autoscaling import Autoscalers

            Autoscalers(objects)  # notes what is wrong with them
        assumptions = nodes.assumptions
        if holders:
            assumptions += _scoped(objects, [path for part in explained for path in part.with_pods])
        about_all = _Piece(Explained(problems=tuple(objects.problems)))
        return _explained_files([about_all, *pieces], nodes, objects, assumptions)

    def _named_holders(self) -> set[str]:
        """Return the files that hold what counts for other files, as far as a search finds them."""
        from podqos.library.parallel import fan_out

        named = chain.from_iterable(fan_out(_with_kinds, self._pieces, self._cores))
        files = [self._files[path] for path in named]
        return {path for group in _groups(files, self._request) for path in holders_among(group)}

    def _objects(self, holders: Collection[str]) -> Objects:
        """Return what counts for the pods of several files."""
        sources = read_sources([file for file in self._files.values() if file.path in holders], self._request)
        return objects_of(map(TakenFile, sources), self._request, self._inputs.problems)

    def _fan_out(self, nodes: ExplainedNodes, objects: Objects) -> Iterator[_Piece]:
        """Yield what all pieces give, each with the policies and Nodes that apply to it."""
        from podqos.library.parallel import fan_out

        without, nowhere = self._options.nodes(), objects_of((), self._request)
        applies_to_all = (
            nodes.settings != without.settings
            or bool(nodes.by_name)
            or _has_autoscalers(objects)
            or any(found.is_policy and found.source.scope is None for found in objects.others)
        )

        def explained(files: Sequence[InputFile]) -> list[_Piece]:
            applies = applies_to_all or any(objects.scopes(file.path) for file in files)
            where, around = (nodes, objects) if applies else (without, nowhere)
            return [
                _piece(replace(explain_objects(group, where, self._detail, around), unjudged=tuple(group.unjudged)))
                for group in _groups(files, self._request)
            ]

        progress = self._progress and partial(_told_files, self._progress, self._pieces)
        return chain.from_iterable(fan_out(explained, self._pieces, self._cores, progress))


def _has_autoscalers(objects: Objects) -> bool:
    return any(found.other.kind in AUTOSCALERS for found in objects.others)


def _with_kinds(files: Iterable[InputFile]) -> list[str]:
    """Return the files that name a kind that counts for others, too."""
    texts = ((file.path, with_data(file).data) for file in files)
    return [path for path, data in texts if data is not None and _KIND_COUNTED_ELSEWHERE.search(data)]


def _scoped(objects: Objects, with_pods: Iterable[str]) -> tuple[Assumption, ...]:
    """Return which policies count for their own directory only, where that leaves a file with pods out."""
    paths = list(with_pods)
    limited = [
        source.path
        for source in objects.policy_sources()
        if source.path not in objects.alternatives and any(source.scope not in objects.scopes(path) for path in paths)
    ]
    return scoped_policies(limited, objects.alternatives)


def _pieces(files: Sequence[InputFile], workers: int) -> list[Sequence[InputFile]]:
    """Cut files into pieces: large, because each has its costs, but enough of them to keep all workers busy."""
    size = max(1, min(_LARGEST_PIECE, len(files) // (8 * workers)))
    return [files[start : start + size] for start in range(0, len(files), size)]


def _told_files(progress: Progress, pieces: Sequence[Sequence[InputFile]], done: int, _total: int) -> None:
    """Tell the progress in files instead of pieces."""
    progress(sum(map(len, pieces[:done])), sum(map(len, pieces)))


def _groups(files: Sequence[InputFile], request: LoadRequest) -> Iterator[Objects]:
    """Yield what some files hold together; but those with policies one by one, which may contradict each other."""
    alone = replace(request, stated=())
    groups: list[list[Source]] = []
    is_open = False  # whether the last group takes more files
    # All are opened first: system calls between the steps of reading would slow these down.
    for source in read_sources(list(map(with_data, files)), request):
        has_policies = source.reading.has_policies
        if has_policies or not is_open:
            groups.append([])
        is_open = not has_policies
        groups[-1].append(source)
    for group in groups:
        yield objects_of(map(TakenFile, group), alone)


def _explained_parts(path: str, settings: ExplainSettings) -> list[_Piece]:
    """Return what the parts of a large list give; nothing where the file has to be read as a whole."""
    from podqos.library.parallel import fan_out, usable_cores
    from podqos.reading.large_list import cut

    parts = cut(path, usable_cores())
    task: Callable[[ListPart], _Piece | None] = partial(_explain_part, settings=settings)
    explained = [piece for piece in fan_out(task, parts, len(parts)) if piece is not None]
    return explained if len(explained) == len(parts) else []


def _explain_part(part: ListPart, settings: ExplainSettings) -> _Piece | None:
    """Explain one part of a large list; None where the file has to be read as a whole."""
    from podqos.reading.large_list import read_part

    pods = read_part(part)
    if pods is None:
        return None
    decisions = [decide(pod, settings) for pod in pods]
    return _Piece(Explained(classes=Counter([decision.qos_class for decision in decisions])), _rows(decisions))


def _rows(decisions: Sequence[PodDecision]) -> str:
    """Return the lines of ``-o csv``."""
    lines = []
    for decision in decisions:
        metadata = decision.pod.metadata
        start = f"{metadata.namespace_or_default},{metadata.name or metadata.generate_name}"
        qos_class = decision.qos_class.value
        if decision.pod.is_windows:
            lines += [f"{start},{score.container},{qos_class},\n" for score in decision.oom_scores]
        else:
            lines += [f"{start},{score.container},{qos_class},{score.value}\n" for score in decision.oom_scores]
    text = "".join(lines)
    # Names in Kubernetes need no quotes; anything else shows here and goes through the csv module.
    if (
        '"' in text
        or "\r" in text
        or text.count(",") != 4 * len(lines)
        or text.count("\n") != len(lines)
        or _has_formulas(text)
    ):
        return _quoted_rows(decisions)
    return text


def _has_formulas(text: str) -> bool:
    """Whether a cell may begin like a formula; a score below zero does not count."""
    scores = sum(text.count(f",{qos_class},-") for qos_class in QOSClass)
    return (
        text.count(",-") != scores
        or any(f"{end}{start}" in text for end in ",\n" for start in "=+@\t")
        or "\n-" in text
        or text.startswith(tuple("=+-@\t"))
    )


def _quoted_rows(decisions: Sequence[PodDecision]) -> str:
    from csv import writer
    from io import StringIO

    text = StringIO()
    table = writer(text, lineterminator="\n")
    for decision in decisions:
        metadata = decision.pod.metadata
        namespace, name = metadata.namespace_or_default, metadata.name or metadata.generate_name
        for score in decision.oom_scores:
            value = "" if decision.pod.is_windows else score.value
            table.writerow(map(cell, (namespace, name, score.container, decision.qos_class.value, value)))
    return text.getvalue()
