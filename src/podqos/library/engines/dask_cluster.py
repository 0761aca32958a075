"""The workers of a Dask cluster.

Dask itself waits for ever for workers that are gone; here that ends with an error, and what is done stays done.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from podqos.errors import HostError

Task = TypeVar("Task")
Result = TypeVar("Result")

NO_WORKERS_SECONDS = 30.0
"""How long a cluster may be without workers: new ones may be on their way."""
_LOOK_SECONDS = 1.0
_ANSWER_SECONDS = 10.0
_TASKS_PER_THREAD = 2


@contextmanager
def on_dask(function: Callable[[Task], Result], tasks: Iterable[Task], address: str) -> Iterator[Iterator[Result]]:
    """Give an iterator over the results of all tasks, as they come from a cluster."""
    try:
        from distributed import Client
    except ImportError as error:
        raise HostError("a Dask cluster needs distributed: in a clone of podqos, pip install '.[dask]'") from error
    # What goes wrong is told once, as an error, and not in Dask's log as well.
    logging.getLogger("distributed").setLevel(logging.CRITICAL)
    make: Any = Client
    try:
        client = make(address, timeout=_ANSWER_SECONDS, set_as_default=False)
    except (OSError, TimeoutError, ValueError) as error:
        raise HostError(f"no Dask scheduler answers at {address}: {error}") from error
    try:
        yield _Cluster(client, address).results(function, iter(tasks))
    finally:
        client.close(timeout=2)


class _Cluster:
    """A connected cluster."""

    def __init__(self, client: Any, address: str) -> None:  # noqa: ANN401 - distributed has no types
        self._client = client
        self._address = address
        self._without_since: float | None = None

    def results(self, function: Callable[[Task], Result], tasks: Iterator[Task]) -> Iterator[Result]:
        """Yield the results. So many tasks are under way as keep all threads busy."""
        done: SimpleQueue[Any] = SimpleQueue()
        under_way: set[Any] = set()
        room = _TASKS_PER_THREAD * max(1, self._threads())
        # Sent once, and kept by the workers; what it takes along may be large.
        shared = self._client.submit(_same, function, pure=False)
        has_more = True
        while has_more or under_way:
            while has_more and len(under_way) < room:
                for task in tasks:
                    future = self._client.submit(_call, shared, task, pure=False)
                    under_way.add(future)
                    future.add_done_callback(done.put)
                    break
                else:
                    has_more = False
            if not under_way:
                break
            try:
                future = done.get(timeout=_LOOK_SECONDS)
            except Empty:
                room = max(room, _TASKS_PER_THREAD * self._threads())
                continue
            self._without_since = None
            under_way.discard(future)
            yield self._result(future)

    def _threads(self) -> int:
        """Return how many threads the cluster has; raise if it has had none for long."""
        try:
            threads = sum(self._client.nthreads().values())
        except (OSError, TimeoutError, RuntimeError) as error:
            raise self._lost("the scheduler no longer answers") from error
        if threads:
            self._without_since = None
        elif self._without_since is None:
            self._without_since = time.monotonic()
        elif time.monotonic() - self._without_since > NO_WORKERS_SECONDS:
            raise self._lost("it has no workers left")
        return int(threads)

    def _result(self, future: Any) -> Any:  # noqa: ANN401
        """Return a result. It is on the worker that computed it, and computed again if that is lost."""
        from distributed import KilledWorker

        patience = _LOOK_SECONDS
        while True:
            try:
                return future.result(timeout=patience)
            except TimeoutError:
                self._threads()
                patience *= 2  # it may be large, and the network slow
            except KilledWorker as error:
                raise self._lost("a task crashed several workers in a row (out of memory?)") from error
            except ImportError as error:
                raise self._lost(f"its workers lack podqos or have another version ({error})") from error
            except Exception as error:
                if future.status in {"cancelled", "lost"} or isinstance(error, OSError):
                    raise self._lost("the scheduler no longer answers") from error
                raise

    def _lost(self, what: str) -> HostError:
        return HostError(f"the Dask cluster at {self._address}: {what}")


def _same(function: Callable[[Task], Result]) -> Callable[[Task], Result]:
    return function


def _call(function: Callable[[Task], Result], task: Task) -> Result:
    return function(task)
