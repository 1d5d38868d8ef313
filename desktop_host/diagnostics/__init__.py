"""Logs without secrets, crash reports, health checks and the report a person can send."""

from desktop_host.diagnostics.crash import CrashReports
from desktop_host.diagnostics.health import Health
from desktop_host.diagnostics.log import Logs, start_logging
from desktop_host.diagnostics.redaction import Redactor
from desktop_host.diagnostics.report import write_report

__all__ = ["CrashReports", "Health", "Logs", "Redactor", "start_logging", "write_report"]
