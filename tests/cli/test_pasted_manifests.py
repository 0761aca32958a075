"""A manifest copied from a page, a terminal or a chat is answered with the line that is wrong and what to write."""

from __future__ import annotations

import pytest

from podqos.cli.main import main

POD = """\
apiVersion: v1
kind: Pod
metadata:
  name: web
spec:
  containers:
  - name: web
    image: web
    resources:
      limits:
        memory: 1Gi
"""


def _numbered(form: str) -> str:
    return "".join(form.format(number, line) for number, line in enumerate(POD.splitlines(), 1))


PASTED = {
    "a Markdown fence": ("```yaml\n" + POD + "```\n", "line 1 is a Markdown fence: remove it"),
    "a fence below a sentence": ("The pod:\n\n```yaml\n" + POD + "```\n", "line 3 is a Markdown fence: remove it"),
    "a prompt": ("$ kubectl get pod web -o yaml\n" + POD, "line 1 is a shell prompt: remove it"),
    "a prompt below": (POD + "$ kubectl apply -f pod.yaml\n", "line 12 is a shell prompt: remove it"),
    "output below": (POD + "pod/web created\n", "line 12 is the output of a command: remove it"),
    "line numbers": (_numbered("{:2}  {}\n"), "every line begins with its number: remove the numbers"),
    "line numbers and colons": (_numbered("{}: {}\n"), "every line begins with its number: remove the numbers"),
    "line numbers and bars": (_numbered("{} | {}\n"), "every line begins with its number: remove the numbers"),
    "a quoted mail": (
        "".join(f"> {line}\n" for line in POD.splitlines()),
        "every line begins with >, as in a quoted mail: remove that",
    ),
    "a diff": (
        POD.replace("    image: web", "-    image: web\n+    image: web2"),
        "line 9 begins with +, as in a diff: keep the new lines, without their marks",
    ),
    "a diff of a new file": (
        "".join(f"+{line}\n" for line in POD.splitlines()),
        "line 1 begins with +, as in a diff: keep the new lines, without their marks",
    ),
    "tabs": (POD.replace("      limits:", "\tlimits:"), "indent with spaces, not tabs"),
    "non-breaking spaces": (
        POD.replace("    image", "\u00a0\u00a0\u00a0\u00a0image"),
        "line 8 has U+00A0, which looks like a space: write a space",
    ),
    "a non-breaking space behind the colon": (
        POD.replace("image: web", "image:\u00a0web"),
        "line 8 has U+00A0, which looks like a space: write a space",
    ),
    "an en dash": (POD.replace("- name", "– name"), 'line 7 begins with –: begin items of a list with "- "'),
    "a bullet": (POD.replace("- name", "• name"), 'line 7 begins with •: begin items of a list with "- "'),
    "a full-width colon": (
        POD.replace("image: web", "image： web"),
        "line 8 has a full-width colon: write a plain one and a space",
    ),
    "curly quotes around a value": (
        POD.replace("image: web", "image: “a: b”"),
        "line 8 has curly quotes: write straight ones",
    ),
    "curly quotes around an amount": (POD.replace("1Gi", "“1Gi”"), "did you mean 1Gi?"),
    "no space behind a colon": (
        POD.replace("image: web", "image:web"),
        'line 8 has no space after its colon: write "image: web"',
    ),
    "a colon in a value": (
        POD.replace("image: web", "workingDir: echo a: b"),
        'put the value of line 8 in quotes: workingDir: "echo a: b"',
    ),
    "a reserved character": (
        POD.replace("image: web", "image: @web"),
        'put the value of line 8 in quotes: image: "@web"',
    ),
    "an ellipsis": (POD.replace("    image: web", "    ..."), "line 8 marks lines that were left out: write them out"),
    "too much indentation": (
        POD.replace("    image", "      image"),
        'indent line 8 by 4 spaces, like "name" above it',
    ),
    "too little indentation": (POD.replace("    image", "   image"), 'indent line 8 by 4 spaces, like "name" above it'),
    "a list without dashes": (POD.replace("  - name", "    name"), 'begin each item with "- "'),
    "a list as documents print it": (
        POD.replace("  - name: web\n    image: web\n", "  - name: web\n  image: web\n"),
        '"image: web" already has a value: start a list item with a dash ("- image: web"), or indent both lines alike',
    ),
    "indentation that was lost": (
        "\n".join(line.lstrip() for line in POD.splitlines()),
        "indent it, and everything below metadata and spec, by two spaces",
    ),
    "a template": (POD.replace("1Gi", "{{ .Values.memory }}"), "this looks like a template: render it first"),
    "gigabytes": (POD.replace("1Gi", "64GB"), "did you mean 64Gi or 64G?"),
}  # fmt: skip


@pytest.mark.parametrize(("text", "fix"), PASTED.values(), ids=PASTED)
def test_a_pasted_manifest_is_answered_with_what_to_do(capsys, tmp_path, text, fix):
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    assert main(["explain", "-f", str(file)]) == 2
    said = capsys.readouterr().err.splitlines()
    assert said[0].startswith(f"{file}:")
    assert said[0].endswith(f"({fix})")


@pytest.mark.parametrize("end", ["\r\n", "\r", "\n"])
def test_line_ends_of_any_system_are_read(capsys, tmp_path, end):
    file = tmp_path / "pod.yaml"
    file.write_bytes(f"\ufeff{POD}".replace("\n", end).encode())
    assert main(["explain", "-f", str(file)]) == 0


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata:\n  a: |\n    ```\n    $ kubectl get\n    + 1\n",
        POD.replace("image: web", "image: web # see “docs”"),
        POD.replace("image: web", 'image: "a: b"'),
    ],
)
def test_what_is_not_broken_gets_no_hint(capsys, tmp_path, text):
    file = tmp_path / "pod.yaml"
    file.write_text(text)
    main(["explain", "-f", str(file)])
    assert "error" not in capsys.readouterr().err
