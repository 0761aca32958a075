"""What is found out about objects: the one thing that grows while questions are answered.

An answer notes here what is wrong and does not keep it from being given; whoever asked reads ``problems`` afterwards.
"""

from __future__ import annotations

from collections.abc import Iterable

from podqos.manifest.problems import Problem


class Notes:
    """What is wrong, each problem once, and what had to be assumed.

    ``policy_problems`` are known already, and told elsewhere.
    """

    def __init__(self, policy_problems: Iterable[Problem] = ()) -> None:
        self.problems: list[Problem] = []
        """Known from reading, and found since."""
        self.policy_problems: list[Problem] = list(policy_problems)
        """Those that leave it open what the policies are."""
        self.missing: set[tuple[str, str]] = set()
        """Kinds and names of the classes that had to be assumed so far."""
        self._known: set[Problem] = set()

    def note(self, problems: Iterable[Problem]) -> None:
        """Keep problems; one that is known already stays one."""
        for problem in problems:
            if problem not in self._known:
                self._known.add(problem)
                self.problems.append(problem)

    def note_policies(self, problems: Iterable[Problem]) -> None:
        """Keep problems of policies."""
        for problem in problems:
            if problem not in self._known and problem not in self.policy_problems:
                self.policy_problems.append(problem)
            self.note((problem,))
