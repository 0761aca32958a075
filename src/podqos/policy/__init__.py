"""Pure. What a cluster's owner demands of pods: the policy file, and the judgement of a pod by it.

``model`` is the language, ``reading`` makes policies of plain values and says what is wrong with them, ``matching``
says which rules and exemptions are about an object, ``judge`` what it violates, ``budgets`` what all of them violate
together, ``words`` words a violation: findings of ``check``, ``podqos policy test`` and the webhook say the same.
``admission_policies`` puts the same demands into objects that an API server enforces, by the expressions of ``cel``.
"""
