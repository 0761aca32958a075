"""Tracks the kubelet's settings: if they change, the guard restarts with the new ones.

The last known settings apply until the kubelet answers. It is asked until it does, then every few minutes, and soon
after the node shows that the kubelet has restarted. Asking may block: it has its own thread.
"""

from __future__ import annotations

from collections.abc import Callable

from msgspec.structs import replace

from podqos.guard.settings import GuardSettings
from podqos.host.linux.background import Background
from podqos.host.linux.loop import Timer
from podqos.host.shell.agent_thread import AgentThread

_UNANSWERED_SECONDS, _AGAIN_SECONDS, _SOON_SECONDS = 30.0, 300.0, 1.0


class KubeletFollower:
    """Polls the kubelet for its settings."""

    def __init__(
        self,
        settings: GuardSettings,
        ask: Callable[[], GuardSettings] | None,
        thread: AgentThread,
        on_change: Callable[[GuardSettings], None],
    ) -> None:
        """Start with the last known ``settings``; ``ask`` returns the current ones and may block."""
        self._settings, self._ask, self._on_change = settings, ask, on_change
        self._thread = thread
        self._background = Background(thread.loop, "asking")
        self._timer: Timer | None = None
        self._status: object = ()

    @property
    def is_waiting(self) -> bool:
        """Whether the next request is scheduled and none is running."""
        return self._timer is not None

    def ask(self) -> None:
        """Ask now."""
        self._timer = None
        if self._ask is not None:
            self._background.run(self._ask, self._heard)

    def seen(self, status: object) -> None:
        """Check the node's description of its kubelet; ask soon if it has changed."""
        before, self._status = self._status, status
        if before and before != status:
            self._ask_after(_SOON_SECONDS)

    def close(self) -> None:
        """Stop asking."""
        self._background.close()

    def _ask_after(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self._thread.loop.call_after(seconds, self.ask)

    def _heard(self, result: GuardSettings | Exception) -> None:
        if isinstance(result, GuardSettings) and not self._is_known(result):
            self._on_change(result)
            return
        if isinstance(result, Exception):
            self._thread.note(f"using the last known kubelet settings: {result}")
        if self._timer is None:
            self._ask_after(_UNANSWERED_SECONDS if isinstance(result, Exception) else _AGAIN_SECONDS)

    def _is_known(self, settings: GuardSettings) -> bool:
        """Whether settings are the same, even if they come from elsewhere: a restarted kubelet is another process."""
        return replace(settings, kubelet_source=self._settings.kubelet_source) == self._settings
