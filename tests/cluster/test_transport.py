"""One GET: within its time and size, whatever a server does; TLS, proxies, compression."""

from __future__ import annotations

import gzip
import json
import socket
import subprocess
import threading
import time
from base64 import b64encode
from contextlib import closing, suppress

import pytest
from msgspec.structs import replace

from cluster.certificates import Authority
from cluster.recorded import api_server, recorded
from cluster.serving import Server, status
from podqos.cluster.certificates import valid_until
from podqos.cluster.cluster import Cluster
from podqos.cluster.kubeconfig import Access, ExecConfig, User
from podqos.cluster.resources import NODES, PODS
from podqos.errors import BadAnswer, ClusterError, InputError, Refused, Unauthorized, Unreachable

ALL_OF_IT = 45.0
"""No test of a bad server takes longer, however busy the machine is; a server that hangs would take a minute."""


def read_nodes(url, patience, **access):
    with Cluster(Access(url, **access), patience=patience) as cluster:
        return cluster.read(NODES)


# ---- servers that behave ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("compresses", [False, True])
def test_connections_are_kept_and_answers_decompressed(compresses):
    with Server(api_server, compresses=compresses) as server, Cluster(Access(server.url)) as cluster:
        assert [len(cluster.read(NODES)) for _ in range(3)] == [4, 4, 4]
    assert server.connections == 1
    assert server.requests[0].header("Accept-Encoding") == "gzip"


@pytest.mark.parametrize("size", [1, 7, 4096, 1 << 20])
@pytest.mark.parametrize("is_compressed", [False, True])
def test_answers_may_come_in_chunks_of_any_size(patient, size, is_compressed):
    body = recorded("lists/nodes.json")
    body = gzip.compress(body) if is_compressed else body

    def reply(wire):
        wire.head(Transfer_Encoding="chunked", **({"Content_Encoding": "gzip"} if is_compressed else {}))
        wire.send(b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in cut(body, size)) + b"0\r\n\r\n")

    with Server(lambda _: reply) as server:
        assert len(read_nodes(server.url, patient)) == 4


def cut(data, size):
    return [data[start : start + size] for start in range(0, len(data), size)]


def test_compression_can_be_turned_off():
    with Server(api_server, compresses=True) as server, Cluster(Access(server.url, is_compressed=False)) as cluster:
        assert len(cluster.read(NODES)) == 4
    assert server.requests[0].header("Accept-Encoding") == "identity"


def test_a_server_behind_a_path_is_asked_below_it(patient):
    def answer(request):
        return api_server(replace_path(request)) if request.path.startswith("/k8s/c-1/") else status(404, "NotFound")

    def replace_path(request):
        request.target = request.target.removeprefix("/k8s/c-1")
        return request

    with Server(answer) as server:
        assert len(read_nodes(f"{server.url}/k8s/c-1", patient)) == 4


def test_a_connection_that_the_server_has_closed_meanwhile_is_replaced(patient):
    closing_time = threading.Event()

    def answer(request):
        def reply(wire):
            body = recorded("lists/nodes.json")
            wire.head(Content_Length=str(len(body)))
            wire.send(body)
            closing_time.wait(300)  # then it closes, without having said so

        return reply

    with Server(answer) as server, Cluster(Access(server.url), patience=patient) as cluster:
        cluster.read(NODES)
        closing_time.set()
        time.sleep(0.1)
        assert len(cluster.read(NODES)) == 4
    assert server.connections == 2


def test_only_get_is_ever_sent():
    with Server(api_server) as server, Cluster(Access(server.url)) as cluster:
        cluster.version()
        cluster.read(NODES)
        next(cluster.watch(NODES))
    assert {request.method for request in server.requests} == {"GET"}


def test_a_path_that_would_break_the_request_is_not_sent(patient):
    with (
        Server(api_server) as server,
        Cluster(Access(server.url), patience=patient) as cluster,
        pytest.raises(InputError, match="the path contains characters"),
    ):
        cluster.get("/version\r\nX: y")
    assert not server.requests


# ---- servers that do not ------------------------------------------------------------------------------------------


def _stalls_in_body(wire):
    wire.head(Content_Length="100")
    wire.send(b"{")
    wire.stall()


def _trickles_body(wire):
    wire.head(Content_Length="1000")
    wire.trickle(b" " * 1000, 0.05)


def _trickles_head(wire):
    wire.trickle(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200, 0.05)


def _continues_for_ever(wire):
    with suppress(OSError):
        while not wire.stopped.is_set():
            wire.send(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def _closes_in_chunk(wire):
    wire.head(Transfer_Encoding="chunked")
    wire.send(b"1000\r\n{")


def _closes_between_chunks(wire):
    wire.head(Transfer_Encoding="chunked")
    wire.chunk(b'{"kind": "NodeList",')


def _closes_in_body(wire):
    wire.head(Content_Length="100")
    wire.send(b"{")


def _cuts_gzip(wire):
    body = gzip.compress(recorded("lists/nodes.json"))[:-20]
    wire.head(Content_Encoding="gzip", Content_Length=str(len(body)))
    wire.send(body)


def _resets(wire):
    wire.head(Content_Length="100")
    wire.abort()


def _sends_gigabytes(wire):
    with suppress(OSError):
        wire.head(Content_Length=str(8 << 30))
        while not wire.stopped.is_set():
            wire.send(b" " * (1 << 16))


def _sends_a_bomb(wire):
    body = gzip.compress(bytes(32 << 20), 1)
    wire.head(Content_Encoding="gzip", Content_Length=str(len(body)))
    with suppress(OSError):
        wire.send(body)


def _sends_long_headers(wire):
    with suppress(OSError):
        wire.send(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 1_000_000)


def _sends_many_headers(wire):
    with suppress(OSError):
        wire.send(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 10_000 + b"\r\n")


@pytest.mark.parametrize(
    ("reply", "error", "words"),
    [
        pytest.param(lambda wire: wire.stall(), Unreachable, "no data for 0.4 s", id="says nothing"),
        pytest.param(_stalls_in_body, Unreachable, "no data for 0.4 s", id="stalls"),
        pytest.param(_trickles_body, Unreachable, "no complete response within 1.2 s", id="trickles"),
        pytest.param(_trickles_head, Unreachable, "no complete response within 1.2 s", id="trickles headers"),
        pytest.param(_continues_for_ever, Unreachable, "no complete response within 1.2 s", id="always says 100"),
        pytest.param(lambda _: None, Unreachable, "the server closed the connection", id="closes at once"),
        pytest.param(_closes_in_chunk, Unreachable, "the response was cut off", id="closes in a chunk"),
        pytest.param(_closes_between_chunks, Unreachable, "the response was cut off", id="closes between chunks"),
        pytest.param(_closes_in_body, Unreachable, "the response was cut off", id="closes in the body"),
        pytest.param(_cuts_gzip, Unreachable, "the response was cut off", id="cuts gzip"),
        pytest.param(_resets, Unreachable, "the server closed the connection", id="resets"),
        pytest.param(_sends_gigabytes, BadAnswer, "the response is larger than 4Mi", id="sends gigabytes"),
        pytest.param(_sends_a_bomb, BadAnswer, "the response is larger than 4Mi", id="sends a gzip bomb"),
        pytest.param(_sends_long_headers, BadAnswer, "the response is not HTTP", id="sends a long header"),
        pytest.param(_sends_many_headers, BadAnswer, "the response is not HTTP", id="sends many headers"),
        pytest.param(lambda wire: wire.send(b"SSH-2.0-x\r\n"), BadAnswer, "the response is not HTTP", id="ssh"),
        pytest.param(lambda wire: wire.send(bytes(99)), BadAnswer, "the response is not HTTP", id="zeros"),
        pytest.param(
            lambda wire: (wire.head(Transfer_Encoding="chunked"), wire.send(b"zz\r\n")),
            Unreachable,
            "the response was cut off",
            id="sends no chunk size",
        ),
        pytest.param(
            lambda wire: (wire.head(Content_Encoding="gzip", Content_Length="9"), wire.send(b"not gzip!")),
            BadAnswer,
            "the response is not HTTP",
            id="sends no gzip",
        ),
    ],
)
def test_a_server_that_misbehaves_never_holds_up_the_client(patient, reply, error, words):
    # Only what a case is about is short: a busy machine is not a bad server.
    if "no data" in words:
        patient = replace(patient, stall_seconds=0.4)
    elif "complete" in words:
        patient = replace(patient, total_seconds=1.2)
    begun = time.monotonic()
    with Server(lambda _: reply) as server, pytest.raises(error) as caught:
        read_nodes(server.url, patient)
    assert str(caught.value).startswith(f"{server.url}: {words}")
    assert time.monotonic() - begun < ALL_OF_IT


def test_the_time_for_the_whole_answer_counts_also_while_the_server_says_nothing(patient):
    begun = time.monotonic()
    with (
        Server(lambda _: _stalls_in_body) as server,
        pytest.raises(Unreachable, match=r"no complete response within 0\.5 s"),
    ):
        read_nodes(server.url, replace(patient, stall_seconds=50.0, total_seconds=0.5))
    assert time.monotonic() - begun < ALL_OF_IT


@pytest.mark.parametrize("is_compressed", [False, True])
def test_an_answer_is_read_up_to_the_last_byte_that_it_may_have(patient, is_compressed):
    body = recorded("lists/nodes.json")
    sent = gzip.compress(body) if is_compressed else body

    def reply(wire):
        wire.head(Content_Length=str(len(sent)), **({"Content_Encoding": "gzip"} if is_compressed else {}))
        wire.send(sent)

    with Server(lambda _: reply) as server:
        assert len(read_nodes(server.url, replace(patient, most_bytes=len(body)))) == 4
        with pytest.raises(BadAnswer, match="larger than"):
            read_nodes(server.url, replace(patient, most_bytes=len(body) - 1))


@pytest.mark.parametrize(
    ("body", "words"),
    [
        pytest.param(b"<html>hello</html>", "its list of nodes cannot be read", id="a page"),
        pytest.param(b"", "its list of nodes cannot be read", id="nothing"),
        pytest.param(b"[]", "its list of nodes cannot be read", id="a list"),
        pytest.param(b"\xff\xfe", "its list of nodes cannot be read", id="no text"),
        pytest.param(b'{"kind": "Status"}', "it sent Status instead of a list of nodes", id="a Status"),
        pytest.param(b"{}", "it sent something else instead of a list of nodes", id="nothing in it"),
        pytest.param(b'{"kind": "NodeList", "items": 5}', "its list of nodes cannot be read", id="a number"),
        pytest.param(b'{"kind": "NodeList", "items": [5]}', "its Node cannot be read", id="an item"),
        pytest.param(b"[" * 100_000, "its list of nodes cannot be read", id="depth"),
        pytest.param(
            b'{"kind":"NodeList","items":[{"status":{"capacity":{"cpu":"many"}}}]}',
            "its Node cannot be read",
            id="an amount",
        ),
    ],
)
def test_an_answer_that_is_no_list_is_one_line(patient, body, words):
    with Server(lambda _: body) as server, pytest.raises(BadAnswer) as caught:
        read_nodes(server.url, patient)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_nothing_listens(patient):
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
    with pytest.raises(Unreachable) as caught:
        read_nodes(f"https://127.0.0.1:{port}", patient)
    assert str(caught.value) == (
        f"https://127.0.0.1:{port}: connection refused (check the address and port, and that the server is running)"
    )


def test_no_such_name(patient):
    with pytest.raises(Unreachable, match=r"cannot resolve no-such-host\.invalid"):
        read_nodes("https://no-such-host.invalid", patient)


def test_a_server_that_accepts_and_never_shakes_hands(patient):
    with closing(socket.create_server(("127.0.0.1", 0))) as listening:
        port = listening.getsockname()[1]
        with pytest.raises(Unreachable, match=r"no TLS within 0.3 s \(is it the right port\?\)"):
            read_nodes(f"https://127.0.0.1:{port}", replace(patient, connect_seconds=0.3))


# ---- asking again -------------------------------------------------------------------------------------------------


def failing(times, reply):
    """Answer the first questions with something else."""
    left = [times]

    def answer(request):
        if left[0]:
            left[0] -= 1
            return reply
        return api_server(request)

    return answer


@pytest.mark.parametrize(
    ("reply", "pause"),
    [
        pytest.param((429, {"Content-Type": "text/plain", "Retry-After": "1"}, b"Too many requests"), 1.25, id="429"),
        pytest.param(status(500, "InternalError"), 0.25, id="500"),
        pytest.param((503, {"Retry-After": "2"}, b"apiserver is shutting down"), 2.25, id="503"),
        pytest.param((504, {"Retry-After": "soon"}, b""), 0.25, id="504 with words"),
        pytest.param((502, {"Retry-After": "99999999"}, b"<html>"), 60.25, id="502 for ever"),
    ],
)
def test_a_server_that_is_busy_is_asked_again_after_a_pause(pauses, reply, pause):
    with Server(failing(2, reply)) as server, Cluster(Access(server.url)) as cluster:
        assert len(cluster.read(NODES)) == 4
    assert pauses == [pause, pause + 0.25]
    assert len(server.requests) == 3


def test_a_server_that_stays_busy_is_given_up(patient):
    with (
        Server(lambda _: (429, {"Retry-After": "1"}, b"Too many requests")) as server,
        pytest.raises(Refused) as caught,
    ):
        read_nodes(server.url, patient)
    assert len(server.requests) == patient.attempts
    assert str(caught.value) == f"{server.url}: cannot list nodes: 429 Too many requests"


def test_an_answer_that_breaks_off_is_asked_for_again_once_the_server_is_known(patient):
    replies = iter([recorded("lists/nodes.json"), _closes_in_chunk, recorded("lists/nodes.json")])
    with Server(lambda _: next(replies)) as server, Cluster(Access(server.url), patience=patient) as cluster:
        cluster.read(NODES)
        assert len(cluster.read(NODES)) == 4


def test_what_will_not_change_is_not_asked_again(patient):
    with Server(lambda _: status(400, "BadRequest", "no")) as server, pytest.raises(Refused, match="400 no"):
        read_nodes(server.url, patient)
    assert len(server.requests) == 1


# ---- TLS ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_inline", [False, True])
def test_a_server_is_known_by_its_authority_and_a_client_by_its_certificate(authority, patient, is_inline):
    certificate, key = authority.sign("alice")
    if is_inline:
        trust = {"ca_data": authority.certificate.read_text()}
        user = User(client_certificate_data=certificate.read_text(), client_key_data=key.read_text())
    else:
        trust = {"ca_file": str(authority.certificate)}
        user = User(client_certificate=str(certificate), client_key=str(key))
    with Server(api_server, tls=authority.serving(clients=True)) as server:
        assert len(read_nodes(server.url, patient, user=user, **trust)) == 4
    assert server.requests[0].peer_certificate["subject"] == ((("commonName", "alice"),),)


def test_a_client_certificate_that_changes_on_disk_is_used_by_the_next_request(authority, patient, tmp_path):
    both = tmp_path / "both.pem"
    user = User(client_certificate=str(both))
    with (
        Server(api_server, tls=authority.serving(clients=True)) as server,
        Cluster(Access(server.url, ca_file=str(authority.certificate), user=user), patience=patient) as cluster,
    ):
        for name in ("alice", "bob"):
            certificate, key = authority.sign(name)
            both.write_text(certificate.read_text() + key.read_text())
            cluster.read(NODES)
    names = [request.peer_certificate["subject"][0][0][1] for request in server.requests]
    assert names == ["alice", "bob"]


def test_credentials_of_an_exec_plugin_may_be_a_certificate(authority, patient, tmp_path):
    certificate, key = authority.sign("carol")
    status_ = {"clientCertificateData": certificate.read_text(), "clientKeyData": key.read_text()}
    version = "client.authentication.k8s.io/v1"
    (tmp_path / "out").write_text(json.dumps({"apiVersion": version, "kind": "ExecCredential", "status": status_}))
    plugin = ExecConfig("cat", (str(tmp_path / "out"),), api_version=version)
    with Server(api_server, tls=authority.serving(clients=True)) as server:
        access = {"ca_file": str(authority.certificate), "user": User(exec=plugin)}
        assert len(read_nodes(server.url, patient, **access)) == 4
    assert server.requests[0].peer_certificate["subject"] == ((("commonName", "carol"),),)
    assert server.requests[0].header("Authorization") is None


def test_tls_server_name_is_whom_the_certificate_has_to_be_for(authority, patient):
    with Server(api_server, tls=authority.serving("named", hosts="DNS:api.internal")) as server:
        trust = {"ca_file": str(authority.certificate)}
        assert len(read_nodes(server.url, patient, tls_server_name="api.internal", **trust)) == 4
        with pytest.raises(Unreachable) as caught:
            read_nodes(server.url, patient, **trust)
    assert str(caught.value) == (
        f"{server.url}: its certificate was not issued for 127.0.0.1 (set tls-server-name in the kubeconfig)"
    )


def test_an_expired_certificate_is_one_line(authority, patient):
    with Server(api_server, tls=authority.serving(days=-1)) as server, pytest.raises(Unreachable) as caught:
        read_nodes(server.url, patient, ca_file=str(authority.certificate))
    assert str(caught.value).startswith(f"{server.url}: its certificate has expired (")


def test_an_authority_that_changes_on_disk_is_trusted_by_the_next_connection(authority, patient, tmp_path):
    trusted = tmp_path / "ca.crt"
    trusted.write_text(Authority(tmp_path / "old", "old authority").certificate.read_text())
    with (
        Server(api_server, tls=authority.serving()) as server,
        Cluster(Access(server.url, ca_file=str(trusted)), patience=patient) as cluster,
    ):
        with pytest.raises(Unreachable, match="its certificate is not trusted"):
            cluster.read(NODES)
        trusted.write_text(authority.certificate.read_text() + "\n")
        assert len(cluster.read(NODES)) == 4


def test_any_certificate_in_the_authoritys_file_is_an_anchor_also_the_servers_own(authority, patient):
    certificate, _ = authority.sign("server")
    with Server(api_server, tls=authority.serving()) as server:
        assert len(read_nodes(server.url, patient, ca_file=str(certificate))) == 4


def test_an_unknown_authority_is_one_line_unless_any_will_do(authority, patient, tmp_path):
    other = Authority(tmp_path / "other", "another authority")
    with Server(api_server, tls=authority.serving()) as server:
        for trust in ({"ca_file": str(other.certificate)}, {}):
            with pytest.raises(Unreachable, match=r"its certificate is not trusted: .* certificate-authority in the"):
                read_nodes(server.url, patient, **trust)
        assert len(read_nodes(server.url, patient, is_insecure=True)) == 4


def test_a_client_without_the_certificate_that_is_demanded(authority, patient):
    with Server(api_server, tls=authority.serving(clients=True)) as server, pytest.raises(Unreachable) as caught:
        read_nodes(server.url, patient, ca_file=str(authority.certificate))
    assert "\n" not in str(caught.value)


def test_a_401_to_an_expired_client_certificate_says_since_when(authority, patient):
    certificate, key = authority.sign("dave", days=-1)
    user = User(client_certificate=str(certificate), client_key=str(key))
    refused = status(401, "Unauthorized")
    with Server(lambda _: refused, tls=authority.serving()) as server, pytest.raises(Unauthorized) as caught:
        read_nodes(server.url, patient, ca_file=str(authority.certificate), user=user)
    until = valid_until(certificate.read_text())
    assert str(caught.value) == (
        f"{server.url}: cannot list nodes: 401 Unauthorized "
        f"(log in again; the credentials were a client certificate that expired on {until:%Y-%m-%d})"
    )


@pytest.mark.parametrize("days", [2, 20_000])
def test_until_when_a_certificate_is_valid_is_what_openssl_says(authority, days):
    certificate, _ = authority.sign("eve", days=days)
    told = subprocess.run(
        ["openssl", "x509", "-in", str(certificate), "-noout", "-enddate"], capture_output=True, text=True, check=True
    ).stdout
    until = valid_until(certificate.read_text())
    assert told.split() == ["notAfter=" + f"{until:%b}", f"{until.day}", f"{until:%H:%M:%S}", f"{until:%Y}", "GMT"]


@pytest.mark.parametrize("pem", ["", "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----", "x" * 99])
def test_what_is_no_certificate_is_not_read(pem):
    assert valid_until(pem) is None


def test_tls_to_a_server_without(patient):
    with Server(api_server) as server, pytest.raises(Unreachable, match="does not speak TLS"):
        read_nodes(server.url.replace("http:", "https:"), patient)


@pytest.mark.parametrize(
    ("access", "words"),
    [
        pytest.param({"ca_file": "/none/ca.crt"}, "/none/ca.crt: no such file", id="no authority"),
        pytest.param({"ca_data": "hello"}, "certificate-authority: no PEM certificate", id="no certificate"),
        pytest.param({"user": User(client_certificate="/none/a.crt")}, "/none/a.crt: cannot be read", id="no file"),
        pytest.param({"user": User(client_certificate_data="x")}, "client certificate: is not PEM", id="no PEM"),
    ],
)
def test_what_is_wrong_with_certificates_is_one_line(patient, access, words):
    with pytest.raises(InputError) as caught:
        read_nodes("https://127.0.0.1:1", patient, **{"is_insecure": "user" in access, **access})
    assert words in str(caught.value)


@pytest.mark.parametrize("is_inline", [False, True])
def test_an_authority_that_is_none_is_named_where_it_was_read(patient, tmp_path, is_inline):
    """The text comes before the file, and is in the kubeconfig."""
    file = tmp_path / "ca.crt"
    file.write_text("hello")
    access = {"context": "home", "ca_file": str(file), "ca_data": "hello" if is_inline else ""}
    with pytest.raises(InputError, match="no PEM certificate") as caught:
        read_nodes("https://127.0.0.1:1", patient, **access)
    assert str(caught.value).startswith("cluster of context home: " if is_inline else f"{file}: ")


def test_the_key_of_another_certificate_is_one_line(authority, patient):
    certificate, _ = authority.sign("alice")
    _, key = authority.sign("bob")
    user = User(client_certificate=str(certificate), client_key=str(key))
    with pytest.raises(InputError, match="client certificate: the client key belongs to another certificate"):
        read_nodes("https://127.0.0.1:1", patient, is_insecure=True, user=user)


# ---- proxies ------------------------------------------------------------------------------------------------------


class Proxy:
    """Speaks CONNECT or SOCKS5, and passes on what it is sent."""

    def __init__(self, kind, tls=None):
        self._kind = kind
        self._tls = tls
        self.asked = []

    def __enter__(self):
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._listening.close()

    def _accept(self):
        with suppress(OSError):
            while True:
                client, _ = self._listening.accept()
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with suppress(OSError), self._tls.wrap_socket(client, server_side=True) if self._tls else client as here:
            target = self._connect(here) if self._kind == "http" else self._socks(here)
            with socket.create_connection(target) as server:
                there = threading.Thread(target=_pump, args=(here, server), daemon=True)
                there.start()
                _pump(server, here)
                there.join(300)

    def _connect(self, client):
        head = client.recv(65_536).decode()
        self.asked.append(head)
        client.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        host, _, port = head.split()[1].rpartition(":")
        return host, int(port)

    def _socks(self, client):
        self.asked.append(client.recv(3))
        client.sendall(b"\x05\x02")
        self.asked.append(client.recv(512))
        client.sendall(b"\x01\x00")
        request = client.recv(512)
        client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
        return request[5:-2].decode(), int.from_bytes(request[-2:], "big")


def _pump(source, target):
    with suppress(OSError):
        while piece := source.recv(65_536):
            target.sendall(piece)
    with suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def test_a_stated_proxy_is_asked_for_a_tunnel(authority, patient):
    with Server(api_server, tls=authority.serving()) as server, Proxy("http") as proxy:
        access = {"proxy_url": f"http://me:secret@127.0.0.1:{proxy.port}", "ca_file": str(authority.certificate)}
        assert len(read_nodes(server.url, patient, **access)) == 4
    (head,) = proxy.asked
    assert head.startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")
    assert f"Proxy-Authorization: Basic {b64encode(b'me:secret').decode()}\r\n" in head


def test_a_socks_proxy_is_asked_for_a_connection(authority, patient):
    with Server(api_server, tls=authority.serving()) as server, Proxy("socks") as proxy:
        access = {"proxy_url": f"socks5://me:secret@127.0.0.1:{proxy.port}", "ca_file": str(authority.certificate)}
        assert len(read_nodes(server.url, patient, **access)) == 4
    assert proxy.asked == [b"\x05\x01\x02", b"\x01\x02me\x06secret"]


def test_a_proxy_may_itself_be_spoken_to_by_tls(authority, patient):
    with (
        Server(api_server, tls=authority.serving(), compresses=True) as server,
        Proxy("http", tls=authority.serving("proxy", hosts="IP:127.0.0.1")) as proxy,
    ):
        access = {"proxy_url": f"https://127.0.0.1:{proxy.port}", "ca_file": str(authority.certificate)}
        assert len(read_nodes(server.url, patient, **access)) == 4
        with Cluster(Access(server.url, **access), patience=patient) as cluster:
            assert sum(len(page.items) for page in cluster.pages(PODS)) == 53
    assert proxy.asked[0].startswith(f"CONNECT 127.0.0.1:{server.port} HTTP/1.1\r\n")


def test_a_server_that_stalls_behind_such_a_proxy_does_not_hold_up_the_client(authority, patient):
    with (
        Server(lambda _: _stalls_in_body, tls=authority.serving()) as server,
        Proxy("http", tls=authority.serving("proxy", hosts="IP:127.0.0.1")) as proxy,
    ):
        access = {"proxy_url": f"https://127.0.0.1:{proxy.port}", "ca_file": str(authority.certificate)}
        with pytest.raises(Unreachable, match=r"no data for 0\.4 s"):
            read_nodes(server.url, replace(patient, stall_seconds=0.4), **access)


def test_a_proxy_to_a_server_without_tls_is_handed_the_request(patient, monkeypatch):
    with Server(api_server) as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.url.replace("//", "//me:secret@"))
        assert len(read_nodes("http://api.example.com", patient)) == 4
    (request,) = proxy.requests
    assert request.method == "GET"
    assert request.target == "http://api.example.com:80/api/v1/nodes?limit=500"
    assert request.header("Proxy-Authorization") == f"Basic {b64encode(b'me:secret').decode()}"


def test_a_proxy_that_refuses_is_one_line(patient):
    with Server(lambda _: (403, {}, b"")) as proxy, pytest.raises(Unreachable) as caught:
        read_nodes("https://api.example.com", patient, proxy_url=proxy.url)
    assert str(caught.value) == (
        f"proxy {proxy.url}: no connection to https://api.example.com:443: 403 X (check proxy-url or HTTPS_PROXY)"
    )


def test_a_proxy_of_the_environment_is_used(authority, patient, monkeypatch):
    with Server(lambda _: (407, {}, b"")) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.url)
        with pytest.raises(ClusterError, match="407"):
            read_nodes("https://api.example.com", patient)
    assert proxy.requests[0].method == "CONNECT"
