"""requests-cache on SQLite in a pool of threads; the second pass always revalidates."""

from concurrent.futures import ThreadPoolExecutor

from contest import Costs, Task, expect, read_task
from requests.adapters import HTTPAdapter
from requests_cache import CachedSession


def fetch(task: Task, costs: Costs) -> None:
    """Fetch everything twice."""
    session = CachedSession(str(task.store / "cache"), backend="sqlite", always_revalidate=True)
    session.mount("http://", HTTPAdapter(pool_connections=task.concurrency, pool_maxsize=task.concurrency))

    def one(url: str, *, again: bool) -> None:
        response = session.get(url)
        expect(response.status_code == 200 and len(response.content) > 1000, url)
        expect(not again or response.revalidated or response.from_cache, f"{url} not revalidated")

    with ThreadPoolExecutor(task.concurrency) as pool:
        for name, again in (("store", False), ("revalidate", True)):
            with costs.measured(name):
                for done in [pool.submit(one, url, again=again) for url in task.urls]:
                    done.result()


if __name__ == "__main__":
    given = read_task()
    outcome = Costs(len(given.urls))
    fetch(given, outcome)
    outcome.tell()
