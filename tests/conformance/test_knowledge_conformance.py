"""The official suite's server side against the bundled knowledge server, each scenario in each era it applies to.

Left out is only what the server does not declare (NOT_DECLARED). What the suite asks for by name is added by
`knowledge_fixtures.py` beside the server's own tools.
"""

from __future__ import annotations

import pytest

from tests.conformance.server_side import ERAS, failing, scenarios, serving, suite_or_skip

pytestmark = [pytest.mark.live, pytest.mark.slow, pytest.mark.timeout(900)]

NOT_DECLARED = {
    "logging-set-level": "no logging capability", "tools-call-with-logging": "no logging capability",
    "server-sse-polling": "no resumable streams", "http-custom-header-server-validation": "no x-mcp-header arguments",
}  # fmt: skip


@pytest.mark.parametrize("era", ERAS)
async def test_the_knowledge_server_passes_what_it_declares(era: str) -> None:
    suite = suite_or_skip()
    wanted = [s for s in await scenarios(suite, era) if s not in NOT_DECLARED]
    assert len(wanted) >= 20
    async with serving("knowledge_fixtures.py", "0") as url:
        failed = await failing(suite, url, era, wanted)
    assert not failed, "\n\n".join(f"{name}: {said}" for name, (_checks, said) in failed.items())
