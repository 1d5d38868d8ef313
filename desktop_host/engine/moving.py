"""A session as one file that goes on elsewhere: events, options, the model's frozen start, its skills' files.

No secrets are in it (none are ever journaled), nor what the person allowed: they are asked anew where it arrives.
What comes in is somebody else's word. It is checked whole before anything is kept; the hints of its tools and the
grants of skills of the same names do not count, and scripts of its skills do not run.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import json
import re
import uuid
from dataclasses import replace
from typing import Any

from desktop_host.core.codec import JOURNAL_SCHEMA, decode, encode
from desktop_host.core.errors import HostError, UserFault
from desktop_host.core.events import AssistantSaid, Stamped
from desktop_host.core.ports import History
from desktop_host.core.sessions import SessionOptions
from desktop_host.core.shape import misfit
from desktop_host.core.tools import ToolSpec
from desktop_host.engine.bundle import transcript_of
from desktop_host.engine.conversation import Conversation
from desktop_host.engine.toolbox import Prefix

FORMAT = "desktop-host-session"
FORM = 2
"""Form of the file beside the journal's own number: 2 has the frozen start, skills and files."""
PREFIX, SKILLS = "prefix", "skills"
"""What of a session's state goes along, by its key."""
LARGEST = 400_000_000
"""Characters that a file may have."""
_SHA = re.compile(r"[0-9a-f]{64}")


async def pack(history: History, session: str) -> str:
    """The file of a session.

    Raises:
        UserFault: `not_found`.
    """
    row, options, events = await history.row(session), await history.options(session), await history.read(session)
    prefix, skills = await history.state(session, PREFIX), await history.state(session, SKILLS)
    files: dict[str, str] = {}
    for sha in sorted({sha for sha in _digests(skills)}):
        try:
            files[sha] = base64.b64encode(await history.blob(sha)).decode()
        except UserFault:
            continue  # a digest of a version, not of a file
    bundle = {
        "format": FORMAT, "form": FORM, "schema": JOURNAL_SCHEMA, "title": row.title, "created": row.created,
        "options": encode(replace(options, rules=(), roots=())), "events": [encode(s) for s in events],
        "state": {key: value for key, value in ((PREFIX, prefix), (SKILLS, skills)) if value is not None},
        "files": files,
    }  # fmt: skip
    return json.dumps(bundle, ensure_ascii=False, indent=1)


async def take_in(history: History, text: str, *, ours: bool = False) -> str:
    """Make a session of a file; returns its new id. Nothing is kept of a file that is refused.

    Args:
        history: where it goes.
        text: the file.
        ours: this very program packed it just now; else what vendors are to be told word for word is left out,
            since it may say other things than what is shown.

    Raises:
        UserFault: `bad_bundle` with a `reason`: `syntax`, `format`, `newer`, `broken`, `order`, `too_large`.
    """
    session = uuid.uuid4().hex
    data = _parsed(text)
    options, events = _journal(data, session, ours)
    prefix, skills, files = _state(data)
    title = data.get("title") or ""
    if not isinstance(title, str):
        raise _broken("title: no text")
    await history.create(session, " ".join(title.split())[:500], options)
    try:
        for sha, content in files.items():
            if await history.put_blob(content) != sha:
                raise _broken(f"files.{sha}: other bytes than its name says")
        if prefix is not None:
            await history.put_state(session, PREFIX, prefix)
        if skills is not None:
            await history.put_state(session, SKILLS, skills)
        if events:
            # What it cost was counted where it was spent.
            await history.append(events, copied=True)
    except BaseException:
        await history.delete(session)
        raise
    return session


def _parsed(text: str) -> dict[str, Any]:
    if len(text) > LARGEST:
        raise UserFault("bad_bundle", f"the file has {len(text):,} characters", reason="too_large", limit=LARGEST)
    try:
        data: Any = json.loads(text.removeprefix("\ufeff"))
    except ValueError as error:
        line, column = getattr(error, "lineno", 0), getattr(error, "colno", 0)
        raise UserFault("bad_bundle", f"not JSON: {error}", reason="syntax", line=line, column=column) from None
    except RecursionError:
        raise _broken("nested too deeply") from None
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise UserFault("bad_bundle", f"this file is no {FORMAT} bundle", reason="format")
    for key, known in (("schema", JOURNAL_SCHEMA), ("form", FORM)):
        number = data.get(key, 1 if key == "form" else None)
        if not isinstance(number, int) or isinstance(number, bool) or number < 1:
            raise _broken(f"{key}: no number of a version")
        if number > known:
            raise UserFault("bad_bundle", "the bundle is of a newer version", reason="newer", schema=str(number))
    return data


def _journal(data: dict[str, Any], session: str, ours: bool) -> tuple[SessionOptions, tuple[Stamped, ...]]:
    """Options and events, checked: of the right kinds, in order, and such that a conversation can be made of them."""
    try:
        options = decode(data["options"])
        events = tuple(decode(e) for e in data["events"])
        wrong = misfit(options, SessionOptions, "options") or next(
            filter(None, (misfit(e, Stamped, f"events[{i}]") for i, e in enumerate(events))), None
        )
    except (HostError, LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _broken(f"{type(error).__name__}: {error}") from error
    if wrong:
        raise _broken(wrong)
    if any(e.seq < 1 or e.turn < 0 or not e.event.journaled for e in events):
        raise _broken("an event that no journal holds")
    if not all(a.seq < b.seq for a, b in itertools.pairwise(events)):
        raise UserFault("bad_bundle", "the events of the bundle are out of order", reason="order")
    # Rules and folders of another computer's person are not this person's.
    options = replace(options, rules=(), roots=())
    kept = tuple(replace(e if ours else _plain(e), session=session) for e in events)
    try:
        transcript_of(session, "", kept)
        conversation = Conversation(60_000)
        for stamped in kept:
            conversation.apply(stamped)
        conversation.messages()
    except Exception as error:  # whatever it is that a made-up history does to us, it is refused here
        raise _broken(f"no conversation can be made of it ({type(error).__name__}: {error})") from error
    return options, kept


def _plain(stamped: Stamped) -> Stamped:
    event = stamped.event
    if isinstance(event, AssistantSaid) and event.message.native is not None:
        return replace(stamped, event=replace(event, message=replace(event.message, native=None)))
    return stamped


def _state(data: dict[str, Any]) -> tuple[Any, Any, dict[str, bytes]]:
    """The frozen start, the skills and their files, each checked and marked as from elsewhere."""
    state, packed = data.get("state") or {}, data.get("files") or {}
    if not isinstance(state, dict) or not isinstance(packed, dict):
        raise _broken("state, files: no objects")
    files: dict[str, bytes] = {}
    for sha, text in packed.items():
        try:
            content = base64.b64decode(text, validate=True)
        except (TypeError, ValueError, binascii.Error):
            raise _broken(f"files.{sha:.80}: no base64") from None
        if hashlib.sha256(content).hexdigest() != sha:
            raise _broken(f"files.{sha:.80}: other bytes than its name says")
        files[sha] = content
    prefix = state.get(PREFIX)
    if prefix is not None:
        prefix = _prefix(prefix)
    skills = state.get(SKILLS)
    if skills is not None:
        _check_skills(skills)
        for pin in skills["pins"].values():
            pin["foreign"] = True
        skills = {key: skills.get(key, empty) for key, empty in (("pins", {}), ("given", {}), ("runs", []))}
    return prefix, skills, files


def _prefix(state: Any) -> dict[str, Any]:
    try:
        made = replace(Prefix.from_state(state), foreign=True)
        wrong = misfit(made.tools, tuple[ToolSpec, ...], "state.prefix.tools") or misfit(made.system, str, "system")
    except (HostError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise _broken(f"state.prefix: {error}") from error
    if wrong or not 0 < made.result_chars <= 1_000_000:
        raise _broken(wrong or "state.prefix.result_chars")
    return made.to_state()


def _check_skills(state: Any) -> None:
    """Each pin with its files: paths that stay inside a folder, digests that are digests."""

    def check(sound: bool, where: str) -> None:
        if not sound:
            raise _broken(f"state.skills: {where}")

    check(isinstance(state, dict) and isinstance(state.get("pins"), dict), "no pins")
    given, runs = state.get("given", {}), state.get("runs", [])
    check(isinstance(given, dict) and all(isinstance(v, str) for v in given.values()), "given")
    check(isinstance(runs, list) and all(_is_run(r) for r in runs), "runs")
    for name, pin in state["pins"].items():
        check(re.fullmatch(r"[\w-]{1,64}", name) is not None and isinstance(pin, dict), f"{name:.80}")
        texts = (pin.get("version"), pin.get("digest"), pin.get("main", "SKILL.md"), pin.get("folder", ""))
        check(all(isinstance(t, str) for t in texts) and _inside(texts[2]), name)
        check(isinstance(pin.get("files"), list), f"{name}.files")
        for row in pin["files"]:
            sound = isinstance(row, list) and len(row) == 3 and isinstance(row[1], int)
            check(sound and isinstance(row[2], str) and bool(_SHA.fullmatch(row[2])), f"{name}.files")
            check(_inside(row[0]), f"{name}: a file outside of its folder")


def _is_run(run: Any) -> bool:
    keys = ("skill", "version", "input", "by", "status")
    return isinstance(run, dict) and all(isinstance(run.get(k), str) for k in keys)


def _inside(path: Any) -> bool:
    if not isinstance(path, str) or not path or not path.isprintable() or path[0] in "/~" or set(path) & set("\\:\0"):
        return False
    return all(part not in ("", ".", "..") for part in path.split("/"))


def _digests(state: Any) -> set[str]:
    return set(_SHA.findall(json.dumps(state))) if state is not None else set()


def _broken(what: str) -> UserFault:
    return UserFault("bad_bundle", f"the bundle is broken: {what[:300]}", reason="broken", place=what[:120])
