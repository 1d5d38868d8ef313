"""What is told when a skill's file cannot be written."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from desktop_host.i18n import LANGUAGES, Translator
from desktop_host.skills.file_faults import file_fault


@pytest.mark.parametrize(
    ("number", "code", "reason"),
    [
        (errno.ENOSPC, "disk_full", None), (errno.EDQUOT, "disk_full", None),
        (errno.EROFS, "database_error", "not_writable"), (errno.EACCES, "database_error", "not_writable"),
        (errno.EIO, "database_error", "file_io"),
    ],
)  # fmt: skip
def test_only_a_full_disk_is_called_one(number: int, code: str, reason: str | None) -> None:
    fault = file_fault(OSError(number, os.strerror(number)), Path("/skills/x"), "x cannot be written")
    assert (fault.code, fault.params.get("reason")) == (code, reason)
    for language in LANGUAGES:
        told, remedy = Translator(language).error(fault.code, fault.params, fault.message)
        assert "/skills/x" in told and remedy and "{" not in told + remedy
