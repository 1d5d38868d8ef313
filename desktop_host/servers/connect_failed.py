"""A connection that could not be made, and whether another try may help."""

from __future__ import annotations

from mcp import MCPError
from pydantic import ValidationError

from desktop_host.core.errors import KnownFault, PeerFault
from desktop_host.core.servers import FailureReport
from desktop_host.servers.failure import main_leaf
from desktop_host.servers.http import HttpFacts

PROBE_S = 10.0
"""How long the SDK waits for the answer to its probe before it falls back on the same connection."""


class ConnectFailed(Exception):
    """A connection could not be made.

    `report` tells all; `final` that another try cannot help; `era_suspect` that the server may have died of
    being asked for its era, so that it deserves a fresh start in the other one.
    """

    def __init__(self, report: FailureReport, *, final: bool, era_suspect: bool) -> None:
        super().__init__(report.message)
        self.report, self.final, self.era_suspect = report, final, era_suspect


def judged(report: FailureReport, cause: BaseException, facts: HttpFacts, probe_cut: bool) -> ConnectFailed:
    """The failure with its prospects; `probe_cut`: the time was over before the SDK could fall back by itself."""
    leaf = main_leaf(cause)
    final = report.code in ("auth", "bad_config", "vault_locked", "vault_unavailable") or (
        isinstance(leaf, PeerFault) or (isinstance(leaf, KnownFault) and "reason" in leaf.params)
    )
    suspect = not final and (
        (isinstance(leaf, MCPError) and facts.status != 401 and not facts.unreachable)
        or isinstance(leaf, (RuntimeError, ValidationError))
        or probe_cut
    )
    return ConnectFailed(report, final=final, era_suspect=suspect)
