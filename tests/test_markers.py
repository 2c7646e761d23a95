"""Challenges, denials and placeholder pages, told by structure and by nothing else."""

import html
import json
import time
from dataclasses import dataclass
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pravda.core.glance import haystack, is_surely_long
from pravda.core.markers import MATCHED_LENGTH, Finding, Seen, decisive, weak
from pravda.core.signatures import ANY, DECISIVE, ERRORS, SMALL, WEAK, Where
from pravda.core.text import Page

CASES = json.loads(Path(__file__).with_name("data").joinpath("classify.json").read_text("utf-8"))
SENTENCE = "The committee met on Tuesday and adopted the revised register of designated persons. "
ARTICLE = "".join(f"<p>{SENTENCE * 4}</p>" for _ in range(6))


def page(
    body: str | bytes, content_type: str | None = "text/html", charset: str = "utf-8", whole: bool = True
) -> Page:
    """A body as it came."""
    data = body.encode() if isinstance(body, str) else body
    return Page(data, content_type=content_type, charset=charset, whole=whole)


def seen(
    body: str | bytes | Page = "",
    status: int = 200,
    headers: dict[str, str] | None = None,
    url: str = "https://example.org/page",
    asked: str = "https://example.org/page",
) -> Seen:
    """A final response."""
    return Seen(
        status=status,
        headers=tuple((headers or {}).items()),
        asked_url=asked,
        final_url=url,
        page=body if isinstance(body, Page) else page(body),
    )


def ids(findings: tuple[Finding, ...]) -> list[str]:
    return [finding.signature for finding in findings]


@dataclass(frozen=True, kw_only=True)
class Example:
    """A page as the vendor sends it, cut down."""

    body: str = ""
    status: int = 200
    header: tuple[str, str] | None = None
    url: str = "https://example.org/page"

    def seen(self) -> Seen:
        return seen(self.body, self.status, dict([self.header] if self.header else []), self.url)


def code_page(code: int, place: str, status: int) -> Example:
    """Cloudflare's error page, or the header that stands for it."""
    if place == "header":
        return Example(status=status, header=("CF-Error-Type", str(code)))
    inner = f'<span class="cf-error-code">{code}</span>' if place == "code" else f"<b>{code}</b>"
    name = "cf-error-details" if place == "details" else "x"
    return Example(status=status, body=f"<div id='{name}'><h1><span>Error</span> {inner}</h1></div>")


def sentences(*parts: str, status: int = 403, title: str = "") -> Example:
    """A page that says its sentences in paragraphs of their own."""
    return Example(
        status=status, body=f"<title>{title}</title>" + "".join(f"<p>{part}</p>" for part in parts)
    )


GO_AWAY = "/.well-known/.git.gammaspectra.live/git/go-away/assets/x"
DDOS_GUARD_JS = "/.well-known/ddos-guard/js-challenge/index.js"

EXAMPLES: dict[str, Example] = {
    "cloudflare-challenge-header": Example(status=403, header=("cf-mitigated", "challenge")),
    "cloudflare-challenge-script": Example(
        body="<script>(function(){window._cf_chl_opt = {cvId: '3'}}())</script>"
    ),
    "cloudflare-challenge-src": Example(
        body="<script src='/cdn-cgi/challenge-platform/h/b/orchestrate/chl_page/v1?ray=8f'></script>"
    ),
    "cloudflare-challenge-class": Example(
        status=503, body="<div class='cf-browser-verification cf-im-under-attack'>Checking</div>"
    ),
    **{
        f"cloudflare-{name}-{place}": code_page(code, place, status)
        for name, code, status in (
            ("denied", 1020, 403),
            ("geo", 1009, 403),
            ("rate", 1015, 429),
            ("dns", 1016, 530),
        )
        for place in ("header", "code", "details")
    },
    "akamai-denied": sentences(
        "Access Denied", "Reference&#32;&#35;18&#46;ef3a2f17&#46;1619133194&#46;15bcf105"
    ),
    "imperva-iframe": Example(body="<iframe src='/_Incapsula_Resource?CWUDNSAI=9&xinfo=1'>Request</iframe>"),
    "imperva-distil": sentences("As you were browsing", status=405, title="Pardon Our Interruption..."),
    "datadome-header": Example(status=403, header=("X-DD-B", "2")),
    "datadome-src": Example(
        status=403, body="<iframe src='https://geo.captcha-delivery.com/captcha/?x=1'></iframe>"
    ),
    "datadome-script": Example(status=401, body="<script>var dd={'rt':'c','host':'x'}</script>"),
    "human-id": Example(status=403, body="<div id=px-captcha></div>"),
    "human-meta": Example(status=403, body="<meta name=Description content=px-captcha>"),
    "human-src": Example(status=403, body="<script src='//captcha.px-cdn.net/PX1/captcha.js?a=c'></script>"),
    "aws-waf-header": Example(status=405, header=("x-amzn-waf-action", "captcha")),
    "aws-waf-script": Example(status=202, body='<script>window.gokuProps = {"key":"a"};</script>'),
    "cloudfront-denied": sentences("Request blocked.", title="ERROR: The request could not be satisfied"),
    "cloudfront-geo": sentences(
        "The request could not be satisfied.",
        "The Amazon CloudFront distribution is configured to block access from your country.",
    ),
    "sucuri-denied": sentences("Access Denied - Sucuri Website Firewall", "Block ID: BNP005"),
    "wordfence-denied": sentences(
        "Your access to this site has been limited by the site owner",
        "Generated by Wordfence at Tue",
        status=503,
    ),
    "modsecurity-denied": sentences(
        "An appropriate representation of the requested resource could not be found on this server. "
        "This error was generated by Mod_Security.",
        status=406,
    ),
    "f5-asm-denied": sentences("The requested URL was rejected.", "Your support ID is: 123", status=200),
    "ddos-guard-src": Example(
        status=403, body=f"<title>DDOS-GUARD</title><script src='{DDOS_GUARD_JS}'></script>"
    ),
    "ddos-guard-text": sentences("Checking your browser before accessing example.org", title="DDOS-GUARD"),
    "stackpath-denied": sentences(
        "example.org is using a security service for protection against online attacks.",
        "An action has triggered the service and blocked your request.",
    ),
    "reblaze-denied": sentences("Access denied (403)", "Current session has been terminated."),
    "barracuda-denied": sentences(
        "Say what you did when this page occurred and the event ID found at the bottom of the page."
    ),
    "azure-gateway-denied": sentences("403 Forbidden", "Microsoft-Azure-Application-Gateway/v2"),
    "azure-front-door-denied": Example(
        status=403, header=("x-azure-ref", "2025Z-1"), body="<h2>The request is blocked.</h2>"
    ),
    "netscaler-denied": sentences("NS Transaction id: 7", "Violation Category: APPFW_SQL", status=403),
    "kasada-src": Example(status=429, body="<script src='/149e9513/2d206a39/ips.js?KP_UIDz=abc'></script>"),
    "kasada-script": Example(status=429, body="<script>window.KPSDK={};KPSDK.now=1</script>"),
    "vercel-challenge": Example(status=429, header=("X-Vercel-Mitigated", "challenge")),
    "vercel-denied": Example(status=403, header=("x-vercel-mitigated", "deny")),
    "vercel-title": sentences("We're verifying your browser", status=429, title="Vercel Security Checkpoint"),
    "anubis-id": Example(body="<script id='anubis_challenge' type='application/json'>{}</script>"),
    "anubis-src": Example(body="<img src='/.within.website/x/cmd/anubis/static/img/pensive.webp'>"),
    "go-away-src": Example(status=418, body=f"<script src='{GO_AWAY}.js'></script>"),
    "go-away-href": Example(status=418, body=f"<link rel=stylesheet href='{GO_AWAY}.css'>"),
    "google-sorry": Example(status=429, url="https://www.google.co.uk/sorry/index?continue=x"),
    "google-consent": Example(url="https://consent.youtube.com/m?continue=x"),
    "queue-it": Example(url="https://tickets.queue-it.net/?c=x"),
    "login-wall": Example(
        url="https://example.org/account/login?next=/page", body="<input type=Password name=p>"
    ),
    "nginx-client-certificate": sentences(
        "400 Bad Request", status=400, title="400 No required SSL certificate was sent"
    ),
}

WEAK_EXAMPLES: dict[str, Example] = {
    "parked-lander": Example(
        body="<p>Related searches</p><script src='https://img.sedoparking.com/x.js'></script>"
    ),
    "parked-market": Example(
        url="https://www.hugedomains.com/domain_profile.cfm?d=x", body="<p>Buy it now, and for ever</p>"
    ),
    "parked-for-sale": sentences("The domain name example.org may be for sale!", status=200),
    "suspended-url": Example(
        url="https://example.org/cgi-sys/suspendedpage.cgi?x=1", body="<p>Please call</p>"
    ),
    "suspended-text": sentences("This Account has been suspended.", status=200),
    "maintenance-title": sentences("Back at nine", status=200, title="Site under maintenance | Example"),
    "soft-404-heading": Example(body="<title>Page not found - Example</title><h2>Error 404</h2>"),
    "soft-404-noindex": Example(
        body="<title>Seite nicht gefunden</title><meta name=robots content='noindex,follow'>"
    ),
    "soft-404-noindex-header": Example(
        header=("X-Robots-Tag", "noindex"), body="<title>404</title><p>Sorry</p>"
    ),
    "script-shell": Example(body="<div id=root></div><script src='/main.js'></script>"),
}


@pytest.mark.parametrize("name", [signature.id for signature in DECISIVE])
def test_each_decisive_signature_is_found_on_its_own_page(name):
    """A signature is found on a page that carries just it, with its reason and its place as evidence."""
    (finding,) = decisive(EXAMPLES[name].seen())
    (signature,) = (signature for signature in DECISIVE if signature.id == name)
    assert (finding.signature, finding.reason) == (name, signature.reason)
    assert 0 < len(finding.matched) <= MATCHED_LENGTH
    assert finding.where.startswith(tuple(where.value for where in Where))


@pytest.mark.parametrize("name", [signature.id for signature in WEAK])
def test_each_weak_signature_is_found_on_its_own_page(name):
    """A weak signature is found on a small page that carries it, and proves nothing decisive."""
    example = WEAK_EXAMPLES[name].seen()
    assert name in ids(weak(example))
    assert decisive(example) == ()


@pytest.mark.parametrize("signature", [s for s in DECISIVE if s.visible_below], ids=lambda s: s.id)
def test_what_counts_on_small_pages_only_does_not_count_on_long_ones(signature):
    """The same marker in a page with a whole article is no denial."""
    example = EXAMPLES[signature.id]
    assert decisive(seen(example.body + ARTICLE, example.status)) == ()


@pytest.mark.parametrize("signature", [s for s in DECISIVE if s.statuses != ANY], ids=lambda s: s.id)
def test_a_marker_under_another_status_does_not_count(signature):
    """A signature bound to some statuses is not found under one of the others."""
    example = EXAMPLES[signature.id]
    status = next(status for status in (200, 404, 502) if status not in signature.statuses)
    assert (
        decisive(seen(example.body, status, dict([example.header] if example.header else []), example.url))
        == ()
    )


@pytest.mark.parametrize("signature", [s for s in DECISIVE if len(s.all_of) > 1], ids=lambda s: s.id)
def test_half_a_signature_is_none(signature):
    """Where several clues are demanded, a page without one of them is not matched."""
    example = EXAMPLES[signature.id]
    for needle in signature.needles:
        text = html.unescape(example.body)
        at = text.lower().find(needle)
        broken = text[:at] + text[at + 2 :]
        assert signature.id not in ids(decisive(Example(body=broken, status=example.status).seen()))


def quotations() -> str:
    """Everything the signatures look for, as somebody would quote it."""
    everything = [*EXAMPLES.values(), *WEAK_EXAMPLES.values()]
    words = [clue.pattern for signature in DECISIVE + WEAK for clue in signature.all_of]
    words += [needle for signature in DECISIVE for needle in signature.needles]
    words += [f"{example.body} {example.url} {example.header}" for example in everything]
    return "\n".join(words)


def test_an_article_that_quotes_every_marker_stays_clean():
    """Text, code samples, comments, data and strings within scripts may hold any marker."""
    quoted = quotations()
    literal = json.dumps(quoted).replace("</", "<\\/")
    single = "'" + literal[1:-1].replace("'", "\\'").replace('\\"', '"') + "'"
    body = (
        "<!doctype html><html><head><title>How walls are told apart</title>"
        f"<script type='application/ld+json'>{literal}</script>"
        f"<script>self.__next_f.push([1,{literal}]); var it={single}</script></head>"
        f"<body><!-- {quoted.replace('--', '- -')} --><h1>How walls are told apart</h1>{ARTICLE}"
        f"<pre data-quoted='{html.escape(quoted)}'>{html.escape(quoted)}</pre>"
        f"<textarea>{html.escape(quoted)}</textarea><template>{html.escape(quoted)}</template></body></html>"
    )
    article = seen(body, headers={"X-Quoted": "challenge"})
    assert decisive(article) == ()
    assert weak(article) == ()


PRESENCE = {
    "header server cloudflare": ({"Server": "cloudflare", "CF-RAY": "8f-AMS", "cf-cache-status": "HIT"}, ""),
    "header akamai": ({"Server": "AkamaiGHost"}, ""),
    "header imperva": ({"X-Iinfo": "10-145", "X-CDN": "Incapsula"}, ""),
    "header datadome": ({"x-datadome": "protected", "x-dd-b": "0"}, ""),
    "header sucuri": ({"X-Sucuri-ID": "14014", "Server": "Sucuri/Cloudproxy"}, ""),
    "header vercel": ({"Server": "Vercel", "x-vercel-id": "fra1::1"}, ""),
    "header aws": ({"x-amzn-requestid": "1"}, ""),
    "header front door": ({"x-azure-ref": "20250101Z-1"}, ""),
    "header ddos-guard": ({"Server": "ddos-guard"}, ""),
    "cookies": (
        {
            "Set-Cookie": "__cf_bm=1; _abck=2; bm_sz=3; datadome=4; visid_incap_1=5; incap_ses_1=6; _px3=7; "
            "TS01abc=8; within.website-x-cmd-anubis-auth=9; __ddg1_=1"
        },
        "",
    ),
    "cloudflare beacon": (
        {"CF-RAY": "8f-AMS"},
        "<script>window.__CF$cv$params={r:'8f'};a.src='/cdn-cgi/challenge-platform/scripts/jsd/main.js'</script>",
    ),
    "cloudflare beacon src": (
        {},
        "<script src='/cdn-cgi/challenge-platform/h/b/scripts/jsd/main.js'></script>",
    ),
    "turnstile": (
        {},
        "<div class=cf-turnstile></div><script src='https://challenges.cloudflare.com/turnstile/v0/api.js'></script>",
    ),
    "email protection": (
        {},
        "<a class=__cf_email__ href='/cdn-cgi/l/email-protection'>[email protected]</a>",
    ),
    "recaptcha": (
        {},
        "<script src='https://www.google.com/recaptcha/api.js'></script><div class=g-recaptcha></div>",
    ),
    "hcaptcha": ({}, "<script src='https://js.hcaptcha.com/1/api.js'></script><div class=h-captcha></div>"),
    "imperva script": ({}, "<script src='/_Incapsula_Resource?SWJIYLWA=719d34d31c8e3a6e'></script>"),
    "perimeterx sensor": ({}, "<script>window._pxAppId='PX1';</script><script src='/PX1/init.js'></script>"),
    "datadome tag": (
        {},
        "<script src='https://js.datadome.co/tags.js'></script><script>window.ddjskey='A'</script>",
    ),
    "aws sdk": ({}, "<script src='https://x.token.awswaf.com/x/challenge.js'></script>"),
    "kasada sdk": ({}, "<script src='/149e/p.js'></script>"),
    "wordfence asset": (
        {},
        "<script src='/wp-content/plugins/wordfence/js/x.js'></script><p>Generated by Wordfence</p>",
    ),
    "anubis cookie and style": ({}, "<link rel=stylesheet href='/.within.website/x/xess/xess.min.css'>"),
    "title of a poem": ({}, "<title>Just a moment...</title>"),
    "login form in a header": ({}, "<form action='/login'><input type=password></form>"),
}


@pytest.mark.parametrize("status", [200, 404, 500])
@pytest.mark.parametrize("what", PRESENCE)
def test_presence_is_not_denial(what, status):
    """A vendor's headers, cookies, beacons and widgets prove nothing, whatever the status."""
    headers, body = PRESENCE[what]
    assert decisive(seen(f"<html><body>{body}<p>{SENTENCE}</p></body></html>", status, headers)) == ()


def case_seen(case) -> Seen:
    """A case as the law sees it."""
    headers = case["headers"]
    body = page(case["body"], headers.get("Content-Type"))
    return seen(body, case["status"], headers, case["final_url"], case["final_url"])


@pytest.mark.parametrize("case", CASES, ids=[case["id"] for case in CASES])
def test_cases_from_the_wild(case):
    """Each case shows the marker it is known for, and a live page shows none."""
    by_marker = {
        "cf-managed-403", "cf-1020-403", "aws-waf-challenge-202-html", "akamai-denied-403", "imperva-200-iframe",
        "datadome-403", "vercel-429", "anubis-feed-200", "sucuri-403",
    }  # fmt: skip
    reason = case["expect"]["reason"]
    assert {finding.reason for finding in decisive(case_seen(case))} == (
        {reason} if case["id"] in by_marker else set()
    )
    if case["status"] == 200 and case["id"] not in by_marker:
        expected = {reason} if case["id"] == "parked-200" else set()
        assert {finding.reason for finding in weak(case_seen(case))} == expected


def test_evidence_names_every_place_and_match():
    """A finding of two clues tells both, in their order."""
    (finding,) = decisive(EXAMPLES["akamai-denied"].seen())
    assert (finding.where, finding.matched) == (
        "text",
        "Access Denied … Reference #18.ef3a2f17.1619133194.15bcf105",
    )
    (finding,) = decisive(EXAMPLES["azure-front-door-denied"].seen())
    assert (finding.where, finding.matched) == (
        "header x-azure-ref + text",
        "2025Z-1 … The request is blocked",
    )


def test_evidence_of_a_url_holds_neither_credentials_nor_query():
    """What is kept of a final URL is its host and path."""
    (finding,) = decisive(seen(url="https://user:secret@consent.google.com:443/m?token=1"))
    assert (finding.where, finding.matched) == ("final_url", "consent.google.com/m")


def test_findings_stand_in_the_order_of_the_table():
    """A page with several markers gives all of them, headers before bodies of the same vendor."""
    body = "<script>window._cf_chl_opt={}</script><script>window.gokuProps={}</script>"
    found = decisive(seen(body, 403, {"x-amzn-waf-action": "challenge", "cf-mitigated": "challenge"}))
    order = [signature.id for signature in DECISIVE]
    assert ids(found) == sorted(ids(found), key=order.index)
    assert len(found) == 4


@pytest.mark.parametrize(
    ("code", "status", "reason"),
    [
        (1005, 403, "access_denied"),
        (1010, 403, "access_denied"),
        (1106, 403, "access_denied"),
        (1009, 403, "geo_block"),
        (1015, 429, "rate_limited"),
        (1000, 403, "origin_dns"),
        (1001, 409, "origin_dns"),
        (1018, 530, "origin_dns"),
    ],
)
def test_cloudflare_codes(code, status, reason):
    """Each code has its own reason."""
    for place in ("header", "code", "details"):
        assert {finding.reason for finding in decisive(code_page(code, place, status).seen())} == {reason}


@pytest.mark.parametrize(
    ("code", "status"), [(522, 522), (1016, 200), (1016, 404), (10200, 403), (1033, 530)]
)
def test_other_cloudflare_codes_prove_nothing(code, status):
    """Fault pages with the same footer, unknown codes and DNS codes under other statuses are not markers."""
    for place in ("header", "code", "details"):
        assert decisive(code_page(code, place, status).seen()) == ()


@pytest.mark.parametrize(
    "title", ["400 The SSL certificate error", "No required SSL certificate was sent (400)"]
)
def test_a_client_certificate_is_asked_for(title):
    """Nginx answers 400 with a title of its own."""
    (finding,) = decisive(seen(f"<title>{title}</title>", 400))
    assert finding.reason == "client_certificate_required"
    assert decisive(seen("<title>400 The plain HTTP request was sent to HTTPS port</title>", 400)) == ()


@pytest.mark.parametrize(
    ("asked", "url", "wall"),
    [
        ("https://x.org/list", "https://x.org/login", True),
        ("https://x.org/list", "https://x.org/Account/SignIn/?next=%2Flist", True),
        ("https://x.org/list", "https://sso.x.org/cas/x", True),
        ("https://x.org/list", "https://x.org/login.php", True),
        ("https://x.org/list", "https://x.org/users/session/new", True),
        ("https://x.org/", "https://x.org/auth;jsessionid=1", True),
        ("https://x.org/login", "https://x.org/sso/login", False),
        ("https://x.org/list", "https://x.org/list", False),
        ("https://x.org/list", "https://x.org/blog/authors", False),
        ("https://x.org/list", "https://x.org/session/newsletter", False),
        ("https://x.org/list", "https://login.x.org/list", False),
        ("https://x.org/list", "https://x.org/list?to=/login", False),
    ],
)
def test_login_wall(asked, url, wall):
    """A wall is a login path one did not ask for, and a field for the password."""
    form = "<form><input name=u><input type=password name=p></form>"
    assert ids(decisive(seen(form, url=url, asked=asked))) == (["login-wall"] if wall else [])
    assert decisive(seen("<p>Please type your password</p>", url=url, asked=asked)) == ()


@pytest.mark.parametrize(
    "url",
    [
        "https://notgoogle.com/sorry/index",
        "https://google.example/sorry/index",
        "https://example.org/google.com/sorry/",
        "https://www.google.com/sorry",
        "https://consent.google.com.example.org/",
        "https://queue-it.net.example.org/",
        "about:blank",
        "",
    ],
)
def test_hosts_that_only_look_alike(url):
    """Only the host itself counts."""
    assert decisive(seen(url=url)) == ()


@pytest.mark.parametrize(
    "body",
    [
        "<script type='application/json'>{window._cf_chl_opt}</script>",
        "<script type='text/template'>window._cf_chl_opt</script>",
        "<script>text = 'it\\'s window._cf_chl_opt'</script>",
        '<script>text = "say \\"window._cf_chl_opt\\""</script>',
        '<script>text = "never ended: window._cf_chl_opt\n</script>',
        "<textarea><script>window._cf_chl_opt</script></textarea>",
        "<!-- <script>window._cf_chl_opt</script> -->",
        "<p title='window._cf_chl_opt'>window._cf_chl_opt</p>",
    ],
)
def test_a_script_that_only_mentions_a_marker_is_no_challenge(body):
    """Data, strings, comments and text are quotations."""
    assert decisive(seen(body)) == ()


@pytest.mark.parametrize("kind", ["", "type=module", "type='text/javascript'", "type='8f-text/javascript'"])
def test_a_script_that_runs_is_read_behind_its_strings(kind):
    """Code counts, also behind a string that holds a quotation mark of the other kind."""
    body = f"<script {kind}>var a = \"it's\", b = 'say \"';window._cf_chl_opt={{}}</script>"
    assert ids(decisive(seen(body))) == ["cloudflare-challenge-script"]


def test_only_html_is_looked_into():
    """A denial in JSON, XML or plain text is no vendor's page."""
    body = "Access Denied Reference #18.ef3a2f17.1619133194.15bcf105"
    for content_type in ("application/json", "application/xml", "text/plain"):
        assert decisive(seen(page(body, content_type), 403)) == ()
        assert weak(seen(page("<title>Page not found</title><h1>Page not found</h1>", content_type))) == ()
    assert decisive(seen(page(b"access denied reference px-captcha"), 403)) == ()


@pytest.mark.parametrize("charset", ["utf-16le", "utf-16be", "iso-2022-jp", "shift_jis", "windows-1252"])
def test_an_encoding_hides_nothing(charset):
    """A marker is found in any encoding of the page."""
    body = "<title>Access Denied</title><p>Reference #18.ef3a2f17.1619133194.15bcf105</p>"
    found = decisive(seen(page(body.encode(charset.replace("shift_jis", "cp932")), charset=charset), 403))
    assert ids(found) == ["akamai-denied"]


def test_words_are_found_across_line_breaks_and_references():
    """White space within a sentence may be anything HTML takes for it."""
    body = "<p>The requested URL\n   was&nbsp;rejected.</p><p>Your support&#32;ID is: 1</p>"
    assert ids(decisive(seen(body))) == ["f5-asm-denied"]


def test_a_page_whose_end_was_not_read_is_not_small():
    """Without the end nobody knows how much a reader sees."""
    example = WEAK_EXAMPLES["script-shell"]
    assert weak(seen(page(example.body, whole=False))) == ()
    deep = "<div>" * 3000 + "x" + "</div>" * 3000 + "<script src=a></script>"
    assert weak(seen("<script src=a></script>" + deep)) == ()


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        ("<title>404 Media</title><h1>404 Media</h1><p>News of today, all of it</p>", []),
        (
            "<title>How we fixed our page not found errors</title><h1>Access denied: a history</h1><p>Soon here</p>",
            [],
        ),
        ("<title>Vehicle maintenance</title><p>We look after your car, all year round</p>", []),
        ("<title>Page not found</title><h1>Example</h1><p>It is not here any more, sorry for that</p>", []),
        ("<title>Not here</title><h1>File moved</h1>", []),
        ("<h1>Houses for sale</h1><p>This house is for sale, with its garden</p>", []),
        ("<p>1,234 persons on the register as of today</p><script src=a.js></script>", []),
        ("<div id=app></div><script type='application/ld+json'>{}</script>", []),
        (
            "<title>Technische Wartungsarbeiten</title><p>Wir sind bald wieder für Sie da</p>",
            ["maintenance_page"],
        ),
        ("<title>Maintenance</title><p>We'll be back soon, thank you for waiting</p>", ["maintenance_page"]),
        ("<title>Страница не найдена</title><h1>Ошибка 404</h1>", ["soft_404"]),
        ("<title>The page you requested was not found</title><h1>404 Not Found</h1>", ["soft_404"]),
        ("<title>example.org</title><p>This website is for sale!</p>", ["parked_domain"]),
        (
            "<noscript>You need to enable JavaScript to run this app.</noscript><script>x()</script>",
            ["js_required"],
        ),
        ("<script> </script>", []),
        ("", []),
    ],
)
def test_weak_findings(body, expected):
    """A small page is told by what it says of itself, and ordinary small pages are left alone."""
    assert [finding.reason for finding in weak(seen(body))] == expected


def test_a_long_page_is_never_parsed():
    """An article costs one pass over its bytes and no tree."""
    article = seen(f"<html><title>Register</title><body>{ARTICLE}</body></html>")
    assert decisive(article) == ()
    assert weak(article) == ()
    assert "_tree" not in vars(article.page)


@pytest.mark.parametrize(
    "start",
    [
        "<p title='a hidden path'>The hidden costs of it</p>",
        "<input type=hidden name=a><input type='checkbox' hidden><img style='display:none' src=a>",
        "<p class='hidden sm:block'>Menu</p>",
        f"<script>{'x < y; ' * 4000}</script>",
    ],
)
def test_what_hides_nothing_does_not_end_the_estimate(start):
    """Words, classes and empty elements leave the article after them in sight."""
    assert is_surely_long(f"<body>{start}{ARTICLE}".encode(), SMALL)


SHORT = "<p>Only this is seen, and it is short.</p>"


@pytest.mark.parametrize(
    "body",
    [
        f"<script>{SENTENCE * 40}</script>",
        f"<STYLE>{SENTENCE * 40}</STYLE >",
        f"<noscript><p>{SENTENCE * 40}</p></noscript>",
        f"<template>{ARTICLE}</template>",
        f"<title>{SENTENCE * 40}</title>",
        f"<!-- {ARTICLE} -- > - {ARTICLE} -->",
        f"<div hidden>{ARTICLE}</div>",
        f"<div class=a hidden=''>{ARTICLE}</div>",
        f"<div class='a'hidden>{ARTICLE}</div>",
        f"<div class=it's hidden>{ARTICLE}</div>",
        f"<div title='a > b' hidden>{ARTICLE}</div>",
        f"<div style='color: red; display : none'>{ARTICLE}</div>",
        f"<div style=display:none>{ARTICLE}</div>",
        f'<div style="display:none">{ARTICLE}</div>',
        f'<div data-page="{html.escape(ARTICLE)}"></div>',
        f"<div title='{ARTICLE}'></div>",
        f"<script>{SENTENCE * 40}",
        f"<!-- {ARTICLE}",
        f"<div title='{ARTICLE}",
        "&nbsp;" * 2000,
        "&#1055;" * 300,
        " \n" * 2000,
        "<br>" * 2000,
        "<!---->" * 2000,
    ],
)
def test_text_that_nobody_sees_makes_no_page_long(body):
    """The estimate over the bytes never takes a page for long that a parse finds small."""
    small = page(f"<html><body>{SHORT}{body}{SHORT}</body></html>")
    assert len(small.visible) < SMALL
    assert not is_surely_long(haystack(small), SMALL)


@pytest.mark.parametrize("charset", ["utf-8", "utf-16le", "windows-1251", "gb18030", "koi8-r"])
def test_the_estimate_never_exceeds_what_is_seen(charset):
    """A letter of several bytes is one letter."""
    letters = "我们" if charset == "gb18030" else "Реестр"
    for count in (0, 200, 240, 260, 740, 800, 2000):
        text = page(
            f"<p>{letters * count}</p>".encode(charset.replace("utf-16le", "utf-16-le")), charset=charset
        )
        long = is_surely_long(haystack(text), SMALL)
        assert not long or len(text.visible) >= SMALL
        assert long or count < 2000 or charset == "koi8-r"


SCRAPS = [
    "<p>",
    "</p>",
    "<div hidden>",
    "</div>",
    "<script>",
    "</script>",
    "<!--",
    "-->",
    "<b title='",
    "'>",
    '"',
    "<",
]
JUNK = st.lists(st.sampled_from([*SCRAPS, ">", "&amp;", " hidden", "<title>", SENTENCE, "\x00", "é"])).map(
    "".join
)

OPENING = st.sampled_from(
    ["div", "div hidden", "DIV class='a' HIDDEN=''", "span style='display:none'", "p title='a > hidden b'", "b", "noscript",
     "template", "datalist", "section data-x='<div hidden>'", "title", "script", "style", "table", "svg", "iframe"]
)  # fmt: skip
WELL_FORMED = st.recursive(
    st.sampled_from(
        [SENTENCE * 4, SENTENCE * 9, "a &lt; b", "<br>", "<input hidden>", "<!-- <div> -->", "é", ""]
    ),
    lambda inner: st.builds(
        lambda opening, parts: f"<{opening}>{''.join(parts)}</{opening.split()[0]}>",
        OPENING,
        st.lists(inner, max_size=4),
    ),
    max_leaves=12,
)


@given(WELL_FORMED)
def test_the_estimate_errs_towards_a_parse(body):
    """However elements nest, a page taken for long is long."""
    there = page(f"<html><body>{body}</body></html>")
    assert not is_surely_long(haystack(there), SMALL) or len(there.visible) >= SMALL


@given(
    body=st.binary(max_size=300) | JUNK.map(str.encode),
    status=st.integers(-1, 100_000),
    headers=st.dictionaries(
        st.text(max_size=20) | st.sampled_from(["cf-mitigated", "x-dd-b"]), st.text(max_size=20)
    ),
    url=st.text(max_size=50) | st.sampled_from(["https://[", "http://@", "https://x.org/login"]),
    charset=st.sampled_from(["utf-8", "utf-16le", "replacement", "x-user-defined", "iso-2022-jp"]),
)
def test_nothing_raises(body, status, headers, url, charset):
    """Any bytes, status, headers and URLs give findings and no exception."""
    response = seen(page(body, charset=charset), status, headers, url)
    for finding in decisive(response) + weak(response):
        assert len(finding.matched) <= MATCHED_LENGTH


MEGABYTE = 1 << 20


@pytest.mark.parametrize(
    "unit",
    [
        "<",
        "<!--",
        "<script",
        "<script>",
        "<a b='",
        '<a b="',
        "&#",
        " hidden",
        "style=",
        "<!-",
        "reference denied ",
        "-",
    ],
)
def test_hostile_bytes_take_linear_time(unit):
    """Megabytes of what a pattern begins with cost little more than their reading."""
    data = (unit * (4 * MEGABYTE // len(unit))).encode()
    began = time.perf_counter()
    assert not is_surely_long(data, len(data))
    is_surely_long(data, SMALL)
    ids(decisive(seen(page(data, "text/plain"), 403)))
    assert time.perf_counter() - began < 5


@pytest.mark.parametrize(
    "body",
    [
        "<script>_cf_chl_opt2 " + '"\\' * MEGABYTE + "</script>",
        "<script>_cf_chl_opt2 " + "'" * MEGABYTE + "</script>",
        "<p>cf-error-code" + "<b class=cf-error-code>" * 50_000,
        "<title>" * 200_000,
        "<p>denied reference #1." + "Reference #1.1.1" * 50_000,
        "<script src='//x/orchestrate/challenge-platform/cdn-cgi/challenge-platform/"
        + "a/" * MEGABYTE
        + "'></script>",
    ],
    ids=["escapes", "quotes", "nesting", "title", "references", "path"],
)
def test_hostile_structure_takes_linear_time(body):
    """Long scripts, deep elements and long addresses cost little more than their parse."""
    began = time.perf_counter()
    decisive(seen(body, 403))
    weak(seen(body))
    assert time.perf_counter() - began < 10


def test_the_table_is_complete_and_well_formed():
    """Each signature has a name of its own, an example, a source and, for what is in the body, needles in lower case."""
    names = [signature.id for signature in DECISIVE + WEAK]
    assert len(set(names)) == len(names)
    assert list(EXAMPLES) == [signature.id for signature in DECISIVE]
    assert list(WEAK_EXAMPLES) == [signature.id for signature in WEAK]
    for signature in DECISIVE + WEAK:
        assert signature.source
        assert signature.all_of
    for signature in DECISIVE:
        in_body = any(clue.where not in (Where.HEADER, Where.URL, Where.ASKED) for clue in signature.all_of)
        assert bool(signature.needles) == in_body
        assert all(needle == needle.lower() and needle.isascii() for needle in signature.needles)
    assert 404 in ERRORS
    assert 999 in ERRORS
