"""Settings of what is told to a collector of the person's own."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.settings_fields import flag, text


@dataclass(frozen=True, slots=True)
class Telemetry:
    """OpenTelemetry traces over OTLP/HTTP; nothing is sent unless `on`. Needs the extra of that name."""

    on: bool = flag(False)
    endpoint: str = text("")
    """Whole address of the collector's traces; empty: as `OTEL_EXPORTER_OTLP_*` say, else 127.0.0.1:4318."""
    content: bool = flag(False)
    """Whether what was said goes along too, secrets taken out."""
