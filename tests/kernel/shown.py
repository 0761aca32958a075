"""What /proc/PID/oom_score should show, for tests that hold it against a real one."""

from __future__ import annotations

from podqos.kernel.oom import Process, badness, shown_oom_score


def shown_for(oom_score_adj: int, used_pages: int, total_pages: int) -> int:
    """Return the score of a process with this adjustment that uses so many pages."""
    process = Process(pid=2, cgroup="/", rss_pages=used_pages, oom_score_adj=oom_score_adj)
    return shown_oom_score(badness(process, total_pages), total_pages)
