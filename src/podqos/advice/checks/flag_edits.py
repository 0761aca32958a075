"""Places and edits of a kubelet's configuration where it is written as flags: OKD's ``kubeletArguments``.

Checks speak of fields (``evictionSoft[memory.available]``); in such a file that is a pair in one of the values of a
flag (``kubeletArguments.eviction-soft[0]``, which says ``memory.available<500Mi``). As little as possible is rewritten:
the value that holds the pair, or else all values of the flag.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import Struct

from podqos.advice.checks.finding import FieldEdit
from podqos.manifest.kubelet import Notation
from podqos.manifest.plain import format_path, parse_path
from podqos.model.kubelet_config import KubeletConfiguration
from podqos.model.kubelet_flags import FLAGS, Form, flag_of, flag_values

_SEPARATORS = {Form.BELOW: "<", Form.EQUALS: "=", Form.GATES: "="}


class FlagFile(Struct, frozen=True):
    """A configuration that is written as flags."""

    configuration: KubeletConfiguration
    arguments: Mapping[str, Sequence[str]]
    """The values of each flag as they stand in the file."""

    def place(self, path: str) -> str:
        """Return where a field, or an entry of one, stands."""
        field, *key = map(str, parse_path(path)) if path else ("",)
        item = self._item(flag_of(field) or "", key[0]) if key else None
        place = Notation.ARGUMENTS.place(path)
        return place if item is None else f"{place}[{item}]"

    def edits(self, edits: Iterable[FieldEdit]) -> tuple[FieldEdit, ...]:
        """Return edits of fields as edits of the values of flags."""
        wanted: dict[str, dict[str, object]] = {}
        whole: dict[str, object] = {}
        for edit in edits:
            field, *key = map(str, parse_path(edit.path))
            if key:
                wanted.setdefault(field, {})[key[0]] = edit.value
            else:
                whole[field] = edit.value
        pairs = (edit for field, entries in wanted.items() for edit in self._pair_edits(field, entries))
        return (*pairs, *(self._whole_edit(field, value) for field, value in whole.items()))

    def _pair_edits(self, field: str, entries: Mapping[str, object]) -> Iterable[FieldEdit]:
        flag = flag_of(field)
        assert flag is not None
        items = [self._item(flag, key) for key in entries]
        if None in items or None in entries.values():
            before = msgspec.to_builtins(self.configuration)[field] or {}
            after = {key: value for key, value in {**before, **entries}.items() if value is not None}
            yield self._whole_edit(field, after)
            return
        for index in dict.fromkeys(items):
            assert index is not None
            old = self.arguments[flag][index]
            new = ",".join(self._rewritten(flag, part, entries) for part in old.split(","))
            yield FieldEdit(format_path((*Notation.ARGUMENTS.path, flag, index)), new, old)

    def _whole_edit(self, field: str, value: object) -> FieldEdit:
        flag = flag_of(field)
        assert flag is not None
        old = self.arguments.get(flag)
        # Of the hard thresholds none is not the same as not named.
        nothing = [""] if field == "evictionHard" else None
        return FieldEdit(
            Notation.ARGUMENTS.place(field), flag_values(flag, value) or nothing, ", ".join(old) if old else None
        )

    def _item(self, flag: str, key: str) -> int | None:
        """Return which value of a flag holds the pair of a key; of several, none: the last would count."""
        found = [
            index
            for index, value in enumerate(self.arguments.get(flag, ()))
            for part in value.split(",")
            if _key(flag, part) == key
        ]
        return found[0] if len(found) == 1 else None

    @staticmethod
    def _rewritten(flag: str, part: str, entries: Mapping[str, object]) -> str:
        key = _key(flag, part)
        return f"{key}{_SEPARATORS[FLAGS[flag][1]]}{entries[key]}" if key in entries else part


def _key(flag: str, part: str) -> str:
    separator = _SEPARATORS.get(FLAGS[flag][1], "")
    return part.partition(separator)[0].strip() if separator and part else ""
