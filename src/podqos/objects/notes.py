"""Notes about objects: the only state that grows while questions are answered.

Answers note problems here that do not prevent them; the caller reads ``problems`` afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.manifest.problems import Problem


class Notes:
    """Problems, each once, and assumptions.

    ``policy_problems`` are known already, and told elsewhere.
    """

    def __init__(self, policy_problems: Iterable[Problem] = ()) -> None:
        self.problems: list[Problem] = []
        """Problems from reading, and found since."""
        self.policy_problems: list[Problem] = list(policy_problems)
        """The problems that make the policies uncertain."""
        self.missing: set[tuple[str, str]] = set()
        """Kinds and names of the classes that had to be assumed so far."""
        self._known: set[Problem] = set()

    def note(self, problems: Iterable[Problem]) -> None:
        """Add problems, each once."""
        for problem in problems:
            if problem not in self._known:
                self._known.add(problem)
                self.problems.append(problem)

    def note_policies(self, problems: Iterable[Problem]) -> None:
        """Add problems of policies."""
        for problem in problems:
            if problem not in self._known and problem not in self.policy_problems:
                self.policy_problems.append(problem)
            self.note((problem,))
