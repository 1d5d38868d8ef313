"""The kinds of settable fields: what widget, choices or range a setting has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Any


def choice(default: str, *choices: str) -> Any:
    """One of some words."""
    return field(default=default, metadata={"widget": "choice", "choices": choices})


def number(default: float, low: float, high: float) -> Any:
    """A whole number of a range."""
    return field(default=default, metadata={"widget": "number", "range": (low, high)})


def amount(default: float, low: float, high: float) -> Any:
    """A number with decimals, of a range."""
    return field(default=default, metadata={"widget": "amount", "range": (low, high)})


def flag(default: bool) -> Any:
    """Yes or no."""
    return field(default=default, metadata={"widget": "flag"})


def text(default: str) -> Any:
    """A line of text."""
    return field(default=default, metadata={"widget": "text"})


def lines(default: str, check: Callable[[str], object] | None = None) -> Any:
    """Text of several lines; `check` refuses by `UserFault` what is not fit."""
    return field(default=default, metadata={"widget": "multiline", "check": check})
