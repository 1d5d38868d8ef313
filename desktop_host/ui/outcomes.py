"""How a call on the host's loop ended, as another thread hears of it."""

from __future__ import annotations

import asyncio
import logging
from concurrent.futures import Future
from typing import TypeVar

from desktop_host.core.errors import HostError

T = TypeVar("T")

log = logging.getLogger(__name__)


def copy_outcome(task: asyncio.Task[T], future: Future[T]) -> None:
    """Hand the outcome of a task to the future that another thread holds."""
    if task.cancelled():
        future.cancel()
    elif future.set_running_or_notify_cancel():
        cause = task.exception()
        if cause is not None:
            future.set_exception(cause)
        else:
            future.set_result(task.result())


def named(cause: BaseException) -> HostError:
    """The failure as the interface can show it; what we did not foresee is a bug and is logged whole."""
    if isinstance(cause, HostError):
        return cause
    log.error("unexpected failure on the host's loop", exc_info=cause)
    return HostError("bug", f"{type(cause).__name__}: {cause}")
