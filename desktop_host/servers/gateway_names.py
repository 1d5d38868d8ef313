"""Names of the gateway: tools and prompts as `alias__name`, resources as `gateway://alias/URI`."""

from __future__ import annotations

from desktop_host.core.errors import UserFault

SCHEME = "gateway://"


def address(server: str, uri: str) -> str:
    """The gateway's address of a resource, or of a template: its own follows as it is, so that it can be filled in."""
    return f"{SCHEME}{server}/{uri}"


def parted(uri: str) -> tuple[str, str]:
    """The server and its own address.

    Raises:
        UserFault: `not_found`, no address of the gateway.
    """
    server, slash, own = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or not slash or not server or not own:
        raise UserFault("not_found", f"{uri} is no resource of the gateway ({SCHEME}SERVER/URI)", reason="resource",
                        name=uri)  # fmt: skip
    return server, own
