"""CronJobs, worked by hand from Kubernetes v1.36.4 pkg/controller/cronjob and robfig/cron v3; with the working.

The controller looks 100 ms after a time of the schedule (nextScheduleDelta), and at once when a Job has ended. A run of
n seconds that begins at t ends at t + n, is noticed at the next full second and counted a second later.
"""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from podqos.cli.main import main
from podqos.errors import InputError
from podqos.model.cron_schedule import parse_schedule
from podqos.model.time_units import SECOND_US
from podqos.qos.cgroup_settings import CgroupVersion
from podqos.reading.scenario_files import load_scenario, read_scenario
from podqos.rehearsal import on_this_machine, unrehearsable
from podqos.sim.run import simulate
from podqos.sim.scenario.due import zone_named
from podqos.text.journal import line

MINUTE_0 = 946_684_800 // 60
"""2000-01-01T00:00:00Z in minutes since 1970, of which Jobs have their names."""


def written(
    tmp_path: Path,
    *cron: str,
    after: int | None = 20,
    spec: str = "",
    job: str = "{}",
    workload: str = "",
    code: int = 0,
) -> str:
    """Write a scenario of a CronJob whose containers run for some seconds; return its path."""
    lines = "\n".join(f"  {field}" for field in cron)
    (tmp_path / "cron.yaml").write_text(f"""\
apiVersion: batch/v1
kind: CronJob
metadata: {{name: tidy}}
spec:
{lines}
  jobTemplate:
    spec:
      backoffLimit: 0
{job if job != "{}" else ""}
      template:
        spec:
          restartPolicy: Never
          containers: [{{name: main, image: main, resources: {{requests: {{memory: 100Mi}}}}}}]
""")
    exits = "" if after is None else f", exits: {{after: {after}s, code: {code}}}"
    (tmp_path / "scenario.yaml").write_text(f"""\
apiVersion: podqos.dev/v1alpha1
kind: Scenario
metadata: {{name: test}}
spec:
  {spec or "duration: 5m"}
  manifests: [cron.yaml]
  nodes: [{{name: node-a, capacity: {{cpu: 8, memory: 8Gi}}, filesystems: {{nodefs: {{capacity: 100Gi}}}}}}]
  workloads:
    - workload: tidy
      demand: {{memory: 50Mi{exits}}}
      {workload}
""")
    return str(tmp_path / "scenario.yaml")


def ran(path: str):
    """Return the run of a scenario, with all checkers."""
    return simulate(load_scenario(path), check=True)


def at(done, *kinds: str) -> list[tuple[float, str, str]]:
    """Return time, kind and pod of entries; of those without a pod the Job, or the reason."""
    found = []
    for entry in done.entries:
        if entry.kind in kinds:
            what = entry.pod or getattr(entry.because, "job", "") or entry.because.reason
            found.append((entry.time_us / SECOND_US, entry.kind.value, what.rpartition("/")[2]))
    return found


def created(done) -> list[float]:
    """Return when Jobs are created."""
    return [time for time, _, _ in at(done, "JobCreated")]


# ---- runs ------------------------------------------------------------------------------------------------------------


def test_a_cron_job_creates_a_job_for_every_time_of_its_schedule_named_by_the_minute(tmp_path):
    """Every second minute from 00:00 on: 120.1 and 240.1 s. The time of creation itself is not one of them (Next)."""
    done = ran(written(tmp_path, 'schedule: "*/2 * * * *"'))
    assert at(done, "JobCreated") == [
        (120.1, "JobCreated", f"tidy-{MINUTE_0 + 2}"),
        (240.1, "JobCreated", f"tidy-{MINUTE_0 + 4}"),
    ]
    assert at(done, "Started") == [
        (120.1, "Started", f"tidy-{MINUTE_0 + 2}-0"),
        (240.1, "Started", f"tidy-{MINUTE_0 + 4}-0"),
    ]
    # 120.1 + 20 = 140.1, noticed at 141, counted at 142.
    assert at(done, "JobComplete")[0] == (142, "JobComplete", f"tidy-{MINUTE_0 + 2}")
    (first, *_) = (entry for entry in done.entries if entry.kind == "JobCreated")
    assert line(first) == f"CronJob tidy creates Job tidy-{MINUTE_0 + 2} for 2000-01-01T00:02:00Z"


def test_allow_lets_jobs_of_90_seconds_overlap(tmp_path):
    done = ran(written(tmp_path, 'schedule: "* * * * *"', after=90))
    assert created(done) == [60.1, 120.1, 180.1, 240.1]
    assert not at(done, "JobSkipped", "Deleted")


def test_forbid_skips_a_run_and_makes_up_for_it_when_the_job_has_ended(tmp_path):
    """60.1 + 90 = 150.1, noticed 151, Complete 152.

    The run of 120 was skipped at 120.1; at 152 it is the most recent one that was missed (mostRecentScheduleTime) and
    starts 32 s late. 152 + 90 = 242, noticed 243, Complete 244: of 180 and 240, both missed, the later starts.
    """
    done = ran(written(tmp_path, 'schedule: "* * * * *"', "concurrencyPolicy: Forbid", after=90))
    assert at(done, "JobCreated") == [
        (60.1, "JobCreated", f"tidy-{MINUTE_0 + 1}"),
        (152, "JobCreated", f"tidy-{MINUTE_0 + 2}"),
        (244, "JobCreated", f"tidy-{MINUTE_0 + 4}"),
    ]
    assert [time for time, _, _ in at(done, "JobSkipped")] == [120.1, 180.1, 240.1]
    late = [entry.because.late_seconds for entry in done.entries if entry.kind == "JobCreated"]
    assert late == [0, 32, 4]
    skipped = next(entry for entry in done.entries if entry.kind == "JobSkipped")
    words = f"CronJob tidy skips the run of 2000-01-01T00:02:00Z: tidy-{MINUTE_0 + 1} still active"
    assert line(skipped) == f"{words} (concurrencyPolicy: Forbid)"


def test_replace_deletes_the_job_that_still_runs(tmp_path):
    """60.1 + 90 would be 150.1; at 120.1 it is deleted, and the next one starts."""
    done = ran(written(tmp_path, 'schedule: "* * * * *"', "concurrencyPolicy: Replace", after=90))
    assert created(done) == [60.1, 120.1, 180.1, 240.1]
    assert at(done, "Deleted") == [
        (120.1, "Deleted", f"tidy-{MINUTE_0 + 1}-0"),
        (180.1, "Deleted", f"tidy-{MINUTE_0 + 2}-0"),
        (240.1, "Deleted", f"tidy-{MINUTE_0 + 3}-0"),
    ]
    assert not at(done, "JobComplete")


def test_a_suspended_cron_job_creates_nothing_and_that_is_said(tmp_path):
    path = written(tmp_path, 'schedule: "* * * * *"', "suspend: true")
    assert not ran(path).entries
    assert [problem.what for problem in read_scenario(path).problems] == [
        "CronJob default/tidy is suspended: it has no pods"
    ]


def test_jobs_of_a_cron_job_obey_their_own_limits(tmp_path):
    """With activeDeadlineSeconds 30 in the template: created at 60.1, deleted at 90.1, Failed at 91.1."""
    done = ran(written(tmp_path, 'schedule: "1 * * * *"', after=None, job="      activeDeadlineSeconds: 30"))
    assert at(done, "Deleted", "JobFailed") == [
        (90.1, "Deleted", f"tidy-{MINUTE_0 + 1}-0"),
        (91.1, "JobFailed", f"tidy-{MINUTE_0 + 1}"),
    ]


def test_a_start_in_the_middle_of_the_day_and_a_time_zone(tmp_path):
    """23:58 in UTC is 00:58 in Berlin in winter: "0 1 * * *" is due after 120 s."""
    cron = ('schedule: "0 1 * * *"', "timeZone: Europe/Berlin")
    path = written(
        tmp_path, *cron, spec="{start: 2026-11-14T23:58:00Z, duration: 5m}".strip("{}").replace(", ", "\n  ")
    )
    done = ran(path)
    assert created(done) == [120.1]
    assert [entry.because.scheduled for entry in done.entries if entry.kind == "JobCreated"] == ["2026-11-15T00:00:00Z"]


def test_pods_of_a_cron_job_belong_to_its_row_of_the_summary(tmp_path, capsys):
    assert main(["simulate", written(tmp_path, 'schedule: "*/2 * * * *"'), "-o", "csv"]) == 0
    printed = capsys.readouterr()
    assert "default/tidy,Burstable,0,2," in printed.out
    assert "assumed: start of the run: 2000-01-01T00:00:00Z (spec.start)" in " ".join(printed.err.split())


# ---- scenarios without a clock -------------------------------------------------------------------------------------


def test_a_cron_job_that_is_not_due_without_a_start_has_a_job_from_the_start_with_a_warning(tmp_path):
    path = written(tmp_path, 'schedule: "0 3 * * *"', after=None)
    assert at(ran(path), "Started") == [(0, "Started", "tidy-0")]
    (problem,) = read_scenario(path).problems
    assert problem.what.endswith("does not come up during the run, so one Job of it runs from the start")


def test_a_cron_job_with_an_active_job_starts_others_by_its_schedule(tmp_path):
    done = ran(written(tmp_path, 'schedule: "*/4 * * * *"', workload="active: true"))
    assert at(done, "Started") == [(0, "Started", "tidy-0"), (240.1, "Started", f"tidy-{MINUTE_0 + 4}-0")]


def test_a_cron_job_that_is_not_due_after_a_stated_start_has_no_pods(tmp_path):
    path = written(tmp_path, 'schedule: "0 3 * * *"', spec="start: 2026-11-15T04:00:00Z\n  duration: 5m")
    assert not ran(path).entries
    assert [problem.fix for problem in read_scenario(path).problems] == ["change spec.start or spec.duration"]


@pytest.mark.parametrize(
    ("cron", "what"),
    [
        (
            'schedule: "* * * *"',
            'spec.schedule: Invalid value: "* * * *": expected exactly 5 fields, found 4: [* * * *]',
        ),
        ('schedule: "61 * * * *"', "end of range (61) above maximum (59): 61"),
        ('schedule: "@fortnightly"', "unrecognized descriptor: @fortnightly"),
        ('timeZone: Europe/Atlantis\n  schedule: "* * * * *"', "unknown time zone Europe/Atlantis"),
        ('concurrencyPolicy: Never\n  schedule: "* * * * *"', "must be one of Allow, Forbid, Replace"),
    ],
)
def test_what_the_api_server_rejects_is_an_error_with_its_place(tmp_path, capsys, cron, what):
    assert main(["simulate", written(tmp_path, cron)]) == 2
    assert what in capsys.readouterr().err


@pytest.mark.parametrize("start", ["5m", "yesterday", "2026-13-01T00:00:00Z"])
def test_a_start_that_is_not_a_date_is_an_error_with_its_place(tmp_path, capsys, start):
    path = written(tmp_path, 'schedule: "* * * * *"', spec=f"start: {start}\n  duration: 5m")
    assert main(["simulate", path]) == 2
    assert f'scenario.yaml:5:3: error: spec.start: "{start}" is not a date' in capsys.readouterr().err


# ---- schedules -----------------------------------------------------------------------------------------------------


def times(schedule: str, after: str, count: int, zone: str | None = None) -> list[str]:
    """Return the next times of a schedule, in UTC."""
    parsed, offsets = parse_schedule(schedule), zone_named(zone)
    time = int(datetime.fromisoformat(after).replace(tzinfo=UTC).timestamp())
    found = []
    for _ in range(count):
        time = parsed.next_after(time, offsets)
        found.append(f"{datetime.fromtimestamp(time, UTC):%m-%d %H:%M}")
    return found


@pytest.mark.parametrize(
    ("schedule", "after", "expected"),
    [
        ("*/20 * * * *", "2026-11-15T04:00", ["11-15 04:20", "11-15 04:40", "11-15 05:00"]),
        ("5/20 * * * *", "2026-11-15T04:00", ["11-15 04:05", "11-15 04:25", "11-15 04:45"]),  # 5-59/20
        ("0 9-17/4 * * MON-FRI", "2026-11-13T13:00", ["11-13 17:00", "11-16 09:00", "11-16 13:00"]),
        ("0 0 13 * FRI", "2026-11-06T00:00", ["11-13 00:00", "11-20 00:00", "11-27 00:00"]),  # either day
        ("0 0 1,15 JAN,dec ?", "2026-11-06T00:00", ["12-01 00:00", "12-15 00:00", "01-01 00:00"]),
        ("@hourly", "2026-11-15T04:30", ["11-15 05:00", "11-15 06:00"]),
        ("@weekly", "2026-11-15T00:00", ["11-22 00:00", "11-29 00:00"]),
        ("@every 90m", "2026-11-15T04:10", ["11-15 05:40", "11-15 07:10"]),
        ("0 0 29 2 *", "2026-11-15T00:00", ["02-29 00:00"]),
    ],
)
def test_schedules(schedule, after, expected):
    assert times(schedule, after, len(expected)) == expected


def test_a_step_over_all_days_restricts_them_and_so_either_day_is_enough(tmp_path):
    """In robfig/cron a step takes the star away, so ``*/2`` and SUN are both restrictions: 1, 3, 5, 7, and Sunday 8."""
    assert times("0 0 */2 * SUN", "2026-11-04T00:00", 4) == ["11-05 00:00", "11-07 00:00", "11-08 00:00", "11-09 00:00"]


def test_an_hour_that_does_not_exist_has_no_run_and_one_that_exists_twice_has_two():
    """Berlin: 29 March 2026 has no 02:30; 25 October has it at 00:30 and at 01:30 UTC."""
    assert times("30 2 * * *", "2026-03-28T00:00", 2, "Europe/Berlin") == ["03-28 01:30", "03-30 00:30"]
    assert times("30 2 * * *", "2026-10-24T12:00", 3, "Europe/Berlin") == ["10-25 00:30", "10-25 01:30", "10-26 01:30"]


def test_a_day_without_midnight_has_no_run_at_midnight():
    """São Paulo, 4 November 2018: the clocks went from 24:00 to 01:00."""
    assert times("0 0 * * *", "2018-11-02T12:00", 2, "America/Sao_Paulo") == ["11-03 03:00", "11-05 02:00"]


@pytest.mark.parametrize(
    "text", ["", "5-1 * * * *", "*/0 * * * *", "1-2-3 * * * *", "0 0 0 * *", "x * * * *", "@every 1x"]
)
def test_what_is_not_a_schedule_is_rejected(text):
    with pytest.raises(InputError):
        parse_schedule(text)


def test_a_rehearsal_leaves_out_what_a_schedule_would_start_and_says_so(tmp_path):
    scheduled = load_scenario(written(tmp_path, 'schedule: "* * * * *"', after=None))
    assert not on_this_machine(scheduled, CgroupVersion.V2).workloads
    assert "schedules of CronJobs" in unrehearsable(scheduled)
    active = load_scenario(written(tmp_path, 'schedule: "* * * * *"', after=None, workload="active: true"))
    assert [(workload.name, workload.cron) for workload in on_this_machine(active, CgroupVersion.V2).workloads] == [
        ("tidy", None)
    ]
