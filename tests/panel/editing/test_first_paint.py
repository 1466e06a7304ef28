"""What a browser waits for before the first page: the parts of its program come at once, and a page's file beside the login's
answer."""
import re
import urllib.request

#: Requests and files in the order of their start; a file's start and end, by the page's clock.
TIMES = """return performance.getEntriesByType('resource').filter(e => !e.name.startsWith('data:'))
    .map(e => [new URL(e.name).pathname, e.startTime, e.responseEnd])"""


def test_the_document_names_each_part_of_the_program(page, origin):
    with urllib.request.urlopen(origin + "/") as r:
        text = r.read().decode()
    [main] = re.findall(r'<script type="module" src="(/panel/main-[^"]+)"', text)
    named = set(re.findall(r'<link rel="modulepreload" href="([^"]+)"', text))
    seen, left = set(), [main]
    while left:
        with urllib.request.urlopen(origin + left.pop()) as r:
            source = r.read().decode()
        new = {"/panel/" + n for n in re.findall(r'(?:from|import)"\./([^"]+)"', source)} - seen
        seen |= new
        left += new
    assert seen == named and seen, (seen, named)
    assert text.index("modulepreload") < text.index("<script"), "the parts are named after the program"


def test_the_pages_file_is_asked_for_before_the_login_is_answered(page):
    """In order, whatever the speed: the request of the file starts before the answer of /api/me has ended."""
    page.open()
    page.go("#/")
    times = {path: (start, end) for path, start, end in page.js(TIMES)}
    me = times["/api/me"]
    [main] = [n for n in times if n.startswith("/panel/main-") and n.endswith(".js")]
    later = [n for n, (start, _) in times.items() if re.match(r"/panel/page-.*\.js$", n) and start > times[main][0]]
    assert later and min(times[n][0] for n in later) < me[1], times
