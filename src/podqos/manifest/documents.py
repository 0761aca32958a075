"""Read YAML and JSON other than manifests (configuration files, tables) strictly and with positions.

Unlike in ``reading``, the first error is final: half of a configuration is worse than none.
"""

from __future__ import annotations

from podqos.errors import InputError
from podqos.manifest.problems import SyntaxProblem
from podqos.manifest.strictyaml import Document, read_documents
from podqos.manifest.text import normalise


def plain_documents(source: str, data: bytes) -> list[Document]:
    """Return the documents of a file that hold something; ``source`` is the name to report it under."""
    try:
        documents = [document for document in read_documents(normalise(data)) if document.value is not None]
        for document in documents:
            for problem in document.problems:
                raise problem
    except SyntaxProblem as problem:
        line, column = problem.position
        raise InputError(problem.what, where=f"{source}:{line}:{column}", fix=problem.fix) from problem
    return documents
