"""Lines of text, whatever carries them: the carrier is learned from the first lines of the OOM killer's.

The first lines wait until enough of them are there to learn from: the prefix, what follows the message, and how lines
were broken. Then every line passes at once, but for one that may be continued. Memory is that of the lines that wait.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise, takewhile

from msgspec.structs import replace

from podqos.kernel.carriers import prefixes, tokens, wrapping
from podqos.kernel.carriers.plain_lines import PlainLines, WrappedLines, read_bare, without
from podqos.kernel.carriers.prefixes import Carried, Prefix
from podqos.kernel.carriers.wrapping import Physical, Wrapping
from podqos.kernel.message import Line, Message

MOST_WAITING = 240
_MOST_BYTES = 1 << 17
_MOST_PREFIXES = 6
_MOST_LATER = 20_000
_MOST_ADDED = 200
"""Prefixes that are learned after the first ones: in a log of noise every line has another, and learning is slow."""
_MOST_USELESS, _MOST_SEEN = 16, 1024
_MOST_TOGETHER = 256
_OTHERS_SHARE = 0.1
"""Of the lines between the first and the last of the kernel's: what people wrote in between."""
_MOST_REST = 2
"""Lines that a broken one may go on in."""
_NEAR = 24
"""So many lines after ``invoked oom-killer`` at most, the process that asked is named again."""
_HEADER_TAIL = re.compile(r"\[\s{0,6}pid\s{0,6}\].{10,220}?adj\s{1,8}name\b(.{0,1000})$")
_INVOKED_TAIL = re.compile(r"invoked oom-killer:.{0,800}\border=.{0,60}adj=-?\d{1,5}(?!\d)(.{0,1000})$")
_FEW = 8
_ZEROS = str.maketrans("123456789", "0" * 9)
_ENDING = re.compile(r"[\"'|,;}>$`#\s]{1,40}$")
_LONGEST_END = 200
_DELIMITER = re.compile(r".*(?:[:\]>|\"'=;,)}]\s{0,4}|\t|\s-\s|\s{2})", re.DOTALL)
_NAME_QUOTES = "\"'`<>|[] \t"
_QUOTES = "\"'`([{<>| \t"
_GUTTER = re.compile(r"[\s\d]{1,40}([|:>\u2502\u22ee])( ?)")
_CONTINUING = frozenset("\u21aa\u21b3\u2937\u00bb\u2026\u00b7")
"""What programs put before the rest of a line that they broke."""
_ROW = re.compile(r"\[\s{0,12}(?:\d{1,10}|pid\s{0,6})\]|\[<")


class TextLines:
    """Takes lines, and returns messages."""

    def __init__(self) -> None:
        self._waiting: list[Line] = []
        self._bytes = 0
        self._is_learned = False
        self._is_passing = False
        """Nothing of the OOM killer's was in the lines that waited."""
        self._prefixes: list[Prefix] = []
        self._added = self._useless = self._misses = 0
        self._seen: set[str] = set()
        """Prefixes of single lines."""
        self._plain: Callable[[Sequence[Line]], Sequence[Message | None]] | None = None
        """Takes lines apart many at a time, where that is all there is to do."""
        self._broken: WrappedLines | None = None
        """The same where lines are broken."""
        self._suffix: re.Pattern[str] | None = None
        self._outer: re.Pattern[str] | None = None
        self._wrapping: Wrapping | None = None
        self._columns = 0
        self._group: tuple[str, list[Line], Physical, Carried] | None = None
        self._at = ""
        self._is_reversed = False
        self._has_report = False
        self._later: list[Message] = []
        """What comes after the next line, where the newest is first."""
        self._is_marked = False
        """Whether lines have a prefix."""
        self._is_everywhere = False
        """Whether every line has, also one that continues another."""
        self._alone: Carried | None = None
        """The last line, where it has nothing but a prefix: mail programs put a long word on a line of its own."""

    @property
    def holds_report(self) -> bool:
        """Whether a report is held back whose first line has not come: the log has the newest line first."""
        return self._has_report

    @property
    def is_plain(self) -> bool:
        """Whether a message is its line without a prefix, whatever comes before and after it."""
        return not self.looks_back and self._suffix is None

    @property
    def is_waiting(self) -> bool:
        """Whether lines wait for others to learn from, or for their continuation."""
        return bool(self._waiting) or self._group is not None

    @property
    def looks_back(self) -> bool:
        """Whether what precedes a mark matters: until the carrier is known, and where lines are broken."""
        return not self._is_learned or self._wrapping is not None or self._is_reversed

    def read(self, lines: Sequence[Line]) -> list[Message]:
        """Return the messages that lines complete, in the order in which they were logged."""
        found: list[Message] = []
        number = 0
        while number < len(lines):
            number = self._read_alike(lines, number, found)
        return self._turned(found) if self._is_reversed else found

    def _read_alike(self, lines: Sequence[Line], start: int, found: list[Message]) -> int:
        """Read lines as long as they are carried as it is known; return how many were read."""
        plain = self._plain
        if self._broken is not None:
            return self._read_broken(self._broken, lines, start, found)
        if plain is None:
            self._feed(lines[start], found)
            return start + 1
        messages = plain(lines[start : start + _MOST_TOGETHER])
        # Those that need a closer look, each of which may tell how the next ones are read.
        closer = [*[number for number, message in enumerate(messages) if message is None], len(messages)]
        number = 0
        while number < len(messages):
            if messages[number] is None or self._alone is not None:
                self._feed(lines[start + number], found)
                number += 1
                if self._plain is not plain:
                    break
                continue
            end = closer[bisect(closer, number)]
            alike = list(filter(None, messages[number:end]))
            found += alike
            self._at = next((message.at for message in reversed(alike) if message.at), self._at)
            self._misses = 0
            number = end
        return start + number

    def _read_broken(self, broken: WrappedLines, lines: Sequence[Line], start: int, found: list[Message]) -> int:
        number = start
        for message, count in broken.read_broken(lines[start : start + _MOST_TOGETHER], self._columns):
            if message is None:
                for line in lines[number : number + count]:
                    self._feed(line, found)
            else:
                columns = self._columns
                if self._group is not None:
                    self._end_group(found)
                if self._columns != columns:
                    break  # what follows the header of another table was read without knowing it
                self._alone = None
                found.append(message)
                self._at, self._misses = message.at or self._at, 0
            number += count
            if self._broken is not broken:
                break
        return number

    def _turned(self, read: list[Message]) -> list[Message]:
        found: list[Message] = []
        for message in read:
            kind = tokens.kind_of(message.text)
            self._later.append(message)
            self._has_report = self._has_report or bool(kind)
            if kind == "I" or len(self._later) >= _MOST_LATER:
                found += self.end()
        return found

    def end(self) -> list[Message]:
        """Return what is held back because the newest line is first."""
        later, self._later, self._has_report = self._later, [], False
        later.reverse()
        return later

    def _feed(self, line: Line, found: list[Message]) -> None:
        if self._is_learned:
            self._pass(line, found)
            return
        if self._is_passing:
            if not tokens.has_hint(line.text):
                found.append(self._read(line, prefixes.known(line.text)))
                return
            self._is_passing = False
        self._waiting.append(line)
        self._bytes += len(line.text)
        if len(self._waiting) >= MOST_WAITING or self._bytes > _MOST_BYTES:
            self._learn(found)

    def flush(self) -> list[Message]:
        """Return what waits: no line follows soon, or those that do are far away in the file."""
        found: list[Message] = []
        if self._waiting:
            self._learn(found)
        self._end_group(found)
        self._is_passing = False
        if not self._is_reversed:
            return found
        turned = self._turned(found)
        return turned if self._has_report else turned + self.end()

    # ---- learning --------------------------------------------------------------------------------------------------

    def _learn(self, found: list[Message]) -> None:
        lines, self._waiting, self._bytes = self._waiting, [], 0
        texts = [line.text for line in lines]
        starts = [0 if prefixes.record(text) else tokens.start_of(text) for text in texts]
        invoked = [tokens.before_name(text) if start < 0 else None for text, start in zip(texts, starts, strict=True)]
        is_found = any(start >= 0 for start in starts) or any(before is not None for before in invoked)
        if is_found:
            self._learn_prefixes(texts, starts, invoked)
            self._suffix = _learned_suffix(texts)
        if any(map(tokens.has_hint, texts)):
            is_own = [start >= 0 or before is not None for start, before in zip(starts, invoked, strict=True)]
            self._learn_wrapping(texts, is_own)
            self._is_reversed = self._has_newest_first(texts)
        if not is_found and self._wrapping is None:
            self._is_passing = True
            found += [self._read(line, prefixes.known(line.text)) for line in lines]
            return
        self._is_learned = True
        self._learn_plain()
        was_reversed, self._is_reversed = self._is_reversed, False
        found += self.read(lines)
        self._is_reversed = was_reversed

    def _learn_plain(self) -> None:
        """Know how lines can be taken apart many at a time: by the first of the prefixes."""
        self._plain, self._broken, self._misses = None, None, 0
        if self._wrapping is not None and self._prefixes and not self._is_everywhere:
            self._broken = WrappedLines(self._prefixes, self._outer, self._wrapping)
        if self.looks_back:
            return
        if self._prefixes:
            self._plain = PlainLines(self._prefixes[0], self._suffix).read
        elif self._suffix is None:
            self._plain = read_bare

    def _has_newest_first(self, texts: list[str]) -> bool:
        """Whether the header of a table follows its rows, with no kill in between. Several hosts may be in one log."""
        kinds: dict[str, str] = {}
        for text in texts:
            carried = self._carried(text)
            kinds[carried.host] = kinds.get(carried.host, "") + tokens.kind_of(carried.text)
        return any("RH" in order and "HR" not in order for order in kinds.values())

    def _learn_prefixes(self, texts: list[str], starts: list[int], invoked: list[str | None]) -> None:
        counts: Counter[str] = Counter()
        forms: dict[str, Prefix] = {}
        known: dict[str, Prefix | None] = {}
        bare = 0
        for number, text in enumerate(texts):
            start = starts[number]
            if (before := invoked[number]) is not None:
                name = _asked(texts[number + 1 : number + _NEAR])
                if not (name and before.endswith(name)):
                    continue
                start = len(before) - len(name)
            bare += start >= 0 and not text[:start].strip()
            if start <= 0:
                continue
            alike = text[:start].translate(_ZEROS)
            if alike not in known:
                known[alike] = prefixes.learned(text[:start])
            if (prefix := known[alike]) is None:
                continue
            key = prefix.pattern.pattern
            forms[key] = prefix
            counts[key] += 1
        if not all(form.is_quoting for form in forms.values()):
            counts = Counter({key: count for key, count in counts.items() if not forms[key].is_quoting})
        kept = [key for key, count in counts.most_common(_MOST_PREFIXES) if count > 1 or not bare]
        self._prefixes = [forms[key] for key in kept]

    def _learn_wrapping(self, texts: list[str], is_own: list[bool]) -> None:
        """Learn how lines were broken, from the first that is the kernel's to the last, and the rest of it."""
        carried = [self._carried(text) for text in texts]
        first, last = _ends(line.is_marked or is_first for line, is_first in zip(carried, is_own, strict=True))
        rest = [*takewhile(str.strip, texts[last : last + _MOST_REST])]
        texts, carried = texts[first : last + len(rest)], carried[first : last + len(rest)]
        lacking = [
            text
            for text, line in zip(texts, carried, strict=True)
            if text.strip() and not line.is_marked and not tokens.is_start(line.text)
        ]
        self._is_marked = any(line.is_marked for line in carried)
        # Where every line has the prefix, they were broken before. What people wrote in between lacks quoting.
        is_quoted = bool(self._prefixes) and self._prefixes[0].is_quoting
        self._is_everywhere = bool(self._prefixes) and len(lacking) <= len(texts) * _OTHERS_SHARE * is_quoted
        if not self._is_everywhere and (not lacking or self._suffix is not None):
            return
        self._outer = _outer(self._prefixes, lacking) if self._prefixes else _quoting(texts)
        outer = self._outer
        physical = [
            self._physical(text, line)
            for text, line in zip(texts, carried, strict=True)
            if outer is None or line.is_marked or outer.match(text)
        ]
        self._wrapping = wrapping.learned(physical)
        if self._wrapping is None:
            self._outer = None

    # ---- passing ---------------------------------------------------------------------------------------------------

    def _pass(self, line: Line, found: list[Message]) -> None:
        carried = self._carried(line.text)
        if self._wrapping is None:
            self._end_group(found)
            found.append(self._read(line, carried))
            return
        physical = self._physical(line.text, carried)
        group = self._group
        if group is not None:
            text, lines, before, first = group
            if (
                len(lines) < wrapping.MOST_JOINED
                and len(text) < _MOST_BYTES
                and self._wrapping.continues(before, text, physical, self._columns)
            ):
                self._group = self._wrapping.joined(text, before, physical), [*lines, line], physical, first
                return
        self._end_group(found)
        self._group = physical.message, [line], physical, carried

    def _end_group(self, found: list[Message]) -> None:
        if self._group is None:
            return
        text, lines, _, first = self._group
        self._group = None
        self._columns = tokens.columns_of(text) or self._columns
        found.append(self._read(lines[0], replace(first, text=text)))

    def _read(self, line: Line, carried: Carried) -> Message:
        text = carried.text.rstrip()
        if "\t" in text:
            text = text.replace("\t", " ")
        alone, self._alone = self._alone, None if text or not carried.is_marked else carried
        if alone is not None and text and not carried.is_marked:
            carried = replace(alone, text=text)
        at = line.at or carried.at
        is_marked = carried.is_marked or line.is_record or self._is_noise(carried)
        if at:
            self._at = at
        elif carried.is_marked and prefixes.is_relative(line.text[: len(line.text) - len(carried.text)]):
            at = self._at
        return Message(text, at, line.host or carried.host, is_marked, line.fields)

    def _is_noise(self, carried: Carried) -> bool:
        """Whether a line stands on its own among others that have a prefix: what continues them is joined already."""
        return bool(self._prefixes) and not tokens.is_start(carried.text)

    def _physical(self, text: str, carried: Carried) -> Physical:
        if self._is_everywhere:
            begins = not carried.is_marked or tokens.is_start(carried.text)
            return Physical(carried.text, carried.text, begins, is_naked=False)
        outer = None if self._outer is None else self._outer.match(text)
        rest = text if outer is None else text[outer.end() :]
        is_apart = self._outer is not None and outer is None
        begins = carried.is_marked or tokens.is_start(carried.text) or is_apart
        message = carried.text if begins else rest
        return Physical(rest, message, begins, self._is_marked and not carried.is_marked and not is_apart)

    def _carried(self, text: str) -> Carried:
        """Return a line without its prefix, and without what follows the message."""
        best = prefixes.record(text)
        if best is not None:
            return best
        place = 0
        for number, prefix in enumerate(self._prefixes):
            other = prefix.taken_off(text)
            if other is not None and (best is None or _is_better(other.text, best.text)):
                best, place = other, number
        if place:
            self._mind_prefix(place)
        if best is None:
            best = self._located(text)
        elif best.text.startswith("[") and not _ROW.match(best.text):
            more = tokens.start_of(best.text)
            inner = prefixes.known(best.text)
            best = replace(best, text=best.text[more:] if more > 0 else inner.text, at=best.at or inner.at)
        elif "invoked oom-killer:" in best.text and (before := tokens.before_name(best.text)) is not None:
            best = replace(best, text=best.text[len(before) - len(_name_in(before, is_all=True)) :])
        if self._wrapping is None and best.text.startswith("[") and (tail := _HEADER_TAIL.match(best.text)):
            suffix = _suffix(tail[1])
            if suffix != self._suffix:
                self._suffix = suffix
                self._learn_plain()
        if self._suffix is not None:
            best = replace(best, text=without(self._suffix, best.text))
        return best

    def _located(self, text: str) -> Carried:
        """Return a line without a prefix that has not been learned: by its message, or by a known form."""
        start = tokens.start_of(text)
        is_bare = start >= 0 and self._is_bare(text[:start])
        if start > 0 and not is_bare and not prefixes.is_prose(text[:start]):
            at, host = prefixes.time_and_host(text[:start])
            if not at and self._wrapping is not None and self._is_marked:
                return Carried(text[start:], "", "", is_marked=False)  # the rest of a broken line
            if self._added < _MOST_ADDED and not prefixes.leaves(text, text[start:]):
                self._add(text[:start])
            return Carried(text[start:], at, host, is_marked=True)
        if is_bare:
            return Carried(text[start:], "", "", is_marked=False)
        form = prefixes.known(text)
        before = tokens.before_name(form.text) if start < 0 else None
        if before is None:
            return form
        name = _name_in(before, is_all=form.is_marked)
        rest = form.text[len(before) - len(name) :]
        if len(name) == len(before):
            return replace(form, text=rest)
        at, host = prefixes.time_and_host(text[: len(text) - len(rest)])
        return Carried(rest, at, host, is_marked=True)

    def _is_bare(self, before: str) -> bool:
        """Whether nothing precedes a message, or only what precedes the rest of a broken line, too."""
        if self._prefixes and not self._prefixes[0].is_quoting:
            before = before.strip(prefixes.MARKS)
        return not before.strip() or (self._outer is not None and self._outer.fullmatch(before) is not None)

    def _mind_prefix(self, place: int) -> None:
        """Know a prefix as that of most lines once it is that of several in a row."""
        self._useless = 0
        self._misses += 1
        if self._misses >= _FEW and (self._plain or self._broken) is not None:
            self._prefixes.insert(0, self._prefixes.pop(place))
            self._learn_plain()

    def _add(self, prefix: str) -> None:
        """Learn a prefix of a line, but in a log where most lines have another only when it comes again."""
        if self._added >= _MOST_ADDED:
            return
        if self._useless >= _MOST_USELESS:
            alike = prefix.translate(_ZEROS)
            if alike not in self._seen:
                if len(self._seen) < _MOST_SEEN:
                    self._seen.add(alike)
                return
        self._added += 1
        self._useless += 1
        form = prefixes.learned(prefix)
        if form is None:
            return
        first = self._prefixes[:1]
        self._prefixes = [*first, form, *self._prefixes[1 : _MOST_PREFIXES - 1]]
        if not first:
            self._learn_plain()


def _is_better(message: str, other: str) -> bool:
    """Whether a prefix takes more off than another does, but not a pid, which may look like the rest of one."""
    if (is_row := tokens.is_row(message)) != tokens.is_row(other):
        return is_row
    return len(message) < len(other)


def _asked(texts: list[str]) -> str:
    """Return the process that asked, by the line that names it with its pid."""
    for text in texts:
        if named := tokens.COMM.search(text):
            return named[1]
    return ""


def _name_in(before: str, *, is_all: bool = False) -> str:
    """Return the name at the end of what precedes ``invoked oom-killer``, where nothing says where it begins.

    Behind a known prefix all of it is the name, such as ``tmux: server`` or ``(sd-pam)``.
    """
    if is_all and len(before) <= tokens.LONGEST_NAME and before.strip(_NAME_QUOTES) == before:
        return before
    whole = before.strip(_QUOTES)
    if is_all and whole == before.strip() and len(whole) <= tokens.LONGEST_NAME and len(whole.split()) == 1:
        return whole
    if len(whole) <= tokens.LONGEST_NAME and not _DELIMITER.match(whole):
        return whole
    rest = before[-tokens.LONGEST_NAME - 1 :]
    delimiter = _DELIMITER.match(rest)
    if delimiter is not None:
        name = rest[delimiter.end() :]
        if name.strip(_QUOTES):
            return name.lstrip(_QUOTES)
    if len(whole) <= tokens.LONGEST_NAME:
        return whole
    return rest.split()[-1] if rest.split() else rest


def _learned_suffix(texts: list[str]) -> re.Pattern[str] | None:
    """Return what follows a message in its line, by lines whose end is certain; the table's header is the surest."""
    for form in (_HEADER_TAIL, _INVOKED_TAIL):
        for text in texts:
            if tail := form.search(text):
                return _suffix(tail[1])
    ends = [text.rstrip()[: -_LONGEST_END - 1 : -1] for text in texts if text.strip()]
    common = 0
    while len(ends) > _FEW and len({end[: common + 1] for end in ends}) == 1 and len(ends[0]) > common:
        common += 1
    # Of reports that are all alike, everything is common: only what no message ends with is the carrier's.
    ending = _ENDING.search(ends[0][:common][::-1]) if common else None
    return None if ending is None else _suffix(ending[0])


def _suffix(tail: str) -> re.Pattern[str] | None:
    form = prefixes.learned(tail.strip())
    return None if form is None else re.compile("".join(form.parts) + r"\s{0,80}$")


def _outer(forms: list[Prefix], lacking: list[str]) -> re.Pattern[str] | None:
    """Return the part of a prefix that lines without the rest of it have, too, such as the quoting of a mail."""
    best: re.Pattern[str] | None = None
    for form in forms[:1]:
        for count in range(1, len(form.parts)):
            last = form.words[count - 1]
            # What is broken at a column may go on with a space.
            end = re.escape(last) if last.isspace() else form.parts[count - 1]
            pattern = re.compile("".join(form.parts[: count - 1]) + end)
            is_quoting = not "".join(form.words[:count]).strip(prefixes.MARKS)
            others = [pattern.match(text) is None for text in lacking]
            if any(others) and not (is_quoting and sum(others) < len(others) / 2):
                break
            best = pattern
        gutter = _GUTTER.match("".join(form.words))
        if gutter is not None:  # only the first line of what is numbered may have its number
            pattern = re.compile(rf"\s{{0,40}}+\d{{0,20}}+\s{{0,40}}+{re.escape(gutter[1])}{gutter[2]}?")
            best = pattern if all(map(pattern.match, lacking)) else best
    marks = {text.lstrip()[:1] for text in lacking}
    if best is None and len(marks) == 1 and (mark := marks.pop()) in _CONTINUING:
        return re.compile(rf"\s{{0,40}}+{mark} ?")
    return best


def _quoting(texts: list[str]) -> re.Pattern[str] | None:
    """Return the blanks and quoting marks that lines begin with."""
    told = [text for text in texts if text.strip(prefixes.MARKS)]
    forms = {text[: len(text) - len(text.lstrip(prefixes.MARKS))] for text in told}
    for form in sorted(filter(None, forms), key=len, reverse=True):
        if sum(not text.startswith(form) for text in told) <= len(told) * _OTHERS_SHARE:
            return re.compile(re.escape(form))
    return None


def _ends(which: Iterable[bool]) -> tuple[int, int]:
    """Return the number of the first, and that after the last; of all where there is none."""
    all_of_them = [*which]
    numbers = [number for number, is_one in enumerate(all_of_them) if is_one] or range(len(all_of_them))
    return numbers[0], numbers[-1] + 1


def separated(line: str) -> list[str]:
    """Return the lines that were joined into one with no line end left: each begins with the prefix of the first.

    Without one, as where a page has but one paragraph, each begins with the OOM killer's own words.
    """
    if not tokens.has_several(line):
        return [line]
    before = tokens.before_name(line)
    start = tokens.start_of(line)
    if before is not None and (start < 0 or len(before) < start):
        start = len(before) - len(_name_in(before))
    form = prefixes.learned(line[:start]) if start > 0 and any(map(str.isalnum, line[:start])) else None
    begins = [] if form is None else [place.start() for place in form.pattern.finditer(line)]
    if len(begins) < 2 or begins[0] > 0:
        begins = tokens.starts_of_several(line)
        if len(begins) > 1 and 0 < start < begins[1] and prefixes.is_prose(line[:start]):
            begins.insert(1, start)
    return [line[begin:end] for begin, end in pairwise([*begins, len(line)])]
