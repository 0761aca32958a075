"""One term per concept: phrases that readers stumbled over do not come back."""

from __future__ import annotations

import re

from documents.words import RETIRED, ROOT, VOCABULARY, as_words, occurrences, retired

COMPATIBILITY = ROOT / "docs/reference/compatibility.md"
PHRASES = retired()


def test_retired_phrases_do_not_come_back():
    hits = [*occurrences(PHRASES)]
    assert not hits, "\n".join(hits)


def test_every_retired_phrase_has_a_replacement_that_is_not_retired():
    lines = [line for line in RETIRED.read_text().splitlines() if line and not line.startswith("#")]
    assert [line for line in lines if not re.fullmatch(r"\S.* => \S.*", line)] == []
    olds = {as_words(phrase.old) for phrase in PHRASES}
    again = [
        phrase.new
        for phrase in PHRASES
        if any(old in as_words(phrase.new) and old != as_words(phrase.old) for old in olds)
    ]
    assert again == []


def test_the_vocabulary_has_every_term_once():
    terms = [
        term.strip()
        for row in re.findall(r"^\| \*\*(.+?)\*\* \|", VOCABULARY.read_text(), re.MULTILINE)
        for term in row.split("**, **")
    ]
    assert len(terms) > 40
    assert sorted({*terms}) == sorted(terms)
