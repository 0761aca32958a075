"""Run independent tasks on the cores of this machine, or on a Dask or Ray cluster.

All three are joblib backends, so one plan runs on any of them. What a run needs is sent along; the workers only need
podqos installed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any, TypeVar

from podqos.errors import HostError, InvalidOption

Task = TypeVar("Task")
Result = TypeVar("Result")

_FIX = "processes, dask=HOST:PORT or ray=HOST:PORT"


def carry_out(
    function: Callable[[Task], Result], tasks: Iterable[Task], *, engine: str = "processes", jobs: int = -1
) -> Iterator[Result]:
    """Yield the result of every task as it comes, in any order. Tasks are taken when there is room for them.

    ``jobs`` is how many run at a time on this machine; -1 is one per core.
    """
    if engine == "processes" and jobs == 1:
        yield from map(function, tasks)
        return
    try:
        import joblib
    except ImportError as error:
        raise HostError("several runs at a time need joblib: pip install 'podqos[sweep]', or use --jobs 1") from error
    with _backend(engine, jobs):
        calls = (joblib.delayed(function)(task) for task in tasks)
        yield from joblib.Parallel(return_as="generator_unordered")(calls)


def _backend(engine: str, jobs: int) -> AbstractContextManager[object]:
    import joblib

    name, _, address = engine.partition("=")
    if name == "processes" and not address:
        here: AbstractContextManager[object] = joblib.parallel_config(backend="loky", n_jobs=jobs)
        return here
    if name == "dask" and address:
        return _dask(address)
    if name == "ray" and address:
        return _ray(address)
    raise InvalidOption(f"unknown engine {engine!r}", where="--engine", fix=_FIX)


@contextmanager
def _dask(address: str) -> Iterator[None]:
    try:
        from distributed import Client
        from joblib import parallel_config
    except ImportError as error:
        raise HostError("a Dask cluster needs distributed: pip install 'podqos[dask]'") from error
    with ExitStack() as stack:
        try:
            make: Any = Client
            client = stack.enter_context(make(address, timeout="10s", set_as_default=False))
        except (OSError, TimeoutError) as error:
            raise HostError(f"no Dask scheduler answers at {address}: {error}") from error
        stack.enter_context(parallel_config(backend="dask", client=client))
        yield


@contextmanager
def _ray(address: str) -> Iterator[None]:
    try:
        import ray
        from joblib import parallel_config
        from ray.util.joblib import register_ray
    except ImportError as error:
        raise HostError("a Ray cluster needs ray: pip install ray 'podqos[sweep]'") from error
    try:
        ray.init(address=address, log_to_driver=False)
    except ConnectionError as error:
        raise HostError(f"no Ray cluster answers at {address}: {error}") from error
    try:
        register_ray()
        with parallel_config(backend="ray", n_jobs=-1):
            yield
    finally:
        ray.shutdown()
