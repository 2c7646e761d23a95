"""The signatures of challenges, denials and placeholder pages: data only; a new one is one more entry."""

from dataclasses import dataclass
from enum import StrEnum

from pravda.core.states import Reason

SMALL = 1500
"""A page with fewer visible characters than this is small."""

SHELL = 40
"""A page with fewer visible characters than this shows nothing."""

ANY = range(10_000)
ERRORS = range(400, 1000)
SUCCESS = range(200, 300)


class Where(StrEnum):
    """The places a clue is looked up in; the words stand in the evidence."""

    HEADER = "header"
    """The values of the header `name`."""
    URL = "final_url"
    """Host and path of the final URL, as `host/path`."""
    ASKED = "asked_url"
    """Host and path of the asked URL, as `host/path`."""
    SCRIPT = "script text"
    """The code of inline scripts that run; strings within it are quotations and do not count."""
    ANY_SCRIPT = "script"
    """Any script that runs: its src, else its text."""
    SRC = "src"
    """The `src` of scripts, iframes and images."""
    IFRAME = "iframe src"
    HREF = "href"
    """The `href` of links and stylesheets."""
    ID = "id"
    CLASS = "class"
    """Each single class."""
    INPUT = "input type"
    META = "meta"
    """The content of the meta element `name`."""
    ELEMENT = "element"
    """The text of the first elements that have the id or class `name`."""
    TITLE = "title"
    HEADING = "heading"
    """The texts of h1 and h2."""
    TEXT = "text"
    """The title, and the text a reader sees."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """One thing that has to be found, or has to be missing."""

    where: Where
    pattern: str
    """Regular expression, searched in each text of the place, case ignored; without nested quantifiers."""
    name: str = ""
    """Which header or meta in lower case, or which element as `#id` or `.class`; empty: the place needs none."""
    absent: bool = False
    """Whether the pattern must not be found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """What a page shows when it is not the page that was asked for."""

    id: str
    vendor: str
    """Whose page it is; empty: nobody's in particular."""
    reason: Reason
    """What it proves."""
    all_of: tuple[Clue, ...]
    """Every one must hold."""
    source: str
    """Where the fact is from."""
    needles: tuple[str, ...] = ()
    """Plain ASCII words that a body has to contain, the rarest first; empty: none of the clues is in the body."""
    statuses: range | frozenset[int] = ANY
    """The HTTP statuses on which it counts."""
    visible_below: int | None = None
    """It counts on pages with fewer visible characters only; None: on pages of any length."""


def _header(name: str, pattern: str) -> Clue:
    return Clue(where=Where.HEADER, name=name, pattern=pattern)


def _text(pattern: str) -> Clue:
    return Clue(where=Where.TEXT, pattern=pattern)


def _title(pattern: str) -> Clue:
    return Clue(where=Where.TITLE, pattern=pattern)


def _src(pattern: str) -> Clue:
    return Clue(where=Where.SRC, pattern=pattern)


def _script(pattern: str) -> Clue:
    return Clue(where=Where.SCRIPT, pattern=pattern)


def _url(pattern: str) -> Clue:
    return Clue(where=Where.URL, pattern=pattern)


def _cloudflare_code(
    name: str, reason: Reason, codes: str, statuses: range | frozenset[int] = ERRORS
) -> tuple[Signature, ...]:
    """Give the three places in which Cloudflare writes the code of a 1xxx error."""
    source = "developers.cloudflare.com, Troubleshooting, Cloudflare 1xxx errors"
    code = rf"(?<!\d)(?:{codes})(?!\d)"
    element = Clue(where=Where.ELEMENT, name=".cf-error-code", pattern=code)
    details = Clue(
        where=Where.ELEMENT, name="#cf-error-details", pattern=rf"Error(?: code)?:? ?(?:{codes})(?!\d)"
    )
    places = (
        ("header", _header("cf-error-type", code), ()),
        ("code", element, ("cf-error-code",)),
        ("details", details, ("cf-error-details",)),
    )
    return tuple(
        Signature(
            id=f"cloudflare-{name}-{place}",
            vendor="Cloudflare",
            reason=reason,
            all_of=(clue,),
            needles=needles,
            statuses=statuses,
            source=source,
        )
        for place, clue, needles in places
    )


_LOGIN_PATH = r"/(?:login|signin|sign-in|sso|authwall|oauth|auth|cas|session/new)(?=[/.;]|$)"

DECISIVE: tuple[Signature, ...] = (
    Signature(
        id="cloudflare-challenge-header",
        vendor="Cloudflare",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_header("cf-mitigated", r"^challenge$"),),
        source="developers.cloudflare.com, Challenges, Detect a challenge page response",
    ),
    Signature(
        id="cloudflare-challenge-script",
        vendor="Cloudflare",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_script(r"\b_cf_chl_opt\b"),),
        needles=("_cf_chl_opt",),
        source="github.com/Aly-Reda/Cloudflare-DDoS-Protection-Case-Study; case cf-managed-403",
    ),
    Signature(
        id="cloudflare-challenge-src",
        vendor="Cloudflare",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"^(?:(?:https?:)?//[^/?#]*)?/cdn-cgi/challenge-platform/(?:[^?#]*/)?orchestrate/"),),
        needles=("/orchestrate/", "challenge-platform"),
        source="case cf-managed-403; the beacon on ordinary pages is /cdn-cgi/challenge-platform/…/scripts/jsd/",
    ),
    Signature(
        id="cloudflare-challenge-class",
        vendor="Cloudflare",
        reason=Reason.BOT_CHALLENGE,
        all_of=(
            Clue(where=Where.CLASS, pattern=r"^cf-browser-verification$"),
            Clue(where=Where.CLASS, pattern=r"^cf-im-under-attack$"),
        ),
        needles=("cf-browser-verification", "cf-im-under-attack"),
        source="the I'm Under Attack page of before 2022, as kept by github.com/VeNoMouS/cloudscraper",
    ),
    *_cloudflare_code("denied", Reason.ACCESS_DENIED, "1005|1006|1007|1008|1010|1012|1020|1106"),
    *_cloudflare_code("geo", Reason.GEO_BLOCK, "1009"),
    *_cloudflare_code("rate", Reason.RATE_LIMITED, "1015"),
    # Code 1000 also comes under 403: there the page's own word for the fault decides, and it is no denial.
    *_cloudflare_code(
        "dns", Reason.ORIGIN_DNS, "1000|1001|1002|1016|1018", statuses=frozenset({403, 409, 530})
    ),
    Signature(
        id="akamai-denied",
        vendor="Akamai",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"Access Denied"), _text(r"Reference ?#\d{1,9}\.[0-9a-f]+\.[0-9a-f]+\.[0-9a-f]+")),
        needles=("reference", "denied"),
        statuses=ERRORS,
        source="case akamai-denied-403; techdocs.akamai.com, Edge Diagnostics, error reference codes",
    ),
    Signature(
        id="imperva-iframe",
        vendor="Imperva",
        reason=Reason.BOT_CHALLENGE,
        all_of=(Clue(where=Where.IFRAME, pattern=r"^(?:(?:https?:)?//[^/?#]*)?/_Incapsula_Resource\b"),),
        needles=("_incapsula_resource", "iframe"),
        visible_below=SMALL,
        source="case imperva-200-iframe",
    ),
    Signature(
        id="imperva-distil",
        vendor="Imperva",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_title(r"^Pardon Our Interruption\b"),),
        needles=("pardon our interruption",),
        visible_below=SMALL,
        source="github.com/EnableSecurity/wafw00f, plugin distil",
    ),
    Signature(
        id="datadome-header",
        vendor="DataDome",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_header("x-dd-b", r"^[12]$"),),
        source="case datadome-403",
    ),
    Signature(
        id="datadome-src",
        vendor="DataDome",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"^(?:https?:)?//(?:geo|ct)\.captcha-delivery\.com(?:[/:?#]|$)"),),
        needles=("captcha-delivery.com",),
        visible_below=SMALL,
        source="case datadome-403",
    ),
    Signature(
        id="datadome-script",
        vendor="DataDome",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_script(r"\bvar\s+dd\s?=\s?\{\s?['\"]rt['\"]"),),
        needles=("var dd",),
        visible_below=SMALL,
        source="case datadome-403",
    ),
    Signature(
        id="human-id",
        vendor="HUMAN",
        reason=Reason.BOT_CHALLENGE,
        all_of=(Clue(where=Where.ID, pattern=r"^px-captcha$"),),
        needles=("px-captcha",),
        visible_below=SMALL,
        source="github.com/PerimeterX/perimeterx-node-core, block page template",
    ),
    Signature(
        id="human-meta",
        vendor="HUMAN",
        reason=Reason.BOT_CHALLENGE,
        all_of=(Clue(where=Where.META, name="description", pattern=r"^px-captcha$"),),
        needles=("px-captcha",),
        visible_below=SMALL,
        source="github.com/PerimeterX/perimeterx-node-core, block page template",
    ),
    Signature(
        id="human-src",
        vendor="HUMAN",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"^(?:https?:)?//captcha\.px-cdn\.net(?:[/:?#]|$)"),),
        needles=("captcha.px-cdn.net",),
        visible_below=SMALL,
        source="github.com/PerimeterX/perimeterx-node-core, block page template",
    ),
    Signature(
        id="aws-waf-header",
        vendor="AWS WAF",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_header("x-amzn-waf-action", r"^(?:challenge|captcha)$"),),
        source="docs.aws.amazon.com, AWS WAF developer guide, CAPTCHA and Challenge",
    ),
    Signature(
        id="aws-waf-script",
        vendor="AWS WAF",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_script(r"\bwindow\.gokuProps\b"),),
        needles=("gokuprops",),
        visible_below=SMALL,
        source="case aws-waf-challenge-202-html",
    ),
    Signature(
        id="cloudfront-denied",
        vendor="CloudFront",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"The request could not be satisfied"), _text(r"Request blocked")),
        needles=("request blocked", "request could not be satisfied"),
        statuses=frozenset({400, 403}),
        source="docs.aws.amazon.com, CloudFront developer guide, HTTP 403 status code",
    ),
    Signature(
        id="cloudfront-geo",
        vendor="CloudFront",
        reason=Reason.GEO_BLOCK,
        all_of=(
            _text(r"The request could not be satisfied"),
            _text(r"CloudFront distribution is configured to block access from your country"),
        ),
        needles=("to block access from your country", "request could not be satisfied"),
        statuses=frozenset({403}),
        source="docs.aws.amazon.com, CloudFront developer guide, HTTP 403 status code",
    ),
    Signature(
        id="sucuri-denied",
        vendor="Sucuri",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"Access Denied\W{1,5}Sucuri Website Firewall"), _text(r"Block ID\b")),
        needles=("sucuri website firewall", "block id"),
        statuses=ERRORS,
        source="case sucuri-403; github.com/EnableSecurity/wafw00f, plugin sucuri",
    ),
    Signature(
        id="wordfence-denied",
        vendor="Wordfence",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"limited by the site owner"), _text(r"Generated by Wordfence")),
        needles=("generated by wordfence", "by the site owner"),
        statuses=ERRORS,
        source="github.com/Ekultek/WhatWaf issues 1302, 1330; github.com/adamziel/reprint pull 742",
    ),
    Signature(
        id="modsecurity-denied",
        vendor="ModSecurity",
        reason=Reason.ACCESS_DENIED,
        all_of=(
            _text(r"An appropriate representation of the requested resource could not be found"),
            _text(r"This error was generated by Mod_Security"),
        ),
        needles=("generated by mod_security", "appropriate representation"),
        statuses=ERRORS,
        source="github.com/EnableSecurity/wafw00f, plugin modsecurity; pages of shared hosts under 406",
    ),
    Signature(
        id="f5-asm-denied",
        vendor="F5 ASM",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"The requested URL was rejected"), _text(r"support ID is")),
        needles=("requested url was rejected", "support id is"),
        visible_below=SMALL,
        source="my.f5.com, default blocking response page; github.com/EnableSecurity/wafw00f, plugin f5bigipasm",
    ),
    Signature(
        id="ddos-guard-src",
        vendor="DDoS-Guard",
        reason=Reason.BOT_CHALLENGE,
        all_of=(
            _title(r"^DDoS-Guard$"),
            _src(r"/\.well-known/ddos-guard/(?:js-challenge|ddg-captcha-page)/"),
        ),
        needles=(".well-known/ddos-guard/", "ddos-guard"),
        statuses=ERRORS,
        source="github.com/FlareSolverr/FlareSolverr pull 559; github.com/mikf/gallery-dl pull 3569",
    ),
    Signature(
        id="ddos-guard-text",
        vendor="DDoS-Guard",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_text(r"Checking your browser before accessing"), _text(r"\bDDoS-Guard\b")),
        needles=("checking your browser before accessing", "ddos-guard"),
        statuses=ERRORS,
        source="github.com/FlareSolverr/FlareSolverr pull 559; github.com/Ekultek/WhatWaf issue 1005",
    ),
    Signature(
        id="stackpath-denied",
        vendor="StackPath",
        reason=Reason.ACCESS_DENIED,
        all_of=(
            _text(r"is using a security service for protection against online attacks"),
            _text(r"An action has triggered the service and blocked your request"),
        ),
        needles=("triggered the service and blocked", "protection against online attacks"),
        statuses=ERRORS,
        source="github.com/EnableSecurity/wafw00f, plugin stackpath",
    ),
    Signature(
        id="reblaze-denied",
        vendor="Reblaze",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"Access denied \(403\)"), _text(r"Current session has been terminated")),
        needles=("current session has been terminated", "denied"),
        statuses=ERRORS,
        source="github.com/EnableSecurity/wafw00f, plugin reblaze",
    ),
    Signature(
        id="barracuda-denied",
        vendor="Barracuda",
        reason=Reason.ACCESS_DENIED,
        all_of=(
            _text(r"when this page occurred"),
            _text(r"event ID found at the bottom of the page"),
        ),
        needles=("event id found at the bottom", "this page occurred"),
        statuses=ERRORS,
        source="github.com/stamparm/identYwaf, data on barracuda",
    ),
    Signature(
        id="azure-gateway-denied",
        vendor="Azure Application Gateway",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"403 Forbidden"), _text(r"Microsoft-Azure-Application-Gateway/v\d")),
        needles=("microsoft-azure-application-gateway", "forbidden"),
        statuses=frozenset({403}),
        source="github.com/EnableSecurity/wafw00f, plugin applicationgateway; its footer also stands on 5xx pages",
    ),
    Signature(
        id="azure-front-door-denied",
        vendor="Azure Front Door",
        reason=Reason.ACCESS_DENIED,
        all_of=(_header("x-azure-ref", r"."), _text(r"\bThe request is blocked\b")),
        needles=("the request is blocked",),
        statuses=ERRORS,
        source="learn.microsoft.com, Policy settings for Web Application Firewall on Azure Front Door",
    ),
    Signature(
        id="netscaler-denied",
        vendor="NetScaler",
        reason=Reason.ACCESS_DENIED,
        all_of=(_text(r"\b(?:NS Transaction|AppFW Session) id\b"), _text(r"Violation Category.{0,5}APPFW_")),
        needles=("appfw_", "violation category"),
        statuses=ERRORS,
        source="github.com/EnableSecurity/wafw00f, plugin netscaler",
    ),
    Signature(
        id="kasada-src",
        vendor="Kasada",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"/ips\.js\?KP_UIDz="),),
        needles=("kp_uidz",),
        visible_below=SMALL,
        source="challenge pages under 429 seen in the wild",
    ),
    Signature(
        id="kasada-script",
        vendor="Kasada",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_script(r"\bwindow\.KPSDK\b"),),
        needles=("window.kpsdk",),
        # Pages that passed the check configure the same object under 200.
        statuses=ERRORS,
        visible_below=SMALL,
        source="challenge pages under 429 seen in the wild",
    ),
    Signature(
        id="vercel-challenge",
        vendor="Vercel",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_header("x-vercel-mitigated", r"^challenge$"),),
        source="vercel.com/docs, Firewall, response headers; case vercel-429",
    ),
    Signature(
        id="vercel-denied",
        vendor="Vercel",
        reason=Reason.ACCESS_DENIED,
        all_of=(_header("x-vercel-mitigated", r"^deny$"),),
        source="vercel.com/docs, Firewall, response headers",
    ),
    Signature(
        id="vercel-title",
        vendor="Vercel",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_title(r"^Vercel Security Checkpoint$"),),
        needles=("vercel security checkpoint",),
        visible_below=SMALL,
        source="case vercel-429",
    ),
    Signature(
        id="anubis-id",
        vendor="Anubis",
        reason=Reason.BOT_CHALLENGE,
        all_of=(Clue(where=Where.ID, pattern=r"^anubis_challenge$"),),
        needles=("anubis_challenge",),
        source="github.com/TecharoHQ/anubis; case anubis-feed-200",
    ),
    Signature(
        id="anubis-src",
        vendor="Anubis",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"/\.within\.website/x/cmd/anubis/"),),
        needles=(".within.website/x/cmd/anubis/",),
        visible_below=SMALL,
        source="github.com/TecharoHQ/anubis",
    ),
    Signature(
        id="go-away-src",
        vendor="go-away",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_src(r"/\.well-known/\.git\.gammaspectra\.live/git/go-away/"),),
        needles=(".git.gammaspectra.live/git/go-away/",),
        visible_below=SMALL,
        source="git.gammaspectra.live/git/go-away",
    ),
    Signature(
        id="go-away-href",
        vendor="go-away",
        reason=Reason.BOT_CHALLENGE,
        all_of=(Clue(where=Where.HREF, pattern=r"/\.well-known/\.git\.gammaspectra\.live/git/go-away/"),),
        needles=(".git.gammaspectra.live/git/go-away/",),
        visible_below=SMALL,
        source="git.gammaspectra.live/git/go-away",
    ),
    Signature(
        id="google-sorry",
        vendor="Google",
        reason=Reason.BOT_CHALLENGE,
        all_of=(_url(r"^(?:[^/]+\.)?google\.(?:com?\.)?[a-z]{2,3}/sorry/"),),
        source="support.google.com, Unusual traffic from your computer network",
    ),
    Signature(
        id="google-consent",
        vendor="Google",
        reason=Reason.CONSENT_WALL,
        all_of=(_url(r"^consent\.(?:google|youtube)\.com(?:/|$)"),),
        source="the hosts that Google and YouTube redirect to in Europe",
    ),
    Signature(
        id="queue-it",
        vendor="Queue-it",
        reason=Reason.WAITING_ROOM,
        all_of=(_url(r"^[^/]+\.queue-it\.net(?:/|$)"),),
        source="support.queue-it.com, waiting room domains",
    ),
    Signature(
        id="login-wall",
        vendor="",
        reason=Reason.LOGIN_WALL,
        all_of=(
            _url(_LOGIN_PATH),
            Clue(where=Where.ASKED, pattern=_LOGIN_PATH, absent=True),
            Clue(where=Where.INPUT, pattern=r"^password$"),
        ),
        needles=("password",),
        # A 401 or 403 has a reason of its own, and a 404 under such a path is no login.
        statuses=SUCCESS,
        source="common practice: the path of the login form the visitor is sent to",
    ),
    Signature(
        id="nginx-client-certificate",
        vendor="nginx",
        reason=Reason.CLIENT_CERTIFICATE_REQUIRED,
        all_of=(
            _title(
                r"^(?:400 )?(?:The SSL certificate error|No required SSL certificate was sent)(?: \(400\))?$"
            ),
        ),
        needles=("ssl certificate",),
        statuses=frozenset({400}),
        source="nginx, ngx_http_special_response.c, pages of 495 and 496",
    ),
)

_NOT_FOUND = (
    r"\b(?:page|file|document|content|site|url|resource|listing|article|item|record)s?"
    r"(?: you (?:requested|are looking for|were looking for))?"
    r" (?:(?:was|is|are|were|could|can) ?not (?:be )?(?:found|available)|cannot be found|not found|"
    r"(?:does not|doesn['’]t) exist|no longer (?:exists|available)|(?:is|was) no longer available)"
    r"|^(?:error:? )?not found\b"
    r"|\b(?:error|http|status|code|fehler|erreur|ошибка)[ :-]{1,3}404\b"
    r"|\b404[ :|–—-]{0,3}(?:error|not found|page|file|fehler|erreur|ошибка)\b"
    r"|^404[.!]?$"
    r"|\bnicht gefunden\b|\bpage (?:non trouvée|introuvable)|\bp[áa]gina no (?:encontrada|existe)"
    r"|\bp[áa]gina n[ãa]o (?:foi )?encontrada|\bpagina non trovata|\bpagina niet gevonden"
    r"|\bstrona nie (?:została znaleziona|istnieje)|\bстраница не (?:найдена|существует)"
    r"|\bсторінк[ау] не знайдено|ページが見つかりません|页面不存在|找不到页面|找不到網頁"
)

_MAINTENANCE = (
    r"\b(?:under(?:going)?|down for|closed for|offline for|unavailable (?:for|due to)) (?:\w{1,20} ){0,2}maintenance\b"
    r"|\b(?:web ?site|site|system|server|scheduled|planned|temporary) maintenance\b"
    r"|\bmaintenance (?:mode|page|break|work in progress)\b"
    r"|^maintenance[.!]?$"
    r"|\bwe(?:['’]ll| will) be (?:right )?back\b"
    r"|\bwartungs(?:arbeiten|modus|seite)\b|\b(?:site|page) en maintenance\b|\ben mantenimiento\b"
    r"|\bem manutenção\b|\bin manutenzione\b|\bтехнические работы\b|\bтехническое обслуживание\b"
)

_FOR_SALE = (
    r"\bdomain(?: name)?(?: [\w-]{1,63}(?:\.[\w-]{1,63}){1,4})? (?:is|may be|could be) (?:available )?for sale\b"
    r"|\bthis (?:web ?site|site) is for sale\b"
)

WEAK: tuple[Signature, ...] = (
    Signature(
        id="parked-lander",
        vendor="",
        reason=Reason.PARKED_DOMAIN,
        all_of=(
            _src(
                r"^(?:https?:)?//(?:(?:[^/?#]+\.)?(?:sedoparking\.com|parkingcrew\.net|bodis\.com|parklogic\.com)[/:?#]"
                r"|img1\.wsimg\.com/parking-lander/)"
            ),
        ),
        visible_below=SMALL,
        source="case parked-200; github.com/carrie0307/parking-domain-detection, parking services",
    ),
    Signature(
        id="parked-market",
        vendor="",
        reason=Reason.PARKED_DOMAIN,
        all_of=(
            _url(
                r"^(?:www\.)?(?:hugedomains\.com/domain_profile\.cfm|afternic\.com/forsale/|dan\.com/buy-domain/"
                r"|sedo\.com/search/details)"
            ),
        ),
        visible_below=SMALL,
        source="the pages domain markets redirect a parked domain to",
    ),
    Signature(
        id="parked-for-sale",
        vendor="",
        reason=Reason.PARKED_DOMAIN,
        all_of=(_text(_FOR_SALE),),
        visible_below=SMALL,
        source="case parked-200",
    ),
    Signature(
        id="suspended-url",
        vendor="cPanel",
        reason=Reason.HOSTING_SUSPENDED,
        all_of=(_url(r"/cgi-sys/suspendedpage\.cgi$"),),
        visible_below=SMALL,
        source="docs.cpanel.net, Web Template Editor, Account Suspended page",
    ),
    Signature(
        id="suspended-text",
        vendor="cPanel",
        reason=Reason.HOSTING_SUSPENDED,
        all_of=(_text(r"\bThis Account has been suspended\b"),),
        visible_below=SMALL,
        source="docs.cpanel.net, Web Template Editor, Account Suspended page",
    ),
    Signature(
        id="maintenance-title",
        vendor="",
        reason=Reason.MAINTENANCE_PAGE,
        all_of=(_title(_MAINTENANCE),),
        visible_below=SMALL,
        source="common titles of such pages",
    ),
    Signature(
        id="soft-404-heading",
        vendor="",
        reason=Reason.SOFT_404,
        all_of=(_title(_NOT_FOUND), Clue(where=Where.HEADING, pattern=_NOT_FOUND)),
        visible_below=SMALL,
        source="common titles of such pages",
    ),
    Signature(
        id="soft-404-noindex",
        vendor="",
        reason=Reason.SOFT_404,
        all_of=(_title(_NOT_FOUND), Clue(where=Where.META, name="robots", pattern=r"\b(?:noindex|none)\b")),
        visible_below=SMALL,
        source="common titles of such pages; developers.google.com, robots meta tag",
    ),
    Signature(
        id="soft-404-noindex-header",
        vendor="",
        reason=Reason.SOFT_404,
        all_of=(_header("x-robots-tag", r"\b(?:noindex|none)\b"), _title(_NOT_FOUND)),
        visible_below=SMALL,
        source="common titles of such pages; developers.google.com, X-Robots-Tag",
    ),
    Signature(
        id="script-shell",
        vendor="",
        reason=Reason.JS_REQUIRED,
        all_of=(Clue(where=Where.ANY_SCRIPT, pattern=r"\S"),),
        visible_below=SHELL,
        source="the empty element that a browser application fills",
    ),
)
