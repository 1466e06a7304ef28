"""How soon the panel's pages are drawn where there is much: a thousand approvals wait, among ten thousand tools and a million
records (harness/scale). A browser goes from page to page, as a person does; the panel's files are there."""
import psycopg

from harness import scale
from harness.clients.chromium import Chromium
from harness.clients.page import Page
from harness.clients.visits import PAGES, visit, watch
from paint import sign_in
from values import Values


def fill(suite):
    with psycopg.connect(f"host={suite.run('postgresql')} user=postgres dbname=mcpbox", autocommit=True) as db:
        scale.fill(db)
        # as after a while of use: plans know how much there is
        db.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'mcpbox_app'")


def pages(suite, rounds, say):
    """Of a full suite: "ROUTE drawn" -> milliseconds, "ROUTE slowest" -> those of its slowest request, one value a visit."""
    values, chromium = Values(), Chromium(suite.uid("stranger"))
    try:
        page = Page(chromium, "http://{}:{}".format(*suite.address("admind-http")))
        page.size(1280)
        page.open()
        sign_in(page, suite)
        watch(page)
        for where in PAGES:
            visit(page, where)      # not counted: files, plans and tables become warm
            say(f"the panel with much: {where}")
            for _ in range(rounds):
                got = visit(page, where)
                if bad := [a for a in got["asked"] if a["status"] not in (200, 204)]:
                    raise RuntimeError(f"{where}: {bad}")
                values.add(f"{where} drawn", got["ms"])
                values.add(f"{where} slowest", max((a["ms"] for a in got["asked"]), default=0.0))
    finally:
        chromium.close()
    return values
