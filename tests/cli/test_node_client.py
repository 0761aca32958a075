"""What a person is told when the node cannot be reached, or is another one."""

from __future__ import annotations

import errno
import os
import socket
import sys
import threading

import pytest

from podqos import __version__
from podqos.cli.commands.node import listen_option
from podqos.cli.main import main
from podqos.cli.node_client import NodeClient, path
from podqos.errors import HostError, InvalidOption


@pytest.fixture
def answering(tmp_path):
    """Answer every request on a socket with the given bytes."""
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(tmp_path / "api.sock"))
    listener.listen()

    def begin(answer):
        def serve():
            while True:
                try:
                    client, _ = listener.accept()
                except OSError:
                    return
                with client:
                    client.recv(65536)
                    client.sendall(answer)

        threading.Thread(target=serve, daemon=True).start()
        return NodeClient(str(tmp_path))

    yield begin
    listener.shutdown(socket.SHUT_RDWR)
    listener.close()


def _answer(body, *, server=f"podqos/{__version__}", status="200 OK"):
    return f"HTTP/1.1 {status}\r\nServer: {server}\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


@pytest.mark.parametrize("command", ["status", "journal"])
def test_without_a_node_there_is_one_line_that_says_what_to_do(tmp_path, capsys, command):
    assert main(["node", command, "--state-dir", str(tmp_path)]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "no node is running with this state directory" in line
    assert "podqos node run" in line


def test_a_socket_without_a_listener_is_no_node(tmp_path):
    with socket.socket(socket.AF_UNIX) as stale:
        stale.bind(str(tmp_path / "api.sock"))
    with pytest.raises(HostError, match="no node is running"):
        NodeClient(str(tmp_path)).get("/status")


def test_another_users_node_is_denied(monkeypatch, tmp_path):
    def denied(*_):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(socket.socket, "connect", denied)
    with pytest.raises(HostError, match="permission denied: run as the node's user"):
        NodeClient(str(tmp_path)).get("/status")


def test_another_version_is_told_once_and_the_answer_counts(answering, capsys):
    client = answering(_answer("ok", server="podqos/9.9"))
    assert client.get("/healthz") == client.get("/healthz") == b"ok"
    assert capsys.readouterr().err.count("the node is podqos 9.9") == 1


def test_another_program_is_no_node(answering):
    with pytest.raises(HostError, match="not a podqos node"):
        answering(_answer("ok", server="nginx")).get("/status")


def test_what_the_node_refuses_is_said_in_its_words(answering):
    with pytest.raises(HostError, match="there is no pod a/b"):
        answering(_answer("there is no pod a/b\n", status="404 Not Found")).get("/x")


def test_an_answer_that_is_not_understood_is_no_traceback(answering):
    with pytest.raises(HostError, match="cannot be decoded"):
        answering(_answer("{")).value("/status", dict)


@pytest.mark.parametrize(
    "answer", [b"", b"garbage\r\n\r\n", b"HTTP/1.1 200 OK\r\nServer: podqos/0.1.0\r\nContent-Length: 9\r\n\r\nx"]
)
def test_an_answer_that_breaks_off_is_no_traceback(answering, answer):
    with pytest.raises(HostError):
        answering(answer).get("/status")


def test_paths_are_quoted():
    assert path("a/b", "c d") == "/a%2Fb/c%20d"
    assert path("journal", follow=True, tailLines=None, sinceUs=5) == "/journal?follow=true&sinceUs=5"


@pytest.mark.parametrize(
    ("text", "address"),
    [("127.0.0.1:80", ("127.0.0.1", 80)), ("localhost:0", ("127.0.0.1", 0)), ("[::1]:10255", ("::1", 10255))],
)
def test_the_api_may_listen_on_this_machine(text, address):
    assert listen_option(text, anywhere=False) == address


@pytest.mark.parametrize(
    "text", ["0.0.0.0:80", "[::]:80", "192.168.1.1:80", ":80", "127.0.0.1", "host:80", "127.0.0.1:x"]
)
def test_the_api_does_not_listen_elsewhere_unless_told_to(text):
    with pytest.raises(InvalidOption, match="--listen"):
        listen_option(text, anywhere=False)


def test_who_insists_may_listen_anywhere():
    assert listen_option("0.0.0.0:80", anywhere=True) == ("0.0.0.0", 80)  # noqa: S104 - that is the point


def test_without_the_extra_a_node_says_what_to_install(monkeypatch, capsys, tmp_path):
    monkeypatch.setitem(sys.modules, "inotify_simple", None)
    for module in ("manifest_watch", "node"):
        monkeypatch.delitem(sys.modules, f"podqos.host.node.{module}", raising=False)
    assert main(["node", "run", "--manifests", str(tmp_path), "--state-dir", str(tmp_path / "state")]) == 3
    assert "pip install '.[node]'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_a_kernel_that_cannot_signal_exactly_one_process_runs_no_node(tmp_path, monkeypatch, capsys):
    def missing(_pid):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(os, "pidfd_open", missing)
    (tmp_path / "m").mkdir()
    assert main(["node", "run", "--manifests", str(tmp_path / "m"), "--state-dir", str(tmp_path / "s")]) == 3
    said = capsys.readouterr().err.splitlines()[-1]
    assert said == (
        "podqos: error: pods cannot be killed safely without pidfd_open, which Linux has since 5.3: "
        "Function not implemented"
    )
