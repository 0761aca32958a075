"""Replaces names consistently, so that references still match.

A name is replaced word by word (``web-7d4b9-x2v1p`` has three), so pods still begin with the name of what made them,
and a label in a selector is that of the pods. Every text is treated as a name, unless the field it is in is known
to hold something else: what is forgotten here is replaced, not told.
"""

from __future__ import annotations

import re

import msgspec

from podqos.manifest.plain import Plain

# Fields with words of Kubernetes, amounts and times, with all that is below them.
_OF_KUBERNETES = """
action allocatable apiVersion capacity component controlledResources controlledValues creationTimestamp default
defaultRequest deletionTimestamp effect eventTime finishedAt firstTimestamp hard kind kubeletconfig lastObservedTime
lastTimestamp lastTransitionTime lifecycle limits max maxAllowed maxLimitRequestRatio maxUnavailable medium min
minAllowed minAvailable mode nodeAffinityPolicy nodeTaintsPolicy operator os overhead phase podFixed preemptionPolicy
protocol qosClass reason requests resizePolicy restartPolicy restartPolicyRules scopeName scopes sizeLimit startTime
startedAt time timestamp type updateMode usage used whenUnsatisfiable
"""
_AS_IT_IS = frozenset(_OF_KUBERNETES.split())
# Words that say nothing about who uses them.
_HARMLESS = """
amd64 arm64 cluster control cpu critical default false kube kubelet lease linux master memory misc node plane pods
public runtime system true windows worker
"""
_PLAIN_WORDS = frozenset(_HARMLESS.split())
# The fixed words of the kubelet's messages, between names and amounts.
_OF_MESSAGES = """
Attempting Container DiskPressure EmptyDir Init Killed Marking Memory MemoryPressure Need Node OOM Out PIDPressure Pod
Preempted Stopping System The Threshold Usage a admit admitted and available be by cgroup condition consumption
container containers critical deletion did does encountered ephemeral exceeded exceeds failed for grace had has have
imminent in inodes is its kill killed larger limit liveness local low memory node not now of on order out period
pid pids pod probe process quantity reclaim rejected request resource response restarted runtime score shutdown
shutting specified spec startup status storage terminated the to total usage using victim volume was which will with
within
"""
_MESSAGE_WORDS = frozenset(_OF_MESSAGES.split())
_AMOUNT = re.compile(r"[0-9]+(?:[kMGTPEm]|[KMGTPE]i)?")
_WORD = re.compile(r"[A-Za-z0-9]+")
_SWITCH = re.compile(r"[A-Za-z0-9.,_=%-]*")
_IN_BRACKETS = re.compile(r" \(.*\)", re.DOTALL)
_NODE = re.compile(r"( node )(\S+)")
_RIGHT = re.compile(r"(permission of )(.*)( to list)")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Anonymizer:
    """Replaces names. Use one instance for a whole snapshot."""

    def __init__(self) -> None:
        self._words: dict[str, str] = {}

    def line(self, data: bytes) -> bytes:
        """Return a line of a snapshot, or any JSON object, without its names."""
        value = msgspec.json.decode(data)
        if isinstance(value, dict) and value.get("kind") == "Missing":
            return msgspec.json.encode(self._missing(value))
        return msgspec.json.encode(self._value(value))

    def name(self, text: str) -> str:
        """Return the replacement of a name."""
        return text if text.isdigit() else _WORD.sub(lambda found: self._word(found[0]), text)

    def _word(self, word: str) -> str:
        if word.lower() in _PLAIN_WORDS:
            return word
        known = self._words.get(word)
        if known is None:
            known = self._words[word] = _letters(len(self._words))
        return known

    def _missing(self, note: dict[str, Plain]) -> dict[str, Plain]:
        """Return a note about what could not be read, without the reason, which is a server's own text."""
        said = note.get("assumption")
        if not isinstance(said, dict):
            return {}
        what = _IN_BRACKETS.sub("", str(said.get("what", "")))
        what = _NODE.sub(lambda found: found[1] + self.name(found[2]), what)
        value = str(said.get("value", "")).partition(":")[0]
        how = _RIGHT.sub(lambda found: found[1] + self.name(found[2]) + found[3], str(said.get("stateWith", "")))
        return {**note, "assumption": {"what": what, "value": value, "stateWith": how}}

    def _message_word(self, word: str) -> str:
        return word if word in _MESSAGE_WORDS or _AMOUNT.fullmatch(word) else self._word(word)

    def _value(self, value: Plain) -> Plain:
        if isinstance(value, str):
            return self.name(value)
        if isinstance(value, list):
            return [self._value(each) for each in value]
        return self._fields(value) if isinstance(value, dict) else value

    def _fields(self, fields: dict[str, Plain]) -> dict[str, Plain]:
        made: dict[str, Plain] = {}
        for key, value in fields.items():
            if key in _AS_IT_IS or (key == "status" and isinstance(value, str)):  # of a condition
                made[key] = value
            elif key == "uid" and isinstance(value, str):
                made[key] = self._word(value)
            elif key in {"message", "note", "fieldPath"} and isinstance(value, str):
                made[key] = _WORD.sub(lambda found: self._message_word(found[0]), value)
            elif key == "annotations" and isinstance(value, dict):
                made[key] = {
                    name: each if isinstance(each, str) and _SWITCH.fullmatch(each) else self._value(each)
                    for name, each in value.items()
                }
            elif key in {"labels", "matchLabels", "nodeSelector"} and isinstance(value, dict):
                made[key] = {self._label(name): self._value(each) for name, each in value.items()}
            elif key in {"key", "topologyKey", "matchLabelKeys", "mismatchLabelKeys"}:
                made[key] = self._labels(value)
            elif key == "selector" and isinstance(value, dict) and not {"matchLabels", "matchExpressions"} & {*value}:
                made[key] = {self._label(name): self._value(each) for name, each in value.items()}  # of a Service
            else:
                made[key] = self._value(value)
        return made

    def _labels(self, value: Plain) -> Plain:
        if isinstance(value, list):
            return [self._labels(each) for each in value]
        return self._label(value) if isinstance(value, str) else value

    def _label(self, key: str) -> str:
        """Return the replacement of a label key; Kubernetes' own keys stay."""
        domain, slash, _ = key.partition("/")
        of_kubernetes = slash and domain.endswith(("kubernetes.io", "k8s.io"))
        return key if of_kubernetes or key in {"pod-template-hash", "metadata.name"} else self.name(key)


def _letters(number: int) -> str:
    """Return the number in letters: a to z, aa to zz, and so on."""
    text = ""
    number += 1
    while number:
        number, digit = divmod(number - 1, len(_LETTERS))
        text = _LETTERS[digit] + text
    return text
