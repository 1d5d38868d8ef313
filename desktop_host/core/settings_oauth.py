"""Settings of signing in to remote servers."""

from __future__ import annotations

from dataclasses import dataclass

from desktop_host.core.auth import SignInDefaults
from desktop_host.core.settings_fields import number, text


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """How the host presents itself to authorization servers."""

    client_metadata_url: str = text("")
    """Address of a client metadata document of ours (https); empty: the host registers itself."""
    redirect_port: int = number(0, 0, 65_535)
    """Port on 127.0.0.1 that the browser comes back to; 0: any free one, kept for a server once registered."""

    def defaults(self) -> SignInDefaults:
        """For the servers that say nothing themselves."""
        return SignInDefaults(self.client_metadata_url, self.redirect_port)
