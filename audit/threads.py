"""One BLAS and OpenMP thread in every process that plays: processes share the work, not threads.

A sum that several threads share is added up in another order, so its last bits would depend on the
cores of a machine; and threads that wait for each other burn processor time.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_VARIABLES = (
    *("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
    *("BLIS_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"),
)


def one_thread(libraries: ThreadpoolController | None = None) -> AbstractContextManager[object]:
    """Within it, the libraries that are loaded, or those that were found before, use one thread."""
    limited: AbstractContextManager[object] = (libraries or loaded()).limit(limits=1)
    return limited


def loaded() -> ThreadpoolController:
    """The libraries with threads of their own that this process has loaded; takes milliseconds."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def ask_for_one_thread() -> None:
    """Libraries that this process and its children have yet to load will compute on one thread."""
    os.environ.update(dict.fromkeys(_VARIABLES, "1"))


def one_thread_from_now() -> None:
    """For a process of ours: what is loaded, and what is yet to be loaded."""
    ask_for_one_thread()
    one_thread()
