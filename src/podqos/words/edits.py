"""Why a file was not changed."""

from __future__ import annotations

from podqos.manifest.edits.apply import CannotEdit, Reason

_REASONS = {
    Reason.TEMPLATE: "it is a template ({{ }}): change its values, or render it first",
    Reason.UNREADABLE: "it cannot be read as YAML or JSON",
    Reason.NO_SUCH_OBJECT: "the object is no longer there",
    Reason.NO_SUCH_ITEM: "the list has no such item",
    Reason.NOT_A_MAPPING: "the parent of the field is not a mapping",
    Reason.CONFLICT: "another patch sets a different value there",
    Reason.SHARED: "the anchor &{name} is used in several places: write the value out where it is used",
    Reason.MERGED: "the value comes from a merge key (<<): write it out where it is used",
    Reason.TAGGED: "the value has a tag: remove the tag",
    Reason.COMPLEX_KEY: "the key is not a plain string",
    Reason.DUPLICATE_KEY: "a key is set twice",
    Reason.UNSUPPORTED: "this change cannot be made in place",
    Reason.NOT_AS_MEANT: "the new text would not be valid",
    Reason.NO_BETTER: "it was tried, and the finding would remain",
}


def reason_words(why: CannotEdit) -> str:
    """Return why a file was not changed."""
    text = _REASONS[why.reason].replace("{name}", why.name)
    if why.reason is Reason.NOT_AS_MEANT and why.name:
        text = f"{text}: {why.name}"
    return text if why.position is None else f"{text} (line {why.position[0]})"
