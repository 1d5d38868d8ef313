"""Answers that come late: they are dropped where the widget that asked is gone."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec

from PySide6.QtCore import QObject
from shiboken6 import isValid

P = ParamSpec("P")


def while_alive(owner: QObject, act: Callable[P, object]) -> Callable[P, None]:
    """`act`, but nothing once `owner` was deleted. For callbacks handed to a view-model, which lives longer."""

    def guarded(*args: P.args, **kwargs: P.kwargs) -> None:
        if isValid(owner):
            act(*args, **kwargs)

    return guarded
