"""Keeps up with the kubelet's settings: a guard whose kubelet has others by now begins anew with them.

The last known settings count until the kubelet says otherwise. It is asked until it answers, then every few minutes,
and soon after the node shows that it has started anew. Asking may take as long as it likes: it has a thread of its own.
"""

from __future__ import annotations

from collections.abc import Callable

from podqos.guard.settings import GuardSettings
from podqos.host.linux.background import Background
from podqos.host.linux.loop import Timer
from podqos.host.shell.agent_thread import AgentThread

_UNANSWERED_SECONDS, _AGAIN_SECONDS, _SOON_SECONDS = 30.0, 300.0, 1.0


class KubeletFollower:
    """Asks the kubelet for its settings, again and again."""

    def __init__(
        self,
        settings: GuardSettings,
        ask: Callable[[], GuardSettings] | None,
        thread: AgentThread,
        on_change: Callable[[GuardSettings], None],
    ) -> None:
        """Begin with the last known ``settings``; ``ask`` returns them as they are now, for which it may wait."""
        self._settings, self._ask, self._on_change = settings, ask, on_change
        self._thread = thread
        self._background = Background(thread.loop, "asking")
        self._timer: Timer | None = None
        self._status: object = ()

    @property
    def is_waiting(self) -> bool:
        """Whether it is to be asked at a later time, and is not being asked now."""
        return self._timer is not None

    def ask(self) -> None:
        """Ask now."""
        self._timer = None
        if self._ask is not None:
            self._background.run(self._ask, self._heard)

    def seen(self, status: object) -> None:
        """See what the node says of its kubelet; ask soon where that has changed."""
        before, self._status = self._status, status
        if before and before != status:
            self._ask_after(_SOON_SECONDS)

    def close(self) -> None:
        """Ask no more."""
        self._background.close()

    def _ask_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._thread.loop.call_after(seconds, self.ask)

    def _heard(self, result: GuardSettings | Exception) -> None:
        if isinstance(result, GuardSettings) and result != self._settings:
            self._on_change(result)
            return
        if isinstance(result, Exception):
            self._thread.note(f"using the last known kubelet settings: {result}")
        if self._timer is None:
            self._ask_after(_UNANSWERED_SECONDS if isinstance(result, Exception) else _AGAIN_SECONDS)
