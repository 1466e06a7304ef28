"""The first page is small, its files have hashed names, and the browser keeps them."""
import gzip
import http.client
import re

#: Everything that sign-in and Overview need, as it is sent.
FIRST_PAGE_MAX = 120_000
NAME = re.compile(r"/[\w/]*?[\w.]+-[A-Z0-9a-z]{8,}\.(?:js|css|svg)$")
PAINT_S = 60


def fetch(instance, path, **headers):
    c = http.client.HTTPConnection(*instance.address("admind-http"), timeout=PAINT_S)
    try:
        c.request("GET", path, headers=headers)
        r = c.getresponse()
        return r.status, {k.lower(): v for k, v in r.getheaders()}, r.read()
    finally:
        c.close()


def paths(page):
    return page.js("""return performance.getEntriesByType('resource').map(e => new URL(e.name)).filter(u => u.protocol !== 'data:'
        && !u.pathname.startsWith('/api/')).map(u => u.pathname)""")


def test_the_first_page_is_small(page, instance):
    page.open()
    page.go("#/")
    files = sorted({"/", *paths(page)})
    assert any(f.endswith(".js") for f in files) and any(f.endswith(".css") for f in files), files
    sizes = {}
    for f in files:
        status, headers, sent = fetch(instance, f, **{"Accept-Encoding": "gzip"})
        assert status == 200, f
        sizes[f] = len(sent)
        plain = fetch(instance, f)[2]
        assert (gzip.decompress(sent) if headers.get("content-encoding") == "gzip" else sent) == plain, f
        if f != "/":
            assert NAME.search(f) and "immutable" in headers["cache-control"], (f, headers)
    print(sum(sizes.values()), sizes)
    assert sum(sizes.values()) <= FIRST_PAGE_MAX, sizes


def test_a_second_visit_fetches_no_file_again(page):
    page.open()
    page.go("#/")
    page.open()
    page.go("#/")
    again = page.js("""return performance.getEntriesByType('resource').filter(e => !e.name.includes('/api/') && !e.name.startsWith('data:')
        && e.transferSize > 0).map(e => e.name)""")
    assert again == []
