"""``podqos autopsy`` on schedulers and platforms that enforce memory limits, and on servers' own limits."""

from __future__ import annotations

import pytest

MIB, GIB = 1 << 20, 1 << 30
HEADER = "Nov 18 09:00:01 worker-1"


RAY = (
    "ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.",
    (
        "Memory on the node (IP: 10.0.0.7, ID: abc) where the task (task ID: ff01, name=train, pid=4711, "
        "memory used=3.50GB) was running was 15.00GB / 16.00GB (0.94), which exceeds the memory usage threshold of 0.9."
    ),
)
REPORT = (
    "REPORT RequestId: 0123\tDuration: 4000 ms\tMemory Size: 128 MB\tMax Memory Used: 127 MB\tStatus: error\t"
    "Error Type: Runtime.OutOfMemory"
)
KILLS = {
    RAY: ("ray", "lowMemory", {"victim": "train", "pid": 4711, "rssBytes": 7 * GIB // 2, "memoryTotalBytes": 16 * GIB}),
    ("(raylet) 2 Workers (tasks / actors) killed due to memory pressure (OOM), 0 Workers crashed",): (
        "ray",
        "lowMemory",
        {"processes": 2},
    ),
    ("distributed.nanny - WARNING - Worker tcp://10.0.0.7:4000 (pid=4711) exceeded 95% memory budget. Restarting",): (
        "dask",
        "limit",
        {"victim": "tcp://10.0.0.7:4000", "pid": 4711},
    ),
    ("heroku[web.1]: Error R15 (Memory quota vastly exceeded)",): ("heroku", "limit", {}),
    ("Memory limit of 512 MiB exceeded with 531 MiB used. Consider increasing the memory limit",): (
        "cloud-run",
        "limit",
        {"limitBytes": 512 * MIB, "rssBytes": 531 * MIB},
    ),
    ("The container instance was found to be using too much memory and was terminated. This is likely",): (
        "cloud-run",
        "limit",
        {},
    ),
    ("Exceeded soft memory limit of 256 MB with 260 MB after servicing 3 requests total. Consider more",): (
        "app-engine",
        "limit",
        {"limitBytes": 256 * MIB, "rssBytes": 260 * MIB},
    ),
    (REPORT,): ("lambda", "limit", {"limitBytes": 128 * MIB, "rssBytes": 127 * MIB}),
    ("==> Ran out of memory (used over 512MB) while running your code.",): (
        "render",
        "limit",
        {"limitBytes": 512 * MIB},
    ),
    ('At least one "Out of Memory" ("OOM") event was detected during the build.',): ("vercel", "limit", {}),
    ("Container 'docker' exceeded memory limit.",): ("bitbucket", "limit", {"victim": "docker"}),
    ("Memory limit exceeded: Requested: 160MB Maximum Used: 161MB",): (
        "mesos",
        "limit",
        {"limitBytes": 160 * MIB, "rssBytes": 161 * MIB},
    ),
    ("=>> PBS: job killed: mem 4194308kb exceeded limit 4194304kb",): ("pbs", "limit", {"limitBytes": 4 * GIB}),
    ("TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.",): ("lsf", "limit", {}),
    ("Error from slot1@box: Docker job has gone over memory limit of 2048 Mb",): (
        "htcondor",
        "limit",
        {"limitBytes": 2 * GIB},
    ),
    ("slurmstepd: error: Job 4711 exceeded memory limit (4200000 > 4194304), being killed",): (
        "slurm",
        "limit",
        {"victim": "Job 4711", "limitBytes": 4 * GIB},
    ),
}
BY_PLATFORMS = {"heroku", "cloud-run", "app-engine", "lambda", "render", "vercel", "bitbucket", "mesos", "htcondor"}


@pytest.mark.parametrize("lines", KILLS)
def test_who_ended_a_job_for_its_memory_is_named_with_its_limit(told, lines):
    killer, basis, known = KILLS[lines]
    found = told(*lines)
    (kill,) = found["userspaceKills"]
    assert (kill["killer"], kill["basis"]) == (killer, basis)
    assert {name: kill.get(name) for name in known} == known
    assert not any(found[kind] for kind in ("kills", "evictions", "terminations", "programFailures"))
    said = told(*lines, output="text")
    assert said.startswith("Not the kernel: ") is (killer not in BY_PLATFORMS)
    assert "  setting " in said


@pytest.mark.parametrize(
    "line",
    [
        "Task was killed due to the node running low on memory",
        "If you see `Error R15 (Memory quota vastly exceeded)`, use a larger dyno.",
        'throw new Error("Memory limit of " + limit + " exceeded")',
        "Memory limit of %d MiB exceeded with %d MiB used. Consider increasing the memory limit",
        "Container '%s' exceeded memory limit.",
        "A worker that exceeded 95% memory budget is restarted.",
        "REPORT RequestId: 0123 Memory Size: 128 MB Max Memory Used: 128 MB",
        "TERM_MEMLIMIT is shown by bhist",
        "Job exceeded memory limit (see the manual), being killed",
    ],
)
def test_manuals_and_source_code_about_limits_tell_of_no_kill(told, line):
    assert not told(line)["userspaceKills"]


FAILURES = {
    "[parent] Data too large, data for [<http_request>] would be [1030000000/982mb], which is larger than the limit of "
    "[986000000/940mb], real usage: [1029000000/981mb]": (
        "Elasticsearch",
        {"wantedBytes": 1030000000, "limitBytes": 986000000},
    ),
    "DB::Exception: Memory limit (for query) exceeded: would use 9.50 GiB (attempt to allocate chunk of 4194304 "
    "bytes), maximum: 9.00 GiB: While executing X. (MEMORY_LIMIT_EXCEEDED)": ("ClickHouse", {"limitBytes": 9 * GIB}),
    "DB::Exception: (total) memory limit exceeded: would use 9.50 GiB (attempt to allocate chunk of 0 bytes), current "
    "RSS 8.9 GiB, maximum: 9.00 GiB.": ("ClickHouse", {"limitBytes": 9 * GIB}),
    "Query failed: Query exceeded per-node memory limit of 2GB [Allocated: 1.9GB]": ("Trino", {"limitBytes": 2 * GIB}),
    "Query killed because the cluster is out of memory. Please try again in a few minutes.": ("Trino", {}),
    "memory resource limit alarm set on node rabbit@a.": ("RabbitMQ", {}),
    "vm_memory_high_watermark set. Memory used:1700000000 allowed:1600000000": ("RabbitMQ", {"limitBytes": 1600000000}),
    'eheap_alloc: Cannot allocate 1318267840 bytes of memory (of type "heap").': (
        "Erlang",
        {"wantedBytes": 1318267840},
    ),
    "Exceeded memory limit for $group, but didn't allow external sort. Pass allowDiskUse:true": ("MongoDB", {}),
    "ORA-04030: out of process memory when trying to allocate 65560 bytes (x,y)": ("Oracle", {"wantedBytes": 65560}),
    "ORA-04031: unable to allocate 4160 bytes of shared memory": ("Oracle", {"wantedBytes": 4160}),
    "There is insufficient system memory in resource pool 'default' to run this query.": ("SQLServer", {}),
    "ERROR 1037 (HY001): Out of memory; restart server and try again (needed 65535 bytes)": ("MySQL", {}),
    "Out of memory; check if mysqld or some other process uses all available memory; if not": ("MySQL", {}),
    "SERVER_ERROR out of memory storing object": ("Memcached", {}),
    "Error: cannot allocate vector of size 1.5 Gb": ("R", {"wantedBytes": 3 * GIB // 2}),
    "heroku[web.1]: Error R14 (Memory quota exceeded)": ("HerokuQuota", {}),
}


@pytest.mark.parametrize("line", FAILURES)
def test_a_server_that_reached_a_limit_of_its_own_was_not_killed(told, line):
    kind, known = FAILURES[line]
    for before in ("", f"{HEADER} app[12]: "):
        found = told(before + line)
        (failure,) = found["programFailures"]
        assert failure["kind"] == kind
        assert {name: failure.get(name) for name in known} == known
        assert not any(found[others] for others in ("kills", "evictions", "terminations", "userspaceKills"))
    assert told(line, output="text").startswith("Not the kernel: ")


@pytest.mark.parametrize(
    "line",
    [
        "The circuit breaker rejects requests with Data too large.",
        "ORA-04030 means that the process ran out of memory.",
        "set vm_memory_high_watermark to 0.4",
        "A query that exceeded memory limits is killed because the cluster is out of memory",
        "cannot allocate vectors in shared memory",
        "R14 memory errors are shown by Heroku",
        'raise MemoryLimitExceeded("Memory limit exceeded: would use too much")',
    ],
)
def test_manuals_about_limits_of_servers_tell_of_no_failure(told, line):
    assert not told(line)["programFailures"]
