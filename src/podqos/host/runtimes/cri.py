"""Calls of the Container Runtime Interface over a Unix socket, with errors in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TypeVar

import grpc
import msgspec

from podqos.errors import HostError
from podqos.host.runtimes.cri_messages import PACKAGE, decode, encode
from podqos.host.runtimes.engine import Execution

_CALL_SECONDS = 60.0
_IMAGE_CALLS = ("ListImages", "ImageStatus", "RemoveImage")
Answer = TypeVar("Answer")


class CriError(HostError):
    """The runtime refused; ``is_gone`` if what was asked about does not exist."""

    def __init__(self, text: str, *, is_gone: bool) -> None:
        super().__init__(text)
        self.is_gone = is_gone


class Cri:
    """A connection to a runtime."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel = grpc.insecure_channel(f"unix://{socket}")

    def call(self, method: str, request: Mapping[str, object], kind: type[Answer]) -> Answer:
        """Call and wait for the answer."""
        return self._result(method, self._begin(method, request, _CALL_SECONDS), kind)

    def do(self, method: str, request: Mapping[str, object]) -> None:
        """Call something that answers nothing."""
        self.call(method, request, dict)

    def execute(self, request: Mapping[str, object], execution: Execution, kind: type[Answer]) -> Answer:
        """Run a command in a container; cancelling the call ends the command."""
        future = self._begin("ExecSync", request, None)
        execution.begin(future.cancel)
        return self._result("ExecSync", future, kind)

    def close(self) -> None:
        """Hang up."""
        self._channel.close()

    def _begin(self, method: str, request: Mapping[str, object], seconds: float | None) -> grpc.Future:
        service = "ImageService" if method in _IMAGE_CALLS else "RuntimeService"
        call = self._channel.unary_unary(f"/{PACKAGE}.{service}/{method}")
        return call.future(encode(f"{method}Request", request), timeout=seconds)

    def _result(self, method: str, future: grpc.Future, kind: type[Answer]) -> Answer:
        try:
            data = future.result()
        except grpc.FutureCancelledError:
            raise HostError(f"{method} was stopped") from None
        except grpc.RpcError as error:
            raise self._explained(method, error) from None
        return msgspec.convert(decode(f"{method}Response", data), kind, strict=False)

    def _explained(self, method: str, error: grpc.RpcError) -> HostError:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            why = "it refuses" if self._socket.exists() else "there is no such file"
            return HostError(
                f"no container runtime answers on {self._socket} ({why}): start it "
                "(apt-get install containerd), or name its socket with --runtime-socket"
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return HostError(f"{self._socket} does not speak CRI v1: {details}")
        return CriError(f"{method}: {details}", is_gone=code is grpc.StatusCode.NOT_FOUND)
