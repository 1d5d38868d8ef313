"""The verb `chat`: turns without a person watching, told as they happen."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

from desktop_host.cli.context import INTERRUPTED, Run, Verb, host_error
from desktop_host.cli.follow import Follower
from desktop_host.cli.options import attachments, session_options
from desktop_host.cli.render import JsonView, TextView
from desktop_host.cli.signals import STOPPING, On
from desktop_host.core.errors import HostError, KnownFault, UserFault
from desktop_host.core.models import Purpose
from desktop_host.core.routes import ref_for
from desktop_host.core.sessions import SessionOptions, TurnStatus, TurnStop
from desktop_host.engine.host import Host, InputFile, Ticket, TurnResult, UserInput

_GO_ON = frozenset({0, 1, 3})
"""Exit codes after which the next prompt is still sent: the turn's own trouble, which the next need not meet."""
_STOPS: dict[TurnStop, str] = {TurnStop.MAX_STEPS: "max_steps", TurnStop.BUDGET: "budget_spent"}


async def chat(run: Run) -> int:
    """One turn a prompt, in a new or a given session."""
    ns = run.ns
    files = await asyncio.to_thread(attachments, ns.attach)
    if ns.session is not None:
        await run.host.history.row(ns.session)
        options = session_options(ns, await run.host.history.options(ns.session))
    else:
        options = session_options(ns)
    await _named(run.host, options)
    turns = Turns(run)
    try:
        if ns.session is not None:
            session = ns.session
            await run.host.configure(session, options)
        else:
            session = await run.host.new_session(options)
        turns.begin(session)
        return await turns.all(files)
    finally:
        await turns.close()


async def resume(run: Run) -> int:
    """Go on with the interrupted turn of a session."""
    session = run.ns.session
    await run.host.history.row(session)
    turns = Turns(run)
    try:
        options = await run.host.history.options(session)
        changed = session_options(run.ns, options)
        if changed != options:
            await run.host.configure(session, changed)
        turns.begin(session)
        with On(STOPPING, turns.stop):
            return await turns.told(await run.host.resume(session))
    finally:
        await turns.close()


async def _named(host: Host, options: SessionOptions) -> None:
    """Refuse a model that nothing names before a chat is made or changed. Without a key or weights yet, one may be.

    Raises:
        UserFault: `usage`, or `not_found` for a script that is not there.
    """
    settings = host.settings.current()
    with contextlib.suppress(KnownFault):
        await host.models.open(options.model or ref_for(settings.routes, Purpose.CHAT, settings.model.default))


class Turns:
    """The turns of one run: sends prompts one after the other, tells the events, and gathers the exit code."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._host: Host = run.host
        view = JsonView(run.out) if run.out.json else TextView(run.out)
        self.follower = Follower(run.host, view)
        self._task = asyncio.current_task()
        self._stopped = asyncio.Event()
        self._stopping: asyncio.Task[None] | None = None
        self._ticket: Ticket | None = None

    def begin(self, session: str) -> None:
        """Tell what happens in this session from now on."""
        self.follower.follow(session)

    def stop(self) -> None:
        """Stop the running turn; a second time: give up at once."""
        if not self._stopped.is_set():
            self._stopped.set()
            self._stopping = asyncio.create_task(self._interrupt())
        elif self._task is not None:
            self._task.cancel()

    async def _interrupt(self) -> None:
        """A message that was queued just now may not run yet, so ask until it has ended."""
        while self._ticket is not None and not self._ticket.done.done():
            await self._host.interrupt(self.follower.session)
            await asyncio.wait({self._ticket.done}, timeout=0.1)

    async def told(self, ticket: Ticket) -> int:
        """Wait for a turn, tell it, and return its exit code."""
        self._ticket = ticket
        result = await self.follower.until(ticket.done)
        if result.status is TurnStatus.INTERRUPTED:
            return INTERRUPTED
        error = fault_of(result)
        if error is None:
            return 0
        self._run.out.error(error)
        return error.exit_code

    async def all(self, files: tuple[InputFile, ...]) -> int:
        """Send every prompt; returns the first exit code that is not 0.

        Raises:
            UserFault: `usage`, standard input held no prompt or was no text.
        """
        code, sent = 0, 0
        with On(STOPPING, self.stop):
            async for text in self._prompts():
                sent += 1
                said = UserInput(text, files, fresh=not self._run.ns.cached)
                got = await self.told(await self._host.submit(self.follower.session, said))
                files = ()
                code = code or got
                if got not in _GO_ON or self._stopped.is_set():
                    break
        if self._stopped.is_set():
            return INTERRUPTED
        if not sent:
            raise UserFault("usage", "standard input held no prompt", reason="no_prompt")
        return code

    async def _prompts(self) -> AsyncIterator[str]:
        ns = self._run.ns
        for text in [*([] if ns.prompt_word is None else [ns.prompt_word]), *ns.prompt]:
            if text != "-":
                yield text
                continue
            while (line := await self._line()) is not None:
                if line.strip():
                    yield line

    async def _line(self) -> str | None:
        """The next line of standard input; None at its end or once stopped."""
        reading = asyncio.ensure_future(self._run.stdin.line())
        stopping = asyncio.ensure_future(self._stopped.wait())
        await asyncio.wait({reading, stopping}, return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if reading.done():
            return reading.result()
        reading.cancel()
        return None

    async def close(self) -> None:
        """Stop telling."""
        if self._stopping is not None:
            await self._stopping
        await self.follower.close()


def fault_of(result: TurnResult) -> HostError | None:
    """What keeps a turn from exit code 0. A missing decision is named first: it is what a person can mend."""
    if result.undecided:
        return HostError("decision_needed", "a request was refused because nobody was there to decide on it")
    if result.error is not None:
        return host_error(result.error)
    if result.stop in _STOPS:
        return HostError(_STOPS[result.stop])
    if result.status is TurnStatus.FAILED:
        return HostError("bug", "the turn failed without a reason")
    return None


VERBS: dict[tuple[str, str | None], Verb] = {("chat", None): chat}
