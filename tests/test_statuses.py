"""The status table, row by row."""

import pytest

from pravda.core.states import FACTS, Reason, State
from pravda.core.statuses import FOLLOWED, RETRY_STATUSES, phrase, reason_of

VALIDATED = [200, 201, 202, 203, 207, 208, 226, 299]
ROWS = {
    "down empty_response": [100, 101, 102, 103, 199],
    "partial empty_content": [204, 205],
    "partial redirect_unresolved": [300, 301, 302, 303, 307, 308, 399],
    "partial client_error": [400, 405, 409, 411, 412, 413, 414, 417, 422, 424, 426, 428, 431, 494, 497, 499],
    "blocked auth_required": [401, 407, 419, 440, 498, 561],
    "blocked payment_required": [402],
    "blocked access_denied": [403, 406, 418, 423, 444, 450, 493, 999],
    "gone not_found": [404],
    "gone gone": [410],
    "down response_timeout": [408, 598, 599],
    "blocked rate_limited": [429, 430],
    "blocked legal_block": [451],
    "down server_error": [421, 425, 500, 501, 505, 506, 507, 508, 510, 530, 597],
    "down bad_gateway": [502],
    "down gateway_timeout": [504],
    "down service_unavailable": [503, 509, 529],
    "down captive_portal": [511],
    "down origin_protocol": [520],
    "down origin_refused": [521],
    "down origin_timeout": [522, 524],
    "down origin_unreachable": [523, 527],
    "down origin_tls": [525, 526],
    "partial unexpected_status": [0, 1, 99, 600, 700, 998, 1000, 9999],
}


@pytest.mark.parametrize(("row", "status"), [(row, status) for row in ROWS for status in ROWS[row]])
def test_row(row, status):
    """A status has the state and the reason of its row."""
    reason = reason_of(status)
    assert reason is not None
    assert f"{FACTS[reason].state} {reason}" == row


@pytest.mark.parametrize("status", VALIDATED)
def test_successes_are_validated(status):
    """A success decides nothing by itself."""
    assert reason_of(status) is None


def test_own_accept():
    """A 406 to an Accept that the caller gave is no denial."""
    assert reason_of(406, accept_given=True) is Reason.CLIENT_ERROR
    assert reason_of(403, accept_given=True) is Reason.ACCESS_DENIED


def test_every_code_means_something():
    """No code is a success but the 2xx, and every code has a text that begins with it."""
    for status in range(1201):
        reason = reason_of(status)
        assert (reason is None) == (200 <= status < 300 and status not in (204, 205))
        if reason and 200 <= status < 300:
            assert FACTS[reason].state is State.PARTIAL
        assert phrase(status).startswith(str(status))


def test_phrases():
    """A registered code has its name, any other stands alone."""
    assert phrase(503) == "503 Service Unavailable"
    assert phrase(522) == "522"


def test_sets():
    """Redirects that are followed and codes that are tried again are those of the RFCs."""
    assert {301, 302, 303, 307, 308} == FOLLOWED
    assert {421, 425} == RETRY_STATUSES
