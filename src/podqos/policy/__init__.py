"""Pure. Requirements for pods: the policy file, and the validation of a pod against it.

``model`` is the language, ``reading`` reads policies from plain values and reports problems, ``matching`` finds the
rules and exemptions that apply to an object, ``judge`` its violations, ``budgets`` the violations of all objects
together, and ``words`` puts a violation into words, the same for ``check``, ``podqos policy test`` and the webhook.
``admission_policies`` converts the same requirements to objects that an API server enforces, with the expressions of
``cel``.
"""
