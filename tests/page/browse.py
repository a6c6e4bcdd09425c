#!/usr/bin/python3
"""Opens the page of a pool in a real browser.

    browse.py URL             checks what a reader needs: figures that are right, a worker that is killed and comes back, and
                              the timeline of it, a server that is lost, the keyboard, both schemes of colours, the page without JavaScript. Exit code 1 names what is wrong,
                              77 that no browser is here.
    browse.py URL --workers N checks that the page of N workers shows each in a row of its own that can be read.
    browse.py URL --cells     checks that the page of two cells shows each, both together, and the chosen one.
    browse.py URL --chaos     of the demonstration: freezes a worker by its button: sees the fault, the recovery, and the two sides;
                              with a file behind it stores a picture there.
    browse.py URL --red       checks that one charged twice, one oversold and one wrong total are shown as bad.
    browse.py URL --ready N   opens it N times; prints after how many milliseconds of each it showed its first figures, live.
    browse.py URL PICTURE     waits until the page is full, and stores a picture of it.
"""
import os
import re
import signal
import socket
import sys
import tempfile
import time
import urllib.parse

try:
    from selenium import webdriver
    from selenium.webdriver.common.keys import Keys
    from selenium.webdriver.support import expected_conditions
except ImportError:
    print("SKIPPED: python3-selenium is not here: scripts/setup installs it")
    sys.exit(77)

BROWSER, DRIVER = "/usr/bin/chromium", "/usr/bin/chromedriver"
TABLES = ("cells", "jobs", "worker-rows", "timeline", "stock", "waits", "incidents", "parked")
WAIT_S = 120
READ = """
const text = (id) => document.getElementById(id).textContent.trim();
const rows = (id) => [...document.getElementById(id).tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent.trim()));
const seen = {verdict: document.getElementById("verdict").dataset.state, live: text("live"), unknown: text("unknown"), newest: text("newest"), twice: text("twice"),
              oversold: text("oversold"), wrong: text("wrong"), audit: text("audit"), colour: getComputedStyle(document.body).backgroundColor,
              bars: document.querySelectorAll("#worker-rows .bar").length, lines: document.querySelectorAll("#rate path").length,
              wide: document.documentElement.scrollWidth - document.documentElement.clientWidth};
for (const id of arguments[0]) seen[id] = rows(id);
return seen;
"""


def open_browser(profile, javascript=True, size="1280,1100"):
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    for flag in ("--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking",
                 "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", f"--window-size={size}",
                 f"--user-data-dir={profile}"):
        options.add_argument(flag)
    if not javascript:
        options.add_experimental_option("prefs", {"profile.managed_default_content_settings.javascript": 2})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(service=webdriver.chrome.service.Service(DRIVER), options=options)


class Page:
    def __init__(self, browser, url):
        self.browser = browser
        browser.get(url)

    def seen(self):
        return self.browser.execute_script(READ, TABLES)

    def scheme(self, name):
        self.browser.execute_cdp_cmd("Emulation.setEmulatedMedia",
                                     {"features": [{"name": "prefers-color-scheme", "value": name}]})

    def wait(self, words, true_of):
        """Returns the reading of which it is true; fails with the words when it never is."""
        deadline = time.monotonic() + WAIT_S
        while not true_of(seen := self.seen()):
            if time.monotonic() > deadline:
                sys.exit(f"page: {words}: {seen}")
            time.sleep(0.2)
        return seen


def check(true, words, seen):
    if not true:
        sys.exit(f"page: {words}: {seen}")


def check_figures(page):
    seen = page.wait("it is never live with a good verdict",
                     lambda s: s["live"] == "live" and s["verdict"] == "good" and "no promise is broken" in s["audit"])
    check((seen["twice"], seen["oversold"], seen["wrong"]) == ("0", "0", "0"), "something was charged twice or oversold", seen)
    check([row[0] for row in seen["jobs"]] == ["billing", "orders", "payments"], "the jobs are not there", seen)
    check(seen["bars"] == len(seen["worker-rows"]) > 1, "a worker has no bar for its lease", seen)
    check(seen["lines"] == 3, "the rate has not a line for each job", seen)


def check_killed_worker(page):
    """The page names the process; it is killed, and another one comes into its slot."""
    slot, job, pid = page.seen()["worker-rows"][0][:3]
    os.kill(int(pid), signal.SIGKILL)
    seen = page.wait(f"the worker in place of {pid} is not seen",
                     lambda s: s["worker-rows"][0][2] not in (pid, "–") and s["worker-rows"][0][4] == "1")
    check(seen["worker-rows"][0][:2] == [slot, job], "the slot has another job", seen)
    page.wait("it is not at work again", lambda s: s["worker-rows"][0][3] in ("works", "connected") and s["verdict"] == "good")
    seen = page.wait("the timeline does not tell when it recovered", lambda s: len(s["timeline"][0]) == 5 and s["timeline"][0][4] != "not yet")
    check(seen["timeline"][0][1:4] == ["worker died", f"worker {slot} of {job}", "signal 9"], "the timeline tells something else", seen)
    check(re.fullmatch(r"[0-9.]+ (ms|s|min)( [0-9]+ s)?", seen["timeline"][0][4]), "the recovery has no time", seen)


def parent(pid):
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:
        return int(file.read().rsplit(")", 1)[1].split()[1])


def serving(supervisor):
    """The process of the page."""
    with open(f"/proc/{supervisor}/task/{supervisor}/children", encoding="ascii") as file:
        for pid in map(int, file.read().split()):
            with open(f"/proc/{pid}/comm", encoding="ascii") as name:
                if name.read() == "http\n":
                    return pid
    sys.exit("page: no process serves the page")


def check_lost(page):
    """The server says nothing, and later is gone: the verdict is not known, its age grows, and it comes back."""
    supervisor = parent(page.seen()["worker-rows"][0][2])
    for sig in (signal.SIGSTOP, signal.SIGKILL):
        server = serving(supervisor)
        os.kill(supervisor, signal.SIGSTOP)  # it would start another one
        try:
            os.kill(server, sig)
            seen = page.wait("the verdict stays known though nobody answers", lambda s: s["verdict"] == "unknown")
            check(seen["unknown"] == "Not known; it was:" and seen["live"].startswith("the pool does not answer"), "it does not say so", seen)
            page.wait("the age of the verdict stands still", lambda s: s["newest"] != seen["newest"] and " s ago" in s["newest"])
        finally:
            os.kill(supervisor, signal.SIGCONT)
        if sig == signal.SIGSTOP:
            os.kill(server, signal.SIGCONT)
        page.wait("the verdict does not come back", lambda s: s["verdict"] == "good" and s["live"] == "live" and s["unknown"] == "")


def check_full(page, url):
    """As many pages are open as may be: the next one says that it has no answer, and shows the pool as soon as there is room."""
    host, port = urllib.parse.urlsplit(url).netloc.split(":")
    others = []
    page.browser.get("about:blank")  # whose place is free a moment later
    deadline = time.monotonic() + WAIT_S
    try:
        while len(others) < 64:
            check(time.monotonic() < deadline, "no 64 pages can be open", len(others))
            other = socket.create_connection((host, int(port)))
            other.sendall(b"GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            if other.recv(12).endswith(b"200"):
                others.append(other)
            else:
                other.close()
                time.sleep(0.2)
        page.browser.get(url)
        page.wait("it is live though 64 others are", lambda s: s["live"].startswith("the pool does not answer"))
    finally:
        for other in others:
            other.close()
    page.wait("it does not try again", lambda s: s["live"] == "live")


def check_ages(page):
    """An age is written as everywhere else: the same file holds age_text in C to it (tests/unit/test_age.c)."""
    with open(os.path.join(os.path.dirname(os.path.abspath(__file__)), "ages"), encoding="ascii") as file:
        for ms, text in (line.rstrip("\n").split(" ", 1) for line in file if line[0] != "#"):
            seen = page.browser.execute_script("return age(arguments[0])", int(ms))
            check(seen == text, f"{ms} ms are not {text}", seen)


def check_schemes(page):
    page.scheme("light")
    light = page.seen()["colour"]
    page.scheme("dark")
    dark = page.seen()["colour"]
    check(light != dark, "dark looks as light", (light, dark))


def check_keyboard(page):
    """The first key leads to a link over the head; it leads to the workers."""
    body = page.browser.find_element("tag name", "body")
    body.send_keys(Keys.TAB)
    first = page.browser.switch_to.active_element
    check(first.get_attribute("class") == "skip", "the first stop is not the link over the head", first.tag_name)
    first.send_keys(Keys.ENTER)
    check(page.browser.switch_to.active_element.get_attribute("id") == "workers", "the link does not lead to the workers", "")
    stops = []
    for _ in range(8):
        page.browser.switch_to.active_element.send_keys(Keys.TAB)
        stops.append(page.browser.switch_to.active_element.text)
    check("metrics" in stops, "the links at the foot are not reached", stops)


def check_errors(page):
    errors = [entry["message"] for entry in page.browser.get_log("browser")]
    check(not errors, "the browser complains", errors)


CARDS = """
const rows = [...document.getElementById("worker-rows").tBodies[0].rows], width = document.documentElement.clientWidth;
return {width, high: Math.max(...rows.map((r) => r.getBoundingClientRect().height)),
        out: [...document.querySelectorAll("td, .bar")].filter((n) => n.getBoundingClientRect().right > width).map((n) => n.textContent),
        heads: [...rows[0].cells].map((c) => getComputedStyle(c, "::before").content.replaceAll('"', ""))};
"""


def check_phone(profile, url):
    """In the width of a phone a worker is a card, whose cells say what they are, and nothing is cut off."""
    browser = open_browser(profile, size="500,800")
    try:
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True})
        page = Page(browser, url)
        seen = page.wait("it is never live", lambda s: s["live"] == "live" and s["bars"] > 0)
        check(seen["wide"] <= 0, "a phone scrolls sideways", seen["wide"])
        cards = browser.execute_script(CARDS)
        check(cards["width"] == 390 and cards["high"] < 140 and not cards["out"], "the card of a worker cannot be read", cards)
        check(cards["heads"][-1] == "lease left", "a cell does not say what it is", cards)
    finally:
        browser.quit()


def check_spoken(page):
    """For a screen reader the verdict is a live region, and a chart has its newest values."""
    region = page.browser.find_element("id", "h-verdict")
    check((region.get_attribute("aria-live"), region.text) == ("polite", "ledgerlock: no promise is broken"), "the verdict is not told", region.text)
    label = page.browser.find_element("id", "backlog").get_attribute("aria-label")
    check(re.search(r"billing now [0-9,]+, at most [0-9,]+; orders now", label), "a chart has no value", label)


def check_without(profile, url):
    """Without JavaScript the page names the command that prints the same."""
    browser = open_browser(profile, javascript=False)
    try:
        browser.get(url)
        text = browser.find_element("tag name", "body").text
        check("ledgerlock status" in text, "without JavaScript nobody is led to status", text)
    finally:
        browser.quit()


def check_all(url):
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(f"{profile}/a")
        try:
            page = Page(browser, url)
            check_figures(page)
            check_killed_worker(page)
            check_spoken(page)
            check_ages(page)
            check_schemes(page)
            check_keyboard(page)
            check_errors(page)
            check_lost(page)
            check_full(page, url)
        finally:
            browser.quit()
        check_phone(f"{profile}/b", url)
        check_without(f"{profile}/c", url)
    print("page: a browser has read it, while a worker was killed")


CUT = """
return [...document.getElementById("worker-rows").querySelectorAll("td")].filter((td) => td.scrollWidth > td.clientWidth + 1 ||
  td.getBoundingClientRect().height < 14 || parseFloat(getComputedStyle(td).fontSize) < 11).map((td) => td.textContent);
"""


def check_crowd(url, workers):
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            page = Page(browser, url)
            seen = page.wait(f"the page never shows {workers} workers", lambda s: len(s["worker-rows"]) == workers == s["bars"])
            check(len({(row[0], row[1]) for row in seen["worker-rows"]}) == workers, "a worker stands there twice", seen)
            check(seen["wide"] <= 0, "the page scrolls sideways", seen["wide"])
            cut = browser.execute_script(CUT)
            check(not cut, "text of a worker cannot be read", cut)
        finally:
            browser.quit()
    print(f"page: a browser has read {workers} workers")


def check_cells(url):
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            page = Page(browser, url)
            seen = page.wait("the cells are not there", lambda s: [row[:2] for row in s["cells"]] == [["cell 1", "good"], ["cell 2", "good"]] and
                             s["verdict"] == "good" and len(s["stock"][0]) > 1)
            check({row[0].split(":")[0] for row in seen["stock"]} == {"cell 1", "cell 2"}, "a SKU does not name its cell", seen)
            check(all(" in cell " in row[1] for row in seen["worker-rows"]), "a worker does not name its cell", seen)
            browser.find_element("link text", "cell 2").send_keys(Keys.ENTER)
            one = page.wait("the chosen cell is not alone", lambda s: len(s["stock"][0]) > 1 and ":" not in s["stock"][0][0])
            check(one["newest"].split(", read")[0] != seen["newest"].split(", read")[0], "its figures are those of all", one)
            browser.find_element("link text", "all").send_keys(Keys.ENTER)
            page.wait("all do not come back", lambda s: s["stock"][0][0].startswith("cell "))
            check_errors(page)
        finally:
            browser.quit()
    print("page: a browser has read two cells")


def check_red(url):
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            Page(browser, url).wait("the page does not turn red", lambda s: s["verdict"] == "bad" and
                                    (s["twice"], s["oversold"], s["wrong"]) == ("1", "1", "1"))
        finally:
            browser.quit()
    print("page: a browser has seen a bad verdict")


SIDES = """
const text = (id) => (document.getElementById(id) || {textContent: ""}).textContent.trim();
const table = document.getElementById("faults");
return {ours: document.getElementById("verdict").dataset.state, ours_text: text("verdict-text"), plain: text("plain-verdict"), of: text("plain-of"),
        colour: document.getElementById("plain").dataset.state, live: text("live"),
        word: text("word"), plain_word: text("plain-word"), note: document.querySelector("footer").textContent, focus: document.activeElement.id,
        busy: [...document.querySelectorAll("button")].map((b) => b.getAttribute("aria-disabled")),
        faults: table ? [...table.tBodies[0].rows].map((r) => [...r.cells].map((c) => c.textContent)) : []};
"""


def check_chaos(url, path=None):
    """A button that is not confirmed does nothing; a confirmed one breaks the plain side, and not ours."""
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            page = Page(browser, url)
            page.seen = lambda: browser.execute_script(SIDES)
            page.wait("there are no buttons", lambda s: len(s["busy"]) == 5 and s["live"] == "live" and s["of"])
            button = browser.find_element("id", "freeze-worker")
            button.send_keys(Keys.ENTER)
            browser.switch_to.alert.dismiss()
            check(page.seen()["faults"][0][0].startswith("none"), "a fault began that nobody confirmed", page.seen())
            check(page.seen()["plain_word"].startswith("nothing has failed yet"), "the two sides have no names", page.seen())
            button.send_keys(Keys.ENTER)
            browser.switch_to.alert.accept()
            seen = page.wait("the buttons may be pressed meanwhile", lambda s: s["busy"] == ["true"] * 5)
            check(seen["focus"] == "freeze-worker", "the focus has left the button", seen)
            button.send_keys(Keys.ENTER)
            check(not expected_conditions.alert_is_present()(browser), "a fault is asked for while another one is under way", seen)
            seen = page.wait("the fault, the recovery or the double charge is not seen", lambda s: len(s["faults"][0]) == 4 and
                             "after the fault began" in s["faults"][0][3] and s["plain"] and not s["plain"].startswith("0 charged twice"))
            check((seen["ours"], seen["ours_text"], seen["colour"]) == ("good", "0 charged twice, 0 oversold, 0 totals wrong", "bad"), "the two sides look alike", seen)
            check((seen["word"], seen["plain_word"]) == ("no promise is broken", "it has failed"), "the two sides sound alike", seen)
            check(seen["faults"][0][1] == "Freeze a worker" and "4 days and 1 hour old" in seen["note"], "the words are not those of the button", seen)
            seen = page.wait("the buttons do not come back", lambda s: s["busy"] == ["false"] * 5)
            check(seen["focus"] == "freeze-worker", "the focus has left the button", seen)
            check_errors(page)
            if path:
                page.scheme("light")
                browser.save_screenshot(path)
        finally:
            browser.quit()
    print("page: a browser has broken the plain side, and not ours")


READY = """
const look = () => {
  const live = document.getElementById("live");
  if (live && live.textContent === "live" && document.getElementById("worker-rows").rows.length > 1) window.readyMs = performance.now();
  else requestAnimationFrame(look);
};
look();
"""


def print_ready(url, times):
    """From the begin of the navigation on, with an empty cache."""
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile)
        try:
            browser.execute_cdp_cmd("Page.addScriptToEvaluateOnNewDocument", {"source": READY})
            browser.execute_cdp_cmd("Network.setCacheDisabled", {"cacheDisabled": True})
            for _ in range(times):
                browser.get(url)
                deadline = time.monotonic() + WAIT_S
                while (ms := browser.execute_script("return window.readyMs")) is None:
                    if time.monotonic() > deadline:
                        sys.exit("page: it is never live")
                    time.sleep(0.05)
                print(f"{ms:.1f}")
                browser.get("about:blank")
        finally:
            browser.quit()


def picture(url, path):
    with tempfile.TemporaryDirectory() as profile:
        browser = open_browser(profile, size="1280,1280")
        try:
            page = Page(browser, url)
            page.scheme("light")
            page.wait("it is never full", lambda s: s["live"] == "live" and len(s["stock"]) > 1 and "no promise" in s["audit"])
            time.sleep(20)  # for the lines of the charts
            browser.save_screenshot(path)
        finally:
            browser.quit()


def main():
    if not os.path.exists(BROWSER) or not os.path.exists(DRIVER):
        print("SKIPPED: no Chromium is here: scripts/setup installs it")
        sys.exit(77)
    if len(sys.argv) == 2:
        check_all(sys.argv[1])
    elif sys.argv[2] == "--chaos":
        check_chaos(*sys.argv[1:2], *sys.argv[3:])
    elif sys.argv[2] == "--red":
        check_red(sys.argv[1])
    elif sys.argv[2] == "--cells":
        check_cells(sys.argv[1])
    elif sys.argv[2] == "--ready":
        print_ready(sys.argv[1], int(sys.argv[3]))
    elif sys.argv[2] == "--workers":
        check_crowd(sys.argv[1], int(sys.argv[3]))
    else:
        picture(sys.argv[1], sys.argv[2])


main()
