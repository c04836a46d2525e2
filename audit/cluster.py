"""Joining a cluster: the existing engines that joblib already speaks to, dask and ray.

Blocks are addressed by their streams, so where they are played, and how often a lost one is played
again, cannot change a record.
"""

from __future__ import annotations

import logging
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path

from joblib import parallel_config

from audit.errors import UsageError

ENGINES = ("dask", "ray")


@contextmanager
def joined(backend: str, scheduler: str, jobs: int) -> Iterator[None]:
    """Make a cluster joblib's active backend for the time of a run; other backends need none.

    Args:
        backend: A joblib backend.
        scheduler: Address of a running dask scheduler or ray head; empty starts workers here.
        jobs: How many workers to start here; -1 for one per core.

    Raises:
        UsageError: When the engine is not installed, or nothing answers at the address.
    """
    if backend not in ENGINES:
        if scheduler:
            raise UsageError(f"--scheduler {scheduler!r} needs --backend dask or ray")
        yield
        return
    with ExitStack() as stack:
        _join(stack, backend, scheduler, jobs)
        stack.enter_context(parallel_config(backend=backend))
        yield


def _join(stack: ExitStack, backend: str, scheduler: str, jobs: int) -> None:
    try:
        (_dask if backend == "dask" else _ray)(stack, scheduler, None if jobs < 0 else jobs)
    except ImportError as error:
        raise UsageError(
            f"backend {backend!r}: {error}. Install it with: pip install 'dpaudit[{backend}]'"
        ) from None
    except (OSError, TimeoutError, ValueError, RuntimeError) as error:
        where = f"at {scheduler!r}" if scheduler else "here"
        raise UsageError(f"backend {backend!r}: no cluster {where}: {error}") from None


def lost(error: BaseException) -> bool:
    """Whether an error is the engine's own: workers or the scheduler went away."""
    return type(error).__module__.partition(".")[0] in {"distributed", "ray", "tornado"}


def _dask(stack: ExitStack, scheduler: str, jobs: int | None) -> None:
    from distributed import Client, LocalCluster

    _hush()
    here = scheduler or stack.enter_context(
        LocalCluster(n_workers=jobs, threads_per_worker=1, dashboard_address=None)
    )
    client = stack.enter_context(Client(here, timeout=20))
    client.register_worker_callbacks(partial(_see, str(Path.cwd())))


def _hush() -> None:
    """What was lost is said once, by us, and not by every part of the engine."""
    for name in ("distributed", "tornado", "asyncio", *logging.root.manager.loggerDict):
        if name.partition(".")[0] in {"distributed", "tornado", "asyncio"}:
            logging.getLogger(name).setLevel(logging.CRITICAL)


def _see(folder: str) -> None:
    """Targets are modules of the folder in which the run was started."""
    if folder not in sys.path:
        sys.path.insert(0, folder)


def _require_an_answer(address: str) -> None:
    """Raise OSError where nothing listens; ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if host and port.isdigit():
        socket.create_connection((host, int(port)), timeout=10).close()


def _ray(stack: ExitStack, scheduler: str, jobs: int | None) -> None:
    import ray
    from ray.util.joblib import register_ray

    _require_an_answer(scheduler)
    where = {"address": scheduler} if scheduler else {"num_cpus": jobs}
    paths = {"env_vars": {"PYTHONPATH": str(Path.cwd())}}
    ray.init(**where, runtime_env=paths, log_to_driver=False)
    stack.callback(ray.shutdown)
    register_ray()
