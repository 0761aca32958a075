"""``podqos eval oom``: the oom_score_adj of every container of a pod."""

from __future__ import annotations

import msgspec

from podqos.admission.defaulting import defaulted
from podqos.cli.eval.qos import api_validation_errors
from podqos.cli.eval.resources import pod_of
from podqos.qos.classes import qos_class_of
from podqos.qos.oom import oom_scores


def evaluate(input: dict[str, object]) -> dict[str, object]:  # noqa: A002 - the word of the interface
    """Answer one line of the family ``oom``."""
    given = pod_of(input["pod"])
    after_defaulting = defaulted(given)
    pod = after_defaulting if input.get("applyDefaults") else given
    qos_class = qos_class_of(pod)
    capacity = msgspec.convert(input["nodeMemoryCapacity"], int)
    return {
        "qosClass": qos_class,
        "oomScoreAdj": {score.container: score.value for score in oom_scores(pod, qos_class, capacity, bounded=False)},
        "apiValidationErrors": api_validation_errors(after_defaulting),
    }
