"""The tasks that the kernel had to choose from, ordered by its rule.

Most of a judgement is about all of them: the figures are columns, and a *place* is an index of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import add

from podqos.kernel.oom import adjustments_in, is_exempt
from podqos.kernel.oom_report import OOMReport
from podqos.kernel.task_table import Task

_ROOT_UID = 0


class Candidates:
    """Tasks in the order of their table, with the two parts of their badness.

    The table does not say who has CAP_SYS_ADMIN; root usually does.
    """

    def __init__(self, report: OOMReport, tasks: Sequence[Task], page_bytes: int, total_pages: int) -> None:
        self.tasks = tasks
        self.total_pages = total_pages
        self._release = report.release
        self.pids = [task.pid for task in tasks]
        self.scores = [task.oom_score_adj for task in tasks]
        self.rss_pages = [task.rss_pages for task in tasks]
        self.swap_pages = [task.swap_pages or 0 for task in tasks]
        self.table_bytes = [
            (task.page_table_bytes or 0) if task.page_table_pages is None else task.page_table_pages * page_bytes
            for task in tasks
        ]
        self.used_pages = [
            rss + swap + tables // page_bytes
            for rss, swap, tables in zip(self.rss_pages, self.swap_pages, self.table_bytes, strict=True)
        ]
        privileged = (task.uid == _ROOT_UID for task in tasks)
        self.adjustment_pages = adjustments_in(report.release, total_pages, self.used_pages, self.scores, privileged)
        self.points = [*map(add, self.used_pages, self.adjustment_pages)]
        self.chosen = self.place(report.chosen)
        """The place of the one that the kernel chose."""
        places = [*range(len(tasks))]
        if self.chosen is not None:
            # Of equals it comes first: which of them the kernel meets last the table does not say.
            places.insert(0, places.pop(self.chosen))
        places.sort(key=self.points.__getitem__, reverse=True)
        exempt = [*map(is_exempt, self.pids, self.scores)]
        self.killable = [place for place in places if not exempt[place]]
        """Places, the highest badness first."""
        self.ranking = self.killable + [place for place in places if exempt[place]]
        self.others = [place for place in self.killable if place != self.chosen]
        """The killable ones that were not chosen."""

    def place(self, pid: int | None) -> int | None:
        """Return where a process is."""
        return self.pids.index(pid) if pid in self.pids else None

    def is_exempt(self, place: int) -> bool:
        """Whether one is never chosen."""
        return is_exempt(self.pids[place], self.scores[place])

    def unprivileged_points(self, place: int) -> int:
        """Return the badness of one if it has no CAP_SYS_ADMIN."""
        used = self.used_pages[place]
        return used + adjustments_in(self._release, self.total_pages, [used], [self.scores[place]], [False])[0]

    def highest_points(self, places: Sequence[int], used_pages: Sequence[int], scores: Sequence[int]) -> int:
        """Return the highest badness of some of them, had they used so much, with such scores."""
        privileged = (self.tasks[place].uid == _ROOT_UID for place in places)
        adjustments = adjustments_in(self._release, self.total_pages, used_pages, scores, privileged)
        return max([used + adjustment for used, adjustment in zip(used_pages, adjustments, strict=True)])
