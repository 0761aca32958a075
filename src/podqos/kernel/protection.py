"""How much of each cgroup ``memory.min`` and ``memory.low`` really protect.

A setting is a claim against the parent: children that together claim and use more than the parent affords them share
it by use, and unclaimed protection is passed down by size (``memory_recursiveprot``). Direct children of the cgroup
that is being reclaimed have what they claim; that cgroup itself is not protected at all.

Source: Linux mm/page_counter.c (effective_protection, page_counter_calculate_protection).
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec import Struct

from podqos.kernel.memcg import Memcg


class Protection(Struct, frozen=True, gc=False):
    """What reclaim must leave a cgroup (``min``) and what it leaves as long as it can (``low``)."""

    min_bytes: int
    low_bytes: int

    @property
    def first_bytes(self) -> int:
        """What is left alone as long as there is anything else to take."""
        return max(self.min_bytes, self.low_bytes)


UNPROTECTED = Protection(0, 0)


def protections(target: Memcg, *, recursive: bool) -> dict[str, Protection]:
    """Return the effective protection of every cgroup below ``target``, by path, while ``target`` is reclaimed."""
    found = {target.path: UNPROTECTED}
    _descend(target, found, is_target=True, recursive=recursive)
    return found


def _descend(parent: Memcg, found: dict[str, Protection], *, is_target: bool, recursive: bool) -> None:
    if not parent.children:
        return
    own = found[parent.path]
    # Most trees protect nothing: then there is nothing to hand out.
    nothing = own == UNPROTECTED
    min_claims = sum(_claimed(child, _min) for child in parent.children.values())
    low_claims = sum(_claimed(child, _low) for child in parent.children.values())
    for child in parent.children.values():
        settings = child.settings
        if is_target:
            found[child.path] = Protection(settings.min_bytes, settings.low_bytes)
        elif nothing:
            found[child.path] = UNPROTECTED
        else:
            found[child.path] = Protection(
                effective_bytes(child, parent, _min, own.min_bytes, min_claims, recursive=recursive),
                effective_bytes(child, parent, _low, own.low_bytes, low_claims, recursive=recursive),
            )
        _descend(child, found, is_target=False, recursive=recursive)


def effective_bytes(
    child: Memcg,
    parent: Memcg,
    setting: Callable[[Memcg], int],
    afforded_bytes: int,
    claims_bytes: int,
    *,
    recursive: bool,
) -> int:
    """Return what of a child's claim holds where the parent affords ``afforded_bytes`` and all children claim more."""
    claimed = _claimed(child, setting)
    if claims_bytes > afforded_bytes:
        return claimed * afforded_bytes // claims_bytes
    unclaimed = afforded_bytes - claims_bytes
    others = parent.usage_bytes - claims_bytes
    if recursive and unclaimed > 0 and others > 0:
        return claimed + unclaimed * (child.usage_bytes - claimed) // others
    return claimed


def _claimed(memcg: Memcg, setting: Callable[[Memcg], int]) -> int:
    """Return the protection that is set and used."""
    return min(memcg.usage_bytes, setting(memcg))


def _min(memcg: Memcg) -> int:
    return memcg.settings.min_bytes


def _low(memcg: Memcg) -> int:
    return memcg.settings.low_bytes
