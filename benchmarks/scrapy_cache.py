"""scrapy with its HTTP cache on files and the RFC 2616 policy; the second crawl revalidates."""

from collections.abc import Iterator

import scrapy
from contest import Costs, Task, expect, read_task
from scrapy.crawler import CrawlerRunner
from scrapy.http import Response
from scrapy.utils.reactor import install_reactor


def settings(task: Task) -> dict[str, object]:
    """As a user would set it for politeness-free local speed."""
    return {
        "HTTPCACHE_ENABLED": True,
        "HTTPCACHE_DIR": str(task.store / "cache"),
        "HTTPCACHE_POLICY": "scrapy.extensions.httpcache.RFC2616Policy",
        "CONCURRENT_REQUESTS": task.concurrency,
        "CONCURRENT_REQUESTS_PER_DOMAIN": task.concurrency,
        "DOWNLOAD_DELAY": 0,
        "ROBOTSTXT_OBEY": False,
        "LOG_ENABLED": False,
        "TELNETCONSOLE_ENABLED": False,
        "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    }


class Spider(scrapy.Spider):
    """Fetches the list and keeps nothing but a count."""

    name = "contest"
    urls: tuple[str, ...] = ()
    count = 0

    async def start(self) -> "Iterator[scrapy.Request]":
        """All URLs at once."""
        for url in self.urls:
            yield scrapy.Request(url, self.parse)

    def parse(self, response: Response) -> None:
        """Count what is whole."""
        type(self).count += response.status == 200 and len(response.body) > 1000


def main(task: Task, costs: Costs) -> None:
    """Crawl twice."""
    install_reactor("twisted.internet.asyncioreactor.AsyncioSelectorReactor")
    from twisted.internet import defer, reactor  # the reactor must be installed before it is imported

    async def crawl() -> None:
        for name in ("store", "revalidate"):
            Spider.urls, Spider.count = task.urls, 0
            with costs.measured(name):
                await CrawlerRunner(settings(task)).crawl(Spider)
            expect(Spider.count == len(task.urls), f"{Spider.count} of {len(task.urls)}")

    def end(result: object) -> None:
        reactor.stop()
        if result is not None:
            raise SystemExit(f"not done: {result}")

    reactor.callWhenRunning(lambda: defer.Deferred.fromCoroutine(crawl()).addBoth(end))
    reactor.run()


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    main(given, outcome)
    outcome.tell()
