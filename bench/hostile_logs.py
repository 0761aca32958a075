"""Logs that nobody wrote for ``podqos autopsy``: one line without end, of the kinds that cost most to read."""

from __future__ import annotations

# ruff: noqa: E501 - lines as they are logged
HOSTILE = {
    "prose": "the kernel says Killed process 12 (java) when out of memory: Killed process strikes\n",
    "invocations": "java invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0\n",
    "kills": "Out of memory: Killed process 102 (java) total-vm:8kB, anon-rss:4kB, file-rss:0kB, shmem-rss:0kB, UID:0 pgtables:4kB oom_score_adj:0\n",
    "summaries": "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=x,mems_allowed=0,oom_memcg=/a,task_memcg=/a/b,task=x,pid=7,uid=0\n",
    "headers": "[  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name oom-kill\n",
    "json": '{"message": "invoked oom-killer: gfp_mask=0x1 {{{{", "a": [[[[[[1]]]]]]}\n',
    "broken json": '{"message": "oom-kill {"a": [[[[\n',
    "heaps": "2026-11-18 09:00:01 ERROR c.e.App - failed: java.lang.OutOfMemoryError: Metaspace\n",
    "evictions": 'I1116 10:00:00.4 1234 eviction_manager.go:577] "Eviction manager: pod is evicted successfully" pod="shop/web-0"\n',
    "systemd-oomd": "Jul 22 08:34:22 host systemd-oomd[6]: Killed /a due to memory pressure for /b being 61.30% > 50.00% for > 20s with reclaim activity\n",
    "pods": "web-0   0/1     OOMKilled   3 (5m ago)    2d    10.0.0.7     worker-1\n",
    "brackets": "[[[[[[ oom-kill ((((((\n",
    "no line end": "oom-kill ",
}
