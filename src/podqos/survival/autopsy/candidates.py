"""The tasks that the kernel had to choose from, ordered by its rule.

Most of a judgement is about all of them: the figures are columns, and a *place* is an index of theirs.
"""

from __future__ import annotations

from collections.abc import Sequence

from podqos.kernel.oom import badness_in, exempt_in
from podqos.kernel.oom_report import OOMReport
from podqos.kernel.task_table import Task

_ROOT_UID = 0


class Candidates:
    """Tasks in the order of their table, with what decides between them.

    The table does not say who has CAP_SYS_ADMIN; root usually does.
    """

    def __init__(self, report: OOMReport, tasks: Sequence[Task], page_bytes: int, total_pages: int) -> None:
        self.tasks = tasks
        self.total_pages = total_pages
        self.release = report.release
        self.pids = pids = [task.pid for task in tasks]
        self.scores = scores = [task.oom_score_adj for task in tasks]
        self.rss_pages = [task.rss_pages for task in tasks]
        self.swap_pages = [task.swap_pages or 0 for task in tasks]
        self.table_bytes = [
            (task.page_table_bytes or 0) if task.page_table_pages is None else task.page_table_pages * page_bytes
            for task in tasks
        ]
        columns = zip(self.rss_pages, self.swap_pages, self.table_bytes, strict=True)
        self.resident_bytes = [(rss + swap) * page_bytes + tables for rss, swap, tables in columns]
        """All three."""
        self.used_pages = [held // page_bytes for held in self.resident_bytes]
        self.privileged = [task.uid == _ROOT_UID for task in tasks]
        self.points = badness_in(report.release, total_pages, self.used_pages, scores, self.privileged)
        """Their badness."""
        self.chosen = self.place(report.chosen)
        """The place of the one that the kernel chose."""
        places = [*range(len(tasks))]
        if self.chosen is not None:
            # Of equals it comes first: which of them the kernel meets last the table does not say.
            places.insert(0, places.pop(self.chosen))
        places.sort(key=self.points.__getitem__, reverse=True)
        self.exempt = exempt = exempt_in(pids, scores)
        """Places of those that are never chosen."""
        self.killable = self.ranking = places
        """Places of the others, the highest badness first; in the ranking those that are exempt follow."""
        if exempt:
            self.killable = [place for place in places if place not in exempt]
            self.ranking = [*self.killable, *(place for place in places if place in exempt)]

        first = [place for place in self.killable[:2] if place != self.chosen]
        self.rival = first[0] if first else None
        """The killable one with the highest badness that was not chosen."""

    @property
    def others(self) -> list[int]:
        """The killable ones that were not chosen."""
        return [place for place in self.killable if place != self.chosen]

    def place(self, pid: int | None) -> int | None:
        """Return where a process is."""
        try:
            return None if pid is None else self.pids.index(pid)
        except ValueError:
            return None

    def unprivileged_points(self, place: int) -> int:
        """Return the badness of one if it has no CAP_SYS_ADMIN."""
        used, scores = self.used_pages[place], self.scores[place]
        return badness_in(self.release, self.total_pages, [used], [scores], [False])[0]
