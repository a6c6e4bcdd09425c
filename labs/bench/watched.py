"""`scripts/bench pressure watched`: what it costs to be watched. The rate of a pool with a backlog, with and without its page, which a
browser listens to and a Prometheus reads every 5 s, and the share of the page in all CPU that was used; the size of the
page, and how long a browser takes until it shows figures; how long /readyz takes beside slow clients. The share has the whole audit in it that the page makes
now and then: its CPU is measured as the pool starts, and spread over the time until the next one."""
import os
import socket
import subprocess
import threading
import time
import urllib.request

import tools

SHARE_TARGET = 0.01
FIRST_TARGET_MS = 200
SIZE_TARGET = 60000
SCRAPE_S = 5
OPENED = 5  # times, in a browser
SLOW_CLIENTS = 200  # that have sent half a request, and as many that send a byte a second
ANSWERS = 50
ANSWER_TARGET_MS = 200  # the slowest of them
SETTLE_S = 3
AUDIT_EVERY_S = 600  # as it is shipped
AUDIT_REST = 200     # the next one begins so many times later as one took, if that is longer


def flags(parser):
    parser.add_argument("--rows", type=int, default=200000, help="subscriptions (default 200000)")
    parser.add_argument("--workers", type=int, default=3, help="default 3")
    parser.add_argument("--seconds", type=int, default=20, help="of each timed part (default 20)")
    parser.add_argument("--rounds", type=int, default=5, help="with the page and without it, in turn (default 5)")
    parser.add_argument("--only", choices=[name for name, _ in PARTS], help="leave out the others")


# ---- readers of the page -------------------------------------------------------------------------------------------

def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def get(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=30) as answer:
        return answer.read()


def await_page(port):
    """Until the page has its first figures."""
    for _ in range(3000):
        try:
            return get(port, "/state")
        except OSError:
            time.sleep(0.01)
    return tools.fail("the page does not answer")


class Watchers:
    """A browser and a Prometheus, while a block runs."""

    def __init__(self, port):
        self.port, self.events, self.scrapes, self.over = port, 0, 0, threading.Event()
        self.threads = [threading.Thread(target=run) for run in (self.listen, self.scrape)]

    def listen(self):
        with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/events", timeout=30) as stream:
            for line in stream:
                self.events += line.startswith(b"data:")
                if self.over.is_set():
                    return

    def scrape(self):
        while True:
            self.scrapes += b"ledgerlock_build_info" in get(self.port, "/metrics")
            if self.over.wait(SCRAPE_S):
                return

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        for thread in self.threads:
            thread.join()


# ---- the parts -----------------------------------------------------------------------------------------------------

def charges():
    return int(tools.psql("SELECT count(*) FROM ledgerlock.charges"))


def page_cpu_s(pool):
    """CPU so far of the process that serves the page, and of its session."""
    with open(f"/proc/{pool.process.pid}/task/{pool.process.pid}/children", encoding="ascii") as file:
        children = file.read().split()
    serving = [pid for pid in children if open(f"/proc/{pid}/comm", encoding="ascii").read() == "http\n"]
    sessions = tools.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'ledgerlock http'"
                          " AND backend_type = 'client backend' AND datname = current_database()").split()
    if len(serving) != 1 or len(sessions) != 1:
        tools.fail(f"{len(serving)} processes serve the page, with {len(sessions)} sessions")
    return sum(tools.tree_cpu_s(int(pid)) for pid in serving + sessions)


def audit_cores(pool):
    """Waits for the end of the audit that the page makes when it starts; its CPU, with that of its parallel workers, for
    each second until the next one (all its time at least: what a process used in its last moments is not seen)."""
    begun, used = tools.psql("SELECT now()"), {}
    while not (took := tools.psql(f"SELECT took_ms FROM ledgerlock.audits WHERE ended_at > '{begun}'")):
        pool.check()
        sessions = tools.psql("SELECT pid FROM pg_stat_activity WHERE application_name = 'ledgerlock http audit'"
                              " AND datname = current_database()").split()
        used |= {pid: max(tools.tree_cpu_s(int(pid)), used.get(pid, 0)) for pid in sessions}
    took_s = int(took) / 1000
    return max(sum(used.values()), took_s) / (took_s + max(AUDIT_EVERY_S, AUDIT_REST * took_s))


def measure_rate(a, port):
    """Charges a second, and microseconds of CPU of a charge; port: of the page, None without one."""
    flags = ["-w", a.workers, "--jobs", "billing"]
    flags += ["--http", f"127.0.0.1:{port}", "--http-audit-every-s", AUDIT_EVERY_S] if port else []
    loaded = charges()
    with tools.Pool(*flags) as pool:
        audit = audit_cores(pool) if port else 0
        while charges() == loaded:
            pool.check()
            time.sleep(0.1)
        if port:
            await_page(port)
        before, cpu, begun = charges(), pool.cpu_s(), time.monotonic()
        page = page_cpu_s(pool) if port else 0
        if port:
            with Watchers(port) as watchers:
                time.sleep(a.seconds)
            if watchers.events == 0 or watchers.scrapes == 0:
                tools.fail("nobody could read the page")
        else:
            time.sleep(a.seconds)
        took, used = time.monotonic() - begun, pool.cpu_s()
        page = page_cpu_s(pool) - page if port else 0
        made = charges() - before
    total = sum(used[name] - cpu[name] for name in cpu)
    return {"charges_per_s": made / took, "cpu_us_per_charge": total / made * 1e6, "page_share_of_cpu": page / total + audit * took / total,
            "audit_share_of_cpu": audit * took / total}


def part_rate(a):
    tools.progress("loading")
    tools.bench("billing", "--load-only", "--steady", "--rows", a.rows)
    found = {"without": [], "with": []}
    for number in range(a.rounds):
        for name, port in (("without", None), ("with", free_port())):
            tools.progress(f"round {number + 1} of {a.rounds}: {name} the page")
            found[name].append(measure_rate(a, port))
            tools.tell(f"round {number + 1} of {a.rounds}, {name} the page: {found[name][-1]['charges_per_s']:,.0f} charges a second")
    ratio = tools.ratios([r["charges_per_s"] for r in found["with"]], [r["charges_per_s"] for r in found["without"]])
    shown = {name: {key: tools.spread([r[key] for r in rounds]) for key in rounds[0]} for name, rounds in found.items()}
    share = shown["with"]["page_share_of_cpu"]["median"]
    return dict(shown, ratio=ratio, share_target=SHARE_TARGET, met=share < SHARE_TARGET)


def browser_ready_ms(port):
    """Milliseconds from the navigation to the first figures, of each time; or why no browser could be asked."""
    done = subprocess.run(["env", "-i", "PATH=/usr/bin:/bin", f"HOME={tools.FOLDER}", "/usr/bin/python3", "-B", f"{tools.ROOT}/tests/page/browse.py",
                           f"http://127.0.0.1:{port}/", "--ready", str(OPENED)], stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode == 77:
        return " ".join(done.stdout.split())
    if done.returncode != 0:
        tools.fail("the browser does not show the page")
    return [float(line) for line in done.stdout.split()]


def part_page(a):
    tools.progress("a browser opens the page")
    port = free_port()
    with tools.Pool("-w", a.workers, "--http", f"127.0.0.1:{port}", "--http-audit-every-s", 0):
        await_page(port)
        begun = time.monotonic()
        total = sum(len(get(port, path)) for path in ("/", "/style.css", "/common.js", "/page.js", "/icon.svg", "/state"))
        took, shown = 1000 * (time.monotonic() - begun), browser_ready_ms(port)
    ready = shown if isinstance(shown, str) else tools.median(shown)
    return {"bytes": total, "bytes_target": SIZE_TARGET, "all_files_ms": took, "page_ready_in_a_browser_ms": ready, "ms_target": FIRST_TARGET_MS,
            "met": total < SIZE_TARGET and took < FIRST_TARGET_MS and (isinstance(ready, str) or ready < FIRST_TARGET_MS)}


class SlowClients:
    """Clients that keep the page busy with nothing, while a block runs."""
    request = b"GET /readyz HTTP/1.1\r\nHost: localhost\r\nX-Slow: " + b"x" * 1000

    def __init__(self, port):
        self.half = [socket.create_connection(("127.0.0.1", port)) for _ in range(SLOW_CLIENTS)]
        self.slow = [socket.create_connection(("127.0.0.1", port)) for _ in range(SLOW_CLIENTS)]
        self.over, self.thread = threading.Event(), threading.Thread(target=self.send)

    def send(self):
        """A byte of each a second; the page may close a connection that it has waited for long enough."""
        for number in range(len(self.request)):
            for client in self.slow:
                try:
                    client.send(self.request[number:number + 1])
                except OSError:
                    pass
            if self.over.wait(1):
                return

    def __enter__(self):
        for client in self.half:
            client.sendall(self.request[:len(self.request) // 2])
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.over.set()
        self.thread.join()
        for client in self.half + self.slow:
            client.close()


def part_slow(a):
    tools.progress(f"beside {2 * SLOW_CLIENTS} slow clients")
    port, times = free_port(), []
    with tools.Pool("-w", a.workers, "--http", f"127.0.0.1:{port}", "--http-audit-every-s", 0):
        await_page(port)
        with SlowClients(port):
            time.sleep(1)
            for _ in range(ANSWERS):
                begun = time.monotonic()
                get(port, "/readyz")
                times.append(1000 * (time.monotonic() - begun))
                time.sleep(0.02)
    return {"slow_clients": 2 * SLOW_CLIENTS, "answers": len(times), "p50_ms": tools.median(times), "most_ms": max(times),
            "most_target_ms": ANSWER_TARGET_MS, "met": max(times) < ANSWER_TARGET_MS}


PARTS = (("rate", part_rate), ("page", part_page), ("slow", part_slow))


def main(a):
    tools.measure("watched", a, [part for part in PARTS if a.only in (None, part[0])], a.json)
