"""Calls the Container Runtime Interface over a Unix socket, with errors in one line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import grpc
import msgspec

from podqos.errors import HostError
from podqos.host.runtimes.cri_answers import Answer
from podqos.host.runtimes.cri_messages import PACKAGE, decode, encode
from podqos.naming import stated_with

_CALL_SECONDS = 60.0
_IMAGE_CALLS = ("ListImages", "ImageStatus", "RemoveImage")


class CriError(HostError):
    """The runtime refused: the object ``is_gone``, or a command timed out (``is_late``)."""

    def __init__(self, text: str, code: grpc.StatusCode) -> None:
        super().__init__(text)
        self.is_gone = code is grpc.StatusCode.NOT_FOUND
        self.is_late = code is grpc.StatusCode.DEADLINE_EXCEEDED


class Cri:
    """A connection to a runtime."""

    def __init__(self, socket: Path) -> None:
        self._socket = socket
        self._channel = grpc.insecure_channel(f"unix://{socket}")

    def call(self, method: str, request: Mapping[str, object], seconds: float = 0) -> Answer:
        """Call and wait for the answer; ``seconds`` are added to the usual timeout."""
        service = "ImageService" if method in _IMAGE_CALLS else "RuntimeService"
        ask = self._channel.unary_unary(f"/{PACKAGE}.{service}/{method}")
        try:
            data = ask(encode(f"{method}Request", request), timeout=seconds + _CALL_SECONDS)
        except grpc.RpcError as error:
            raise self._explained(method, error) from None
        return msgspec.convert(decode(f"{method}Response", data), Answer, strict=False)

    def close(self) -> None:
        """Close the connection."""
        self._channel.close()

    def _explained(self, method: str, error: grpc.RpcError) -> HostError:
        code, details = error.code(), error.details()
        if code is grpc.StatusCode.UNAVAILABLE:
            why = "connection refused" if self._socket.exists() else "no such file"
            return HostError(
                f"no container runtime answers on {self._socket} ({why}): start it "
                "(apt-get install containerd), or name its socket with " + stated_with("runtime_socket")
            )
        if code is grpc.StatusCode.UNIMPLEMENTED:
            return HostError(f"{self._socket} does not speak CRI v1: {details}")
        return CriError(f"{method}: {details}", code)
