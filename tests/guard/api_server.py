"""An API server for these tests that treats pods as a real v1.36 one was recorded to, or as badly as a test wants.

It knows pods, their status and eviction subresources, Events and a Node; it lists and watches pods by their node. What
the kubelet does about a status is ``suite_kubelet``'s.
"""

from __future__ import annotations

import json
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qsl, unquote, urlsplit

Json = dict
STRATEGIC_MERGE = "application/strategic-merge-patch+json"


@dataclass
class Request:
    """A request that came, and what was said to it."""

    method: str
    path: str
    query: dict[str, str]
    body: Json | None
    status: int = 0
    """0 while it is not answered, and if it never was."""

    @property
    def is_patch(self) -> bool:
        return self.method == "PATCH" and "dryRun" not in self.query


class _Says(Exception):
    """The server says no."""

    def __init__(self, code: int, reason: str, message: str, **details: object) -> None:
        super().__init__(message)
        self.code = code
        self.body = {"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure", "message": message}
        self.body |= {"reason": reason, "code": code, "details": details}


@dataclass
class ApiServer:
    """The server. What a test may change at any time is public."""

    node: str = "node-1"
    is_away: bool = False
    """Connections are closed without a word."""
    hangs: bool = False
    """Requests are taken, and nothing is said until it no longer hangs: then connections are closed."""
    slow_seconds: float = 0.0
    """How long it thinks about everything that changes something; it does it at once, and says so later."""
    is_late: bool = False
    """It thinks before it does it."""
    refuses: Callable[[Request], tuple[int, str, str] | None] = lambda _request: None
    """Status, reason and message for what it does not allow."""
    is_stale: bool = False
    """Lists and watches say nothing new."""
    budget_refuses: bool = False
    version: str = "v1.36.4"
    configz: Json = field(default_factory=dict)
    requests: list[Request] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.lock = threading.RLock()
        self._pods: dict[tuple[str, str], Json] = {}
        self._events: dict[tuple[str, str], Json] = {}
        self.log: list[tuple[int, str, Json]] = []
        """What a watch is told: resourceVersion, type, pod."""
        self._version = 100
        self._changed = threading.Condition(self.lock)
        self._is_over = threading.Event()
        self.node_object: Json = {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.node, "uid": str(uuid.uuid4()), "annotations": {}, "resourceVersion": "1"},
        }

    # ---- for tests -------------------------------------------------------------------------------------------------

    @contextmanager
    def serving(self, port: int = 0) -> Iterator[ApiServer]:
        """Serve at ``url`` until the test is over."""
        api = self

        class Handler(_Handler):
            server_api = api

        server = _Server(("127.0.0.1", port), Handler)
        self.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=lambda: server.serve_forever(0.02), daemon=True)
        thread.start()
        try:
            yield self
        finally:
            self._is_over.set()
            with self._changed:
                self._changed.notify_all()
            server.shutdown()
            server.server_close()
            thread.join()

    def add_pod(self, pod: Json) -> Json:
        """Create a pod, as it will be seen."""
        with self.lock:
            metadata = {"namespace": "default", "uid": str(uuid.uuid4()), "generation": 1, **pod["metadata"]}
            metadata["creationTimestamp"] = _now()
            made = {"apiVersion": "v1", "kind": "Pod", **deepcopy(pod), "metadata": metadata}
            made.setdefault("status", {"phase": "Pending"})
            made.setdefault("spec", {}).setdefault("nodeName", self.node)
            self._store(made, "ADDED")
            return deepcopy(made)

    def delete_pod(self, namespace: str, name: str) -> None:
        """Delete a pod for good."""
        with self.lock:
            gone = self._pods.pop((namespace, name), None)
            if gone is not None:
                self._tell("DELETED", gone)

    def pod(self, namespace: str, name: str) -> Json | None:
        """Return a pod as it is now."""
        with self.lock:
            return deepcopy(self._pods.get((namespace, name)))

    def change(self, namespace: str, name: str, uid: str, by: Callable[[Json], object]) -> None:
        """Change a pod in place, if it is still that one."""
        with self.lock:
            pod = self._pods.get((namespace, name))
            if pod is not None and pod["metadata"]["uid"] == uid:
                changed = deepcopy(pod)
                by(changed)
                if changed != pod:
                    self._store(changed, "MODIFIED")

    def patches(self) -> list[Request]:
        """Return the requests that patched something, or tried."""
        return [each for each in list(self.requests) if each.is_patch]

    # ---- answers ---------------------------------------------------------------------------------------------------

    def answer(self, request: Request, content_type: str) -> tuple[int, Json]:
        """Return status and body; raise ``_Says`` for a no."""
        parts = [unquote(part) for part in request.path.strip("/").split("/")]
        with self.lock:
            if (said := self.refuses(request)) is not None:
                raise _Says(*said)
            match request.method, parts:
                case "GET", ["version"]:
                    return 200, {"major": "1", "minor": "36", "gitVersion": self.version}
                case "GET", ["api", "v1", "pods" | "nodes" as what]:
                    if "sendInitialEvents" in request.query:
                        raise _Says(422, "Invalid", "sendInitialEvents: Forbidden: sendInitialEvents is forbidden")
                    return 200, self._list(request.query) if what == "pods" else self._nodes()
                case "GET", ["api", "v1", "nodes", name] if name == self.node:
                    return 200, self.node_object
                case "GET", ["api", "v1", "nodes", name, "proxy", "configz"] if name == self.node:
                    return 200, {"kubeletconfig": self.configz}
                case "GET", ["api", "v1", "namespaces", namespace, "pods", name]:
                    return 200, self._pod(namespace, name)
                case "GET", ["api", "v1", "namespaces", namespace, "events"]:
                    there = [each for (where, _), each in self._events.items() if where == namespace]
                    return 200, {"kind": "EventList", "apiVersion": "v1", "metadata": {}, "items": there}
                case "PATCH", ["api", "v1", "namespaces", namespace, "pods", name, "status"]:
                    return 200, self._patch(namespace, name, request, content_type)
                case "POST", ["api", "v1", "namespaces", namespace, "pods", name, "eviction"]:
                    return 201, self._evict(namespace, name, request.body or {})
                case "POST", ["api", "v1", "namespaces", namespace, "events"]:
                    return 201, self._post_event(namespace, request.body or {})
        raise _Says(404, "NotFound", "the server could not find the requested resource")

    def annotate_node(self, **annotations: str) -> None:
        """Change the node's annotations."""
        self._change_node(lambda node: node["metadata"].update(annotations=annotations))

    def show_node(self, **status: object) -> None:
        """Change what the kubelet says of itself."""
        self._change_node(lambda node: node.update(status=status))

    def _change_node(self, by: Callable[[Json], object]) -> None:
        with self.lock:
            self._version += 1
            by(self.node_object)
            self.node_object["metadata"]["resourceVersion"] = str(self._version)

    def watch_nodes(self, query: dict[str, str]) -> Iterator[Json]:
        """Yield the node whenever it has changed since a version, until the test is over."""
        since = int(query.get("resourceVersion") or 0)
        while not self._is_over.wait(0.02) and not self.is_away:
            with self.lock:
                node = deepcopy(self.node_object)
            if (version := int(node["metadata"]["resourceVersion"])) > since:
                since = version
                yield {"type": "MODIFIED", "object": node}

    def watch(self, query: dict[str, str]) -> Iterator[Json]:
        """Yield what happens to pods from a version on, until the test is over."""
        since = int(query.get("resourceVersion") or 0)
        while not self._is_over.is_set() and not self.is_away:
            with self._changed:
                news = [] if self.is_stale else [each for each in self.log if each[0] > since]
                if not news:
                    self._changed.wait(0.05)
            for version, kind, pod in news:
                since = version
                if self._is_selected(pod, query):
                    yield {"type": kind, "object": pod}

    def _list(self, query: dict[str, str]) -> Json:
        items = [deepcopy(pod) for pod in self._pods.values() if self._is_selected(pod, query)]
        return {
            "kind": "PodList",
            "apiVersion": "v1",
            "metadata": {"resourceVersion": str(self._version)},
            "items": items,
        }

    def _nodes(self) -> Json:
        metadata = {"resourceVersion": str(self._version)}
        return {"kind": "NodeList", "apiVersion": "v1", "metadata": metadata, "items": [deepcopy(self.node_object)]}

    def _is_selected(self, pod: Json, query: dict[str, str]) -> bool:
        selector = query.get("fieldSelector", "")
        return not selector or selector == f"spec.nodeName={pod['spec'].get('nodeName', '')}"

    def _pod(self, namespace: str, name: str) -> Json:
        found = self._pods.get((namespace, name))
        if found is None:
            raise _Says(404, "NotFound", f'pods "{name}" not found', name=name, kind="pods")
        return deepcopy(found)

    def _patch(self, namespace: str, name: str, request: Request, content_type: str) -> Json:
        if content_type != STRATEGIC_MERGE:
            raise _Says(415, "UnsupportedMediaType", f"the tests' server takes {STRATEGIC_MERGE} alone")
        body = request.body or {}
        pod = self._pod(namespace, name)
        told = body.get("metadata", {})
        version, uid = pod["metadata"]["resourceVersion"], pod["metadata"]["uid"]
        if told.get("resourceVersion", version) != version:
            why = "the object has been modified; please apply your changes to the latest version and try again"
            raise _Says(409, "Conflict", f'Operation cannot be fulfilled on pods "{name}": {why}')
        if told.get("uid", uid) != uid:
            why = f'metadata.uid: Invalid value: "{told["uid"]}": field is immutable'
            raise _Says(422, "Invalid", f'Pod "{name}" is invalid: {why}')
        pod["metadata"].setdefault("annotations", {}).update(told.get("annotations", {}))
        _merge_status(pod["status"], body.get("status", {}))
        if "dryRun" not in request.query and pod != self._pods[namespace, name]:
            self._store(pod, "MODIFIED")
        return pod

    def _evict(self, namespace: str, name: str, body: Json) -> Json:
        pod = self._pod(namespace, name)
        options = body.get("deleteOptions", {})
        uid = options.get("preconditions", {}).get("uid")
        if uid not in {None, pod["metadata"]["uid"]}:
            why = f"the UID in the precondition ({uid}) does not match the UID in record ({pod['metadata']['uid']})"
            raise _Says(409, "Conflict", f'Operation cannot be fulfilled on Pod "{name}": Precondition failed: {why}')
        if self.budget_refuses:
            raise _Says(
                429,
                "TooManyRequests",
                "Cannot evict pod as it would violate the pod's disruption budget.",
                causes=[{"reason": "DisruptionBudget"}],
            )
        pod["metadata"] |= {
            "deletionTimestamp": _now(),
            "deletionGracePeriodSeconds": options.get("gracePeriodSeconds", 30),
        }
        _merge_status(pod["status"], {"conditions": [{"type": "DisruptionTarget", "reason": "EvictionByEvictionAPI"}]})
        self._store(pod, "MODIFIED")
        return {"kind": "Status", "apiVersion": "v1", "status": "Success", "code": 201}

    def _post_event(self, namespace: str, event: Json) -> Json:
        name = event["metadata"]["name"]
        if (namespace, name) in self._events:
            raise _Says(409, "AlreadyExists", f'events "{name}" already exists')
        if event["metadata"].get("namespace") != namespace or event["involvedObject"].get("namespace") != namespace:
            raise _Says(422, "Invalid", f'Event "{name}" is invalid: involvedObject.namespace')
        if len(name) > 253:
            raise _Says(422, "Invalid", f'Event "{name}" is invalid: metadata.name')
        self._events[namespace, name] = event
        return event

    def _store(self, pod: Json, kind: str) -> None:
        self._version += 1
        pod["metadata"]["resourceVersion"] = str(self._version)
        self._pods[pod["metadata"]["namespace"], pod["metadata"]["name"]] = pod
        self._tell(kind, pod)

    def _tell(self, kind: str, pod: Json) -> None:
        if kind == "DELETED":
            self._version += 1
            pod["metadata"]["resourceVersion"] = str(self._version)
        self.log.append((self._version, kind, deepcopy(pod)))
        self._changed.notify_all()

    @property
    def is_over(self) -> bool:
        """Whether the test is."""
        return self._is_over.is_set()

    def think(self) -> None:
        """Be as slow as a test wants, until it wants that no more."""
        until = time.monotonic() + self.slow_seconds
        while self.slow_seconds and time.monotonic() < until and not self.is_over:
            self.wait(0.02)

    def wait(self, seconds: float) -> None:
        """Think."""
        self._is_over.wait(seconds)


def _merge_status(status: Json, told: Json) -> None:
    """Merge as ``+patchMergeKey=type`` says for conditions; other fields are replaced."""
    for name, value in told.items():
        if name != "conditions":
            status[name] = value
            continue
        there = {each["type"]: each for each in status.setdefault("conditions", [])}
        for condition in value:
            if condition["type"] in there:
                there[condition["type"]].update(condition)
            else:
                status["conditions"].insert(0, dict(condition))


def _now() -> str:
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """Say nothing: clients that go away are part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    server_api: ApiServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._serve()

    def do_PATCH(self) -> None:
        self._serve()

    def do_POST(self) -> None:
        self._serve()

    def _serve(self) -> None:
        api, url = self.server_api, urlsplit(self.path)
        data = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if api.is_away or api.hangs:
            while api.hangs and not api.is_over:
                api.wait(0.05)
            self.close_connection = True
            return
        request = Request(self.command, url.path, dict(parse_qsl(url.query)), json.loads(data) if data else None)
        api.requests.append(request)
        thinks = request.method != "GET"
        try:
            if api.is_late and thinks:
                api.think()
            status, body = api.answer(request, self.headers.get("Content-Type", ""))
            if request.query.get("watch") in {"1", "true"}:
                self._watch(request)
                return
        except _Says as said:
            status, body = said.code, said.body
        if not api.is_late and thinks:
            api.think()
        request.status = status
        self._say(status, json.dumps(body).encode())

    def _say(self, status: int, data: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def _watch(self, request: Request) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        api = self.server_api
        for event in (api.watch_nodes if request.path.endswith("/nodes") else api.watch)(request.query):
            line = json.dumps(event).encode() + b"\n"
            self.wfile.write(f"{len(line):x}\r\n".encode() + line + b"\r\n")
        self.close_connection = True
