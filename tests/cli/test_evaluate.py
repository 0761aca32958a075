"""``podqos eval`` answers every line, also one that it cannot use."""

from __future__ import annotations

import io
import json
import sys

from podqos.cli.main import main


def test_a_missing_field_is_named(capsys, monkeypatch):
    monkeypatch.setattr(
        sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id":1,"input":{}}\n{"id":2,"input":{"string":"1Gi"}}\n'))
    )
    main(["eval", "quantity"])
    first, second = map(json.loads, capsys.readouterr().out.splitlines())
    assert first == {"id": 1, "error": "invalid input: the field 'a' is missing"}
    assert (second["id"], "result" in second) == (2, True)
