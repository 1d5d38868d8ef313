"""What a full reader of the event stream may lose."""

from __future__ import annotations

from enum import Enum
from typing import ClassVar


class Delivery(Enum):
    """What happens to an event when a reader is full."""

    KEEP = "keep"
    LATEST = "latest"
    MERGE = "merge"
    DROP = "drop"


class Kept:
    """Journaled, and no reader may lose it."""

    __slots__ = ()
    journaled: ClassVar[bool] = True
    delivery: ClassVar[Delivery] = Delivery.KEEP


class Passing:
    """Not journaled; the newest of its subject is enough for a full reader."""

    __slots__ = ()
    journaled: ClassVar[bool] = False
    delivery: ClassVar[Delivery] = Delivery.LATEST
