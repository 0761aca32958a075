"""Where ``podqos autopsy`` finds nothing, it quotes the line that speaks of a kill."""

from __future__ import annotations

import pytest

from deaths import parsed
from podqos.cli.main import main


@pytest.fixture
def told(tmp_path, capsys):
    """Return what the command answers to texts, as text or as JSON."""

    def run(*texts, output="text"):
        logs = [tmp_path / f"log-{number}" for number, _ in enumerate(texts)]
        for log, text in zip(logs, texts, strict=True):
            log.write_text(text)
        assert main(["autopsy", *map(str, logs), "-o", output]) == 0
        said = capsys.readouterr().out
        return parsed(said) if output == "json" else " ".join(said.split())

    return run


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("the cart pods were OOMKilled twice last night", "OOMKilled"),
        ("paging: host shows oom_kill again", "oom_kill"),
        ("operator: the device ran out of memory, says the vendor", "out of memory"),
        ("note: SIGKILL seen around nine", "SIGKILL"),
        ("ticket: exit code 137 on three builds", "exit code 137"),
    ],
)
def test_the_line_that_speaks_of_a_kill_is_quoted_where_nothing_was_found(told, line, word):
    text = f"morning notes\n\n{line}\nall else is well\n"
    assert told(text, output="json")["read"]["mention"] == {"line": 3, "word": word, "text": line}
    said = told(text)
    assert f"Line 3 says {word}, but not of what: {line}" in said
    assert "Run next: " in said


def test_the_plainest_words_are_quoted_and_of_a_long_line_what_is_around_them(told):
    text = f"exit code 137\nout of memory\n{'x' * 500} OOMKilled {'y' * 500}\n"
    mention = told(text, output="json")["read"]["mention"]
    assert (mention["line"], mention["word"], len(mention["text"]) < 200) == (3, "OOMKilled", True)


@pytest.mark.parametrize(
    "line",
    [
        "we saw `Memory cgroup out of memory: Killed process 4711 (java)` once",
        "  grep -e 'Out of memory: Killed process' -e 'oom-kill:constraint=CONSTRAINT_NONE' dmesg.txt",
    ],
)
def test_of_the_kernels_words_in_a_sentence_it_is_said_that_they_are_no_line_of_its_log(told, line):
    said = told(f"{line}\n")
    assert f"Line 1 quotes the kernel's words, but is not a line of its log: {line.strip()}" in said
    assert "No OOM kills" in said


def test_a_long_line_is_quoted_in_whole_words(told):
    mention = told(f"{'before ' * 30}OOMKilled{' behind' * 30}\n", output="json")["read"]["mention"]
    assert set(mention["text"].split()) == {"…", "before", "OOMKilled", "behind"}
    assert (mention["text"][:8], mention["text"][-8:]) == ("… before", "behind …")


def test_of_several_logs_the_quoted_line_names_its_own(told):
    said = told("nothing here\n", "one\nexit code 137 again\n")
    assert "Line 2 of " in said
    assert "log-1 says exit code 137, but not of what" in said


def test_nothing_is_quoted_where_something_was_found_or_nothing_speaks_of_a_kill(told):
    assert "but not of what" not in told("java.lang.OutOfMemoryError: Java heap space\nOOMKilled it seems\n")
    assert "but not of what" not in told("exit code 13, 1370 files, oomph\n")
    assert "mention" not in told("all is well\n", output="json")["read"]
