"""Logs without secrets, crash reports, health checks, the report a person can send, and telemetry if wanted."""

from desktop_host.diagnostics.crash import CrashReports
from desktop_host.diagnostics.health import Health
from desktop_host.diagnostics.log import Logs, start_logging
from desktop_host.diagnostics.redaction import Redactor
from desktop_host.diagnostics.telemetry import Telemetry

__all__ = ["CrashReports", "Health", "Logs", "Redactor", "Telemetry", "start_logging"]
