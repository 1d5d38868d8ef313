"""What a server may ask of the host: answered by the `Reviewer`, for a session that is known and never guessed."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from pathlib import Path
from typing import Any

import mcp_types as T
from mcp.client import ClientRequestContext

from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.exchange import FormRequest, UrlRequest
from desktop_host.core.values import freeze, thaw
from desktop_host.servers.sampling import sampling_request, sampling_result
from desktop_host.servers.wiring import Floor, Wiring

REFUSED = -1
"""The protocol's code for a sampling request that a person refused."""
UNFIT = frozenset({"usage", "unsupported_param"})
"""Requests that no person could let through: the server is told what is wrong with them."""
UNKNOWN_CALLER = "the host cannot tell which conversation asks: several calls are running, or none"

_log = logging.getLogger(__name__)


class Callbacks:
    """The callbacks of one connection. None of them raises: that would cost the call more than the answer."""

    def __init__(
        self,
        wiring: Wiring,
        floor: Floor,
        list_changed: Callable[[str], None],
        updated: Callable[[str], None],
    ) -> None:
        self._wiring, self._floor = wiring, floor
        self._list_changed, self._updated = list_changed, updated

    async def sampling(
        self, context: ClientRequestContext, params: T.CreateMessageRequestParams
    ) -> T.CreateMessageResult | T.CreateMessageResultWithTools | T.ErrorData:
        """The server asks the host's model."""
        if self._wiring.config.sampling.mode == "off":
            return self._refused(code=REFUSED, message="sampling is switched off for this server")
        origin = self._floor.origin()
        if origin is None:
            return self._refused(code=REFUSED, message=UNKNOWN_CALLER)
        try:
            with self._floor.asking():
                asked = sampling_request(self._floor.server, params)
                reply = await self._wiring.reviewer.sample(origin, asked)
            return sampling_result(asked, reply)
        except HostError as error:
            self._note("sampling", error)
            if error.code in UNFIT:
                return self._refused(code=T.INVALID_PARAMS, message=error.message)
            code = REFUSED if isinstance(error, UserFault) or error.exit_code in (3, 4) else T.INTERNAL_ERROR
            why = error.message if error.code == "permission" else f"the request was refused: {error.code}"
            return self._refused(code=code, message=why)
        except Exception:  # A fault of ours must not end the connection: logged, and refused to the server.
            return self._bug("sampling")

    async def elicitation(
        self, context: ClientRequestContext, params: T.ElicitRequestFormParams | T.ElicitRequestURLParams
    ) -> T.ElicitResult | T.ErrorData:
        """The server asks the person."""
        origin = self._floor.origin()
        if origin is None:
            return self._refused(code=T.INVALID_REQUEST, message=UNKNOWN_CALLER)
        asked: FormRequest | UrlRequest
        if isinstance(params, T.ElicitRequestURLParams):
            asked = UrlRequest(params.message, params.url, params.elicitation_id)
        else:
            asked = FormRequest(params.message, freeze(params.requested_schema))
        try:
            with self._floor.asking():
                reply = await self._wiring.reviewer.elicit(origin, asked)
        except HostError as error:
            self._note("elicitation", error)
            return T.ElicitResult(action="cancel")
        except Exception:  # As above.
            return self._bug("elicitation")
        if reply.action == "stop":
            return self._refused(code=REFUSED, message="the person wants no more questions during this call")
        if reply.action != "accept":
            return T.ElicitResult(action="decline" if reply.action == "decline" else "cancel")
        content = thaw(reply.content) if reply.content is not None and isinstance(asked, FormRequest) else None
        return T.ElicitResult(action="accept", content=content)

    async def roots(self, context: ClientRequestContext) -> T.ListRootsResult | T.ErrorData:
        """The server asks which folders it may know of."""
        origin = self._floor.origin()
        try:
            folders = self._wiring.reviewer.roots(origin.session if origin else self._floor.session)
        except Exception:  # As above.
            return self._bug("roots")
        made = [T.Root.model_validate({"uri": Path(f).as_uri(), "name": Path(f).name or f}) for f in folders]
        return T.ListRootsResult(roots=made)

    async def logging(self, params: T.LoggingMessageNotificationParams) -> None:
        """A line for the server's log."""
        data: Any = params.data
        text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False, default=str)
        self._wiring.log.add("message", f"{params.logger}: {text}" if params.logger else text, params.level)
        origin = self._floor.origin()
        if origin is not None:
            try:
                self._wiring.reviewer.logged(origin, params.level, params.logger, freeze(data))
            except Exception:  # As above; a notification has no answer.
                self._bug("logging")

    async def message(self, message: Any) -> None:
        """Changed lists, updated resources, lines that were no message."""
        match message:
            case T.ToolListChangedNotification():
                self._list_changed("tools")
            case T.ResourceListChangedNotification():
                self._list_changed("resources")
            case T.PromptListChangedNotification():
                self._list_changed("prompts")
            case T.ElicitCompleteNotification(params=done):
                self._floor.finish(done.elicitation_id)
            case T.ResourceUpdatedNotification(params=params):
                self._updated(params.uri)
            case Exception():
                self._wiring.log.add("stdout", f"not a message: {str(message)[:500]}", "warning")

    def _refused(self, code: int, message: str) -> T.ErrorData:
        self._floor.refusals.append((code, message))
        return T.ErrorData(code=code, message=message)

    def _note(self, what: str, error: HostError) -> None:
        self._wiring.log.add("host", f"{what} refused: {error.code}", "info")

    def _bug(self, what: str) -> T.ErrorData:
        _log.exception("%s of %s failed", what, self._floor.server)
        self._wiring.log.add("host", f"{what} failed inside the host; see its log", "error")
        return self._refused(code=T.INTERNAL_ERROR, message=f"{what} failed inside the host")
