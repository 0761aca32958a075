"""Logs of several kernels whose lines a terminal, a mail program or a chat broke say what they said before."""

from __future__ import annotations

import random
from itertools import product

import pytest

from kernel.carriers import ISO, folded, journal, plain, syslog, wrapped
from kernel.carriers import dmesg as timed
from kernel.oom_logs import cgroup, killed, machine, read
from podqos.kernel.carriers.text_lines import TextLines
from podqos.kernel.message import Line
from podqos.kernel.oom_report import OOMReport

FORMS = {"nr_ptes": "3.10.0", "nr_pmds": "4.4.0", "pgtables_bytes": "6.1.0", "rss_anon": "6.10.0"}
NAMES = "java", "nginx", "redis-server", "worker process", "php-fpm", "postgres"
PREFIXES = {
    "bare": plain,
    "dmesg": timed,
    "syslog": syslog,
    "journal": journal,
    "iso": lambda lines: [f"{ISO} node-1 kernel: {line}" for line in lines],
}
QUOTING = "", "> ", "> > ", ">> +", "    ", "* "


def _reports(draw: random.Random) -> list[list[str]]:
    reports = []
    for form, release in FORMS.items():
        for make in "cgroup", "machine":
            rows = [
                (
                    pid,
                    1000,
                    draw.randrange(100, 99_000),
                    draw.randrange(1, 99),
                    0,
                    draw.choice((-1000, -998, 0, 3, 999)),
                    draw.choice(NAMES),
                )
                for pid in sorted(draw.sample(range(100, 3_999_999), draw.randrange(8, 50)))
            ]
            rows.append((4_000_000, 1000, 199_000, 300, 0, 1000, draw.choice(NAMES)))
            pid, name = rows[-1][0], rows[-1][-1]
            if make == "cgroup":
                reports.append(cgroup(rows, pid, name))
            else:
                reports.append(machine(rows, form, killed(pid, name), release))
    return reports


def _told(report: OOMReport) -> tuple[object, ...]:
    tasks = [(task.pid, task.name, task.rss_pages, task.oom_score_adj) for task in report.tasks.values()]
    victims = [(victim.pid, victim.name) for victim in report.victims.values()]
    return report.constraint, report.oom_cgroup, report.trigger, victims, tasks


@pytest.mark.parametrize("width", [65, 76, 100])
@pytest.mark.parametrize(("prefix", "quoting"), [*product(PREFIXES, QUOTING)])
def test_a_log_of_several_kernels_is_read_wherever_its_lines_are_broken(prefix, quoting, width):
    draw = random.Random(f"{prefix}{quoting}{width}")  # noqa: S311
    reports = _reports(draw)
    expected = [_told(report) for (report,) in map(read, reports)]
    lines = [line for report in reports for line in report]
    how = {"break_long_words": False, "break_on_hyphens": False}
    for make in folded(width, PREFIXES[prefix], quoting), wrapped(width, PREFIXES[prefix], quoting, **how):
        assert [_told(report) for report in read(make(lines).split("\n"))] == expected


BEFORE = "Hi all,\n\nour node died last night, and nobody here knows what we should raise to spare it. Its log:\n\n"
BETWEEN = "\nI think this is where it goes wrong, because that process never used as much memory before today:\n\n"
AFTER = "\nThanks,\nAnna\n"


@pytest.mark.parametrize("width", [66, 110])
@pytest.mark.parametrize(("prefix", "quoting"), [*product([*PREFIXES][1:], filter(None, QUOTING))])
def test_what_people_write_around_a_report_does_not_hide_how_its_lines_were_broken(prefix, quoting, width):
    draw = random.Random(f"{prefix}{quoting}{width}")  # noqa: S311
    report = draw.choice(_reports(draw))
    expected = [_told(found) for found in read(report)]
    cut = draw.randrange(2, len(report) - 1)
    how = {"break_long_words": False, "break_on_hyphens": False}
    for make in folded(width, PREFIXES[prefix], quoting), wrapped(width, PREFIXES[prefix], quoting, **how):
        for text in make(report), make(report[:cut]) + BETWEEN + make(report[cut:]):
            assert [_told(found) for found in read(f"{BEFORE}{text}{AFTER}".split("\n"))] == expected


@pytest.mark.parametrize("share", [25, 50])
def test_a_log_with_wrong_characters_here_and_there_has_no_broken_lines(share):
    text = "\n".join(timed((machine() + cgroup([(7, 1000, 9, 9, 0, 0, "a b")], 7, "a b")) * 12))
    for seed in range(20):
        draw = random.Random(seed)  # noqa: S311
        garbled = "".join(chr(draw.randrange(10, 127)) if draw.random() < 1 / share else each for each in text)
        reader = TextLines()
        reader.read([Line(line) for line in garbled.split("\n")])
        assert not reader.looks_back, seed
