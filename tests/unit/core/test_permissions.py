from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from desktop_host.core.permissions import CallFacts, Effect, Rule, Verdict, decide
from desktop_host.core.values import freeze

CALL = CallFacts("files.write", freeze({"path": "/etc/passwd"}), "digest-1")
effects = st.sampled_from(list(Effect))
rules = st.builds(
    Rule,
    effects,
    st.sampled_from(["*", "files.*", "files.write", "git.*"]),
    st.sampled_from([None, "passwd", "nothing", "("]),
    st.sampled_from([None, "digest-1", "digest-2"]),
    origin=st.sampled_from(["hard", "settings", "person"]),
)


def test_deny_beats_ask_beats_allow():
    """Hazard K112."""
    allow, ask, deny = (Rule(e, "files.*") for e in (Effect.ALLOW, Effect.ASK, Effect.DENY))
    assert decide(CALL, [allow]).effect is Effect.ALLOW
    assert decide(CALL, [allow, ask]).effect is Effect.ASK
    assert decide(CALL, [ask, deny, allow]).effect is Effect.DENY


def test_a_hard_rule_beats_all_others():
    hard = Rule(Effect.ALLOW, "files.write", origin="hard")
    assert decide(CALL, [Rule(Effect.DENY, "*"), hard]).effect is Effect.ALLOW


def test_without_a_rule_the_group_then_the_profile_decides():
    """Hazard K113."""
    assert decide(CALL, [], group_default=Effect.DENY).effect is Effect.DENY
    assert decide(CALL, []).effect is Effect.ASK


def test_a_rule_that_does_not_compile_denies():
    """Hazard K113."""
    assert decide(CALL, [Rule(Effect.ALLOW, "*", "(")]).reason == "broken_rule"
    assert decide(CALL, [Rule(Effect.ALLOW, "*", "(")]).effect is Effect.DENY


def test_an_argument_pattern_looks_into_the_arguments():
    assert decide(CALL, [Rule(Effect.DENY, "*", r"/etc/")]).effect is Effect.DENY
    assert decide(CALL, [Rule(Effect.DENY, "*", r"/home/")]).effect is Effect.ASK


def test_a_grant_holds_for_its_definition_only_but_a_denial_for_any():
    """Hazard K118."""
    assert decide(CALL, [Rule(Effect.ALLOW, "*", tool_digest="digest-2")]).effect is Effect.ASK
    assert decide(CALL, [Rule(Effect.DENY, "*", tool_digest="digest-2")]).effect is Effect.DENY


def test_the_hint_of_a_read_only_tool_counts_for_trusted_servers_only():
    hinted = CallFacts("a.b", freeze({}), "d", read_only=True)
    trusted = CallFacts("a.b", freeze({}), "d", read_only=True, trusted=True)
    assert decide(hinted, []).effect is Effect.ASK
    assert decide(trusted, []).effect is Effect.ALLOW
    assert decide(trusted, [Rule(Effect.ASK, "a.b")]).effect is Effect.ASK


@given(st.lists(rules, max_size=6), st.sampled_from(["*", "files.*", "files.write"]))
def test_adding_a_denial_never_allows(given_rules, pattern):
    before = decide(CALL, given_rules)
    after = decide(CALL, [*given_rules, Rule(Effect.DENY, pattern)])
    hard = any(r.origin == "hard" for r in given_rules)
    assert isinstance(before, Verdict)
    assert after.effect is Effect.DENY or hard
    if before.effect is Effect.DENY:
        assert after.effect is Effect.DENY
