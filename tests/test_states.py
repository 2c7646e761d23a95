"""The table of reasons, row by row as the specification of outcomes has it."""

import pytest

from pravda.core.states import EXIT_OF_STATE, FACTS, Cause, Exit, FaultSide, Reason, State

# cause → state → reasons, before headers; local faults are named apart below
ROWS = {
    "dns_failure": {"down": "dns_not_found dns_no_address dns_server_failure"},
    "connection_failure": {"down": "connection_refused connection_reset address_unreachable empty_response"},
    "tls_failure": {
        "down": "tls_error tls_certificate_expired tls_certificate_hostname_mismatch "
        "tls_certificate_untrusted tls_certificate_revoked",
        "blocked": "client_certificate_required",
    },
    "timeout": {"down": "connect_timeout response_timeout", "partial": "body_timeout load_timeout"},
    "protocol_error": {
        "down": "malformed_response headers_too_large",
        "partial": "unexpected_not_modified unexpected_status",
    },
    "redirect_error": {
        "down": "redirect_loop redirect_invalid redirect_unsupported_scheme",
        "partial": "redirect_unresolved",
    },
    "http_error": {
        "gone": "not_found gone",
        "blocked": "access_denied auth_required payment_required rate_limited legal_block geo_block",
        "down": "server_error bad_gateway service_unavailable gateway_timeout origin_dns origin_refused "
        "origin_timeout origin_unreachable origin_tls origin_protocol",
        "partial": "client_error",
    },
    "challenge": {"blocked": "bot_challenge login_wall consent_wall waiting_room"},
    "robots_disallowed": {"blocked": "robots_disallowed robots_unreadable"},
    "unsafe_address": {"blocked": "unsafe_address unsafe_port"},
    "incomplete_content": {
        "partial": "truncated_body truncated_encoding partial_content empty_content body_too_large"
    },
    "invalid_content": {
        "partial": "undecodable unsupported_encoding wrong_media_type wrong_charset too_small too_large "
        "redirect_unexpected selector_missing json_path_missing count_too_low count_too_high text_missing "
        "text_forbidden size_drop count_drop parser_rejected artifact_missing soft_404 js_required "
        "maintenance_page parked_domain hosting_suspended client_redirect_loop"
    },
    "browser_error": {
        "down": "browser_crashed browser_disconnected browser_unavailable",
        "partial": "step_failed",
    },
    "storage_error": {"partial": "disk_full storage_unavailable storage_denied"},
    "local_error": {
        "down": "local_network local_proxy local_proxy_auth captive_portal resource_exhausted cancelled"
    },
}
TABLE = [
    (reason, cause, state)
    for cause, states in ROWS.items()
    for state, reasons in states.items()
    for reason in reasons.split()
]
LOCAL_CAUSES = {"unsafe_address", "storage_error", "local_error"}
LOCAL_REASONS = {"browser_crashed", "browser_disconnected", "browser_unavailable"}


@pytest.mark.parametrize(("reason", "cause", "state"), TABLE)
def test_row(reason, cause, state):
    """A reason has the cause, the state and the fault of its row."""
    facts = FACTS[Reason(reason)]
    local = cause in LOCAL_CAUSES or reason in LOCAL_REASONS
    assert facts.cause is Cause(cause)
    assert facts.state is State(state)
    assert facts.fault is (FaultSide.LOCAL if local else FaultSide.SOURCE)


def test_table_is_complete():
    """Every reason has facts and a row, and there are no others."""
    assert set(FACTS) == set(Reason) == {Reason(reason) for reason, _, _ in TABLE}
    assert {facts.cause for facts in FACTS.values()} == set(Cause)


@pytest.mark.parametrize("reason", Reason)
def test_sentences(reason):
    """Every reason has one sentence of its own for people."""
    sentence = FACTS[reason].sentence
    assert sentence[0].isupper()
    assert sentence.endswith(".")
    assert [facts.sentence for facts in FACTS.values()].count(sentence) == 1


@pytest.mark.parametrize("reason", Reason)
def test_without_headers_nothing_is_partial(reason):
    """Before complete headers a page is down, or blocked by a refusal, never partial."""
    assert FACTS[reason].state_when(headers=False) is not State.PARTIAL


@pytest.mark.parametrize("reason", [r for r in Reason if FACTS[r].fault is FaultSide.LOCAL])
def test_local_faults_after_headers(reason):
    """A fault of ours is partial once headers came; a refusal stays blocked and a captive portal down."""
    cause, state = FACTS[reason].cause, FACTS[reason].state_when(headers=True)
    if cause is Cause.UNSAFE_ADDRESS:
        assert state is State.BLOCKED
    else:
        assert state is (State.DOWN if reason is Reason.CAPTIVE_PORTAL else State.PARTIAL)


def test_retries():
    """Only faults that a fresh start may cure are tried again."""
    retried = {reason for reason, facts in FACTS.items() if facts.retry}
    assert retried == {Reason.CONNECTION_RESET, Reason.EMPTY_RESPONSE, Reason.BROWSER_CRASHED}


def test_exit_codes():
    """The exit codes are those of the specification, and our own faults have one of their own."""
    assert {state: int(code) for state, code in EXIT_OF_STATE.items()} == {
        State.LIVE: 0,
        State.BLOCKED: 10,
        State.GONE: 11,
        State.DOWN: 12,
        State.PARTIAL: 13,
    }
    assert (Exit.USAGE, Exit.STALE, Exit.NOT_FOUND, Exit.LOCAL_FAULT, Exit.ARCHIVE) == (2, 3, 4, 14, 20)
    assert FACTS[Reason.GONE].exit_code is Exit.GONE
    assert FACTS[Reason.UNSAFE_PORT].exit_code is Exit.LOCAL_FAULT
    assert {facts.api_status for facts in FACTS.values()} == {502}
