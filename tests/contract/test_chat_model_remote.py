"""The `ChatModel` contract on the adapters of remote models, over real HTTP on loopback."""

from __future__ import annotations

from functools import partial

import pytest

from tests.contract.chat_model_contract import CONTRACT
from tests.fakes.remote import stage
from tests.fakes.wires import WIRES


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("promise", CONTRACT, ids=lambda promise: promise.__name__)
async def test_remote_model_keeps_the_contract(promise, wire):
    await promise(partial(stage, wire))
