"""`scripts/bench pressure`: orders at a fixed load while something disturbs the pool. Two pools run, one serves the
orders and one stands by; billing is idle. Each case begins over freshly filled tables and is measured before, during and
after the disturbance. The wait of an order is the time between two commits, that of its placing and that of its decision, as
PostgreSQL tells them. The time that PostgreSQL is down does not count, nor that for which a killed pool still holds the key
of a user or a SKU of the order."""
import concurrent.futures
import contextlib
import os
import signal
import subprocess
import time

import beside
import buyers
import tools
import wire

SHARE_TARGET = 0.99  # of the orders placed meanwhile, decided within PROMPT_S
PROMPT_S = 1
CAUGHT_UP_TARGET_S = 25
CALIBRATE_S = 6
EVERY_S = {"sessions": 0.5, "kills": 5}
IDLE_SESSIONS = 300
READ = ("orders", "order_lines", "charges")
HELD = """local held = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do held[#held + 1] = key .. ' ' .. redis.call('PTTL', key) end
return held"""


def flags(parser):
    parser.add_argument("--rate", type=float, help="orders a second (default: a third of what is placed and decided when the "
                        "buyers place as many as they can, which is measured first)")
    parser.add_argument("--seconds", type=float, default=20, help="of a disturbance; before and after it half as long "
                        "(default 20)")
    parser.add_argument("--users", type=int, default=50000, help="default 50000")
    parser.add_argument("--pool-flags", default="", help="flags of `ledgerlock run`, such as \"--lease-ms 2000\"")
    parser.add_argument("--only", metavar="TEXT", default="", help="only the cases whose name holds this")


# ---- what is disturbed ---------------------------------------------------------------------------------------------

class Pool(tools.Pool):
    """A pool that may be killed."""
    is_killed = False

    def __exit__(self, *error):
        if not self.is_killed:
            super().__exit__(*error)

    def processes(self):
        with open(f"/proc/{self.process.pid}/task/{self.process.pid}/children", encoding="ascii") as file:
            return [self.process.pid, *map(int, file.read().split())]

    def kill(self):
        """Supervisor and workers, none of which may do anything more: a stopped supervisor starts no successor."""
        self.is_killed = True
        os.kill(self.process.pid, signal.SIGSTOP)
        for pid in reversed(self.processes()):
            os.kill(pid, signal.SIGKILL)
        self.process.wait()


class World:
    """Two pools, the buyers, and what became of both, while a block runs."""

    def __init__(self, a, mark, rate):
        self.a, self.numbers, self.down, self.held = a, iter(range(1000)), [], []
        tools.bench("billing", "--rows", a.users, "--no-audit")
        buyers.load_stock()
        tools.psql("VACUUM ANALYZE")
        self.sku_ids = dict(line.split("|") for line in tools.psql("SELECT sku, sku_id FROM stock").splitlines())
        self.buyers = buyers.Buyers(mark, a.users, rate)
        self.pools, self.to_end = [], contextlib.ExitStack()

    def __enter__(self):
        with contextlib.ExitStack() as self.to_end:
            self.start_pool()
            self.start_pool()
            self.serving()
            self.to_end.enter_context(self.buyers)
            self.to_end = self.to_end.pop_all()  # all is well: they go on until the block ends
        return self

    def __exit__(self, *_):
        self.to_end.close()

    def start_pool(self):
        pool = Pool(*self.a.pool_flags.split(), log=f"pool-{next(self.numbers)}.log")
        self.pools.append(self.to_end.enter_context(pool))

    def serving(self):
        """The pool that serves the orders: its session holds the advisory lock of the job."""
        for _ in range(1000):
            found = tools.psql("SELECT w.pid FROM pg_locks AS l JOIN pg_stat_activity AS s USING (pid) JOIN workers AS w ON"
                               " s.application_name LIKE format('ledgerlock worker %s.%s.%%', w.pool, w.slot)"
                               " WHERE l.locktype = 'advisory' AND l.granted AND w.job = 'orders'"
                               " AND s.datname = current_database()")
            for pool in self.pools:
                pool.check()
                if found and int(found.split()[0]) in pool.processes():
                    return pool
            time.sleep(0.02)
        return tools.fail("no pool serves the orders")

    def kill_pool(self):
        pool = self.serving()
        self.pools.remove(pool)
        pool.kill()
        killed, prefix = time.time(), beside.PREFIX
        for line in beside.redis("EVAL", HELD, "0", prefix + "*").splitlines():
            key, ms = line.split()
            self.held.append((key.removeprefix(prefix), killed, killed + int(ms) / 1000))


class Server:
    """PostgreSQL, restarted as `pg_ctl restart` does, but as a child of this program, which ends it."""
    ours = None

    @classmethod
    def restart(cls, how):
        data = tools.psql("SHOW data_directory")
        stopped, pid = time.time(), int(os.environ["LL_PG_PID"])
        os.kill(pid, how)
        while cls.is_alive(pid):
            time.sleep(0.002)
        owner = os.stat(data)
        words = ["setpriv", "--reuid", str(owner.st_uid), "--regid", str(owner.st_gid), "--clear-groups"]
        words = (words if os.getuid() == 0 else ["setpriv"]) + ["--pdeathsig", "INT", "--", f"{tools.PG_BIN}/postgres"]
        with open(os.path.join(tools.FOLDER, "pg.log"), "ab") as log:
            cls.ours = subprocess.Popen([*words, "-D", data], stdout=log, stderr=log, cwd=data)
        os.environ["LL_PG_PID"] = str(cls.ours.pid)
        while True:
            try:
                wire.Session().close()
                return stopped, time.time()
            except (OSError, wire.Refused):
                if cls.ours.poll() is not None:
                    tools.fail("PostgreSQL does not start again")
                time.sleep(0.01)

    @classmethod
    def is_alive(cls, pid):
        if cls.ours is not None and cls.ours.pid == pid:
            return cls.ours.poll() is None
        try:
            with open(f"/proc/{pid}/stat", encoding="ascii", errors="replace") as file:
                return file.read().rpartition(")")[2].split()[0] != "Z"
        except OSError:
            return False

    @classmethod
    def end(cls):
        if cls.ours is not None and cls.ours.poll() is None:
            cls.ours.send_signal(signal.SIGINT)
            cls.ours.wait()


# ---- the disturbances: each lasts until a time ---------------------------------------------------------------------

def rest(until):
    time.sleep(max(0, until - time.time()))


def nothing(_, until):
    rest(until)


def restart(how):
    def disturb(world, until):
        world.down.append(Server.restart(how))
        rest(until)
    return disturb


def terminate(_, until):
    """All sessions of the database but this one, those of the buyers included."""
    session = wire.Session()
    while time.time() < until:
        session.ask("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database()"
                    " AND backend_type = 'client backend' AND pid <> pg_backend_pid()")
        time.sleep(EVERY_S["sessions"])
    session.close()


def sit(_, until):
    sessions = [wire.Session() for _ in range(IDLE_SESSIONS)]
    rest(until)
    for session in sessions:
        session.close()


def kill_one(world, until):
    world.kill_pool()
    rest(until)
    world.start_pool()


def kill_often(world, until):
    while (now := time.time()) < until:
        world.kill_pool()
        world.start_pool()
        rest(min(until, now + EVERY_S["kills"]))


def hold_snapshot(_, until):
    with beside.OldSnapshot():
        rest(until)


def read_tables(_, until):
    def read(table):
        session = wire.Session()
        while time.time() < until:
            session.ask(f"SELECT sum(length(t::text)) FROM ledgerlock.{table} AS t")
        session.close()
    with concurrent.futures.ThreadPoolExecutor(len(READ)) as readers:
        list(readers.map(read, READ))


def load(factor):
    def disturb(world, until):
        usual = world.buyers.rate
        world.buyers.rate = usual * factor
        rest(until)
        world.buyers.rate = usual
    return disturb


CASES = (
    ("undisturbed", nothing),
    ("PostgreSQL is restarted, fast", restart(signal.SIGINT)),
    ("PostgreSQL is restarted, immediate", restart(signal.SIGQUIT)),
    ("all sessions are terminated twice a second", terminate),
    (f"{IDLE_SESSIONS} idle sessions", sit),
    ("the serving pool is killed", kill_one),
    ("a serving pool is killed every 5 s", kill_often),
    ("a transaction holds the oldest snapshot", hold_snapshot),
    ("four readers of whole tables", read_tables),
    ("1.5 times the load", load(1.5)),
    ("3 times the load", load(3)),
)


# ---- what became of the orders -------------------------------------------------------------------------------------

def stored():
    """By key: number, whether it is decided, the commits of its placing and of its decision."""
    rows = wire.Session().ask("SELECT o.idempotency_key, o.order_id, state IN ('fulfilled', 'rejected'),"
                              " extract(epoch FROM pg_xact_commit_timestamp(l.xid)),"
                              " extract(epoch FROM pg_xact_commit_timestamp(o.xmin))"
                              " FROM ledgerlock.orders AS o JOIN (SELECT DISTINCT ON (order_id) order_id, xmin AS xid"
                              " FROM ledgerlock.order_lines ORDER BY order_id) AS l USING (order_id)")
    return {key: (int(number), decided == "t", float(placed), float(at)) for key, number, decided, placed, at in rows}


def excused_s(world, order, placed, decided):
    """How much of its wait does not count."""
    keys = {f"user:{order.user}", *(f"sku:{world.sku_ids[f'S{sku}']}" for sku in order.skus)}
    spans = world.down + [(since, until) for key, since, until in world.held if key in keys]
    excused, at = 0, placed
    for since, until in sorted(spans):
        since, until = max(at, since), min(decided, until)
        if since < until:
            excused, at = excused + until - since, until
    return excused


def find(world, begun, ended):
    """The figures of a case whose disturbance lasted from one time to the other."""
    rows, waits, late, excused, caught_up, lost, half = stored(), [], [], [0], 0, 0, world.a.seconds / 2
    for order in world.buyers.orders:
        number, is_decided, placed, decided = rows.get(order.key, (None, False, 0, 0))
        if order.order_id is not None and (number != order.order_id or not is_decided):
            lost += 1
        if number is None:
            continue
        at = decided if is_decided else time.time()
        if begun <= placed < ended:
            excused.append(excused_s(world, order, placed, at))
            waits.append(at - placed - excused[-1])
            late.append(placed - order.due)
        if order.due < ended:
            caught_up = max(caught_up, at - ended)
    decisions = [at for _, is_decided, _, at in rows.values() if is_decided]

    def rate(since, until):
        return sum(since <= at < until for at in decisions) / (until - since)
    return {"before_per_s": rate(begun - half, begun), "during_per_s": rate(begun, ended),
            "after_per_s": rate(ended, ended + half), "p50_ms": 1000 * tools.median(waits),
            "p99_ms": 1000 * tools.quantile(waits, 0.99),
            "prompt_share": sum(wait <= PROMPT_S for wait in waits) / len(waits),
            "longest_ms": 1000 * max(waits), "placed_late_p99_ms": 1000 * tools.quantile(late, 0.99),
            "acknowledged": sum(order.order_id is not None for order in world.buyers.orders), "stored": len(rows),
            "decided": len(decisions), "lost": lost, "caught_up_s": caught_up,
            "excused_share": sum(wait > 0 for wait in excused) / len(waits), "longest_excused_ms": 1000 * max(excused),
            "down_s": sum(until - since for since, until in world.down)}


def incidents():
    """Incidents of the pools by kind, and how many batches a timeout or a collision rolled back."""
    found = tools.psql("SELECT kind || ' ' || count(*) FROM lock_incidents GROUP BY kind ORDER BY kind").splitlines()
    rolled_back = int(tools.psql("SELECT coalesce(sum((counters ->> 'conflicts')::bigint), 0) FROM workers"))
    return dict(batches_rolled_back=rolled_back, **{kind: int(n) for kind, n in map(str.split, found)})


def await_decided(until):
    while time.time() < until and tools.psql("SELECT EXISTS (SELECT FROM orders WHERE state = 'pending')") == "t":
        time.sleep(0.1)


def audit_holds():
    done = subprocess.run([tools.PROGRAM, "audit"], env=tools.settings("ledgerlock_worker"), capture_output=True, text=True,
                          check=False)
    return done.returncode == 0


def measure(a, number, name, disturb, rate):
    tools.progress(f"case {number + 1}, {name}: filling the tables")
    with World(a, f"case-{number}", rate) as world:
        tools.progress(f"case {number + 1}, {name}")
        begun = time.time() + 1 + a.seconds / 2  # of the first second the pools need a part
        rest(begun)
        ended = begun + a.seconds
        disturb(world, ended)
        ended = max(ended, time.time())
        rest(ended + a.seconds / 2)
        world.buyers.stop(CAUGHT_UP_TARGET_S)
        await_decided(ended + a.seconds / 2 + CAUGHT_UP_TARGET_S)
        found = find(world, begun, ended)
        found.update(audit_holds=audit_holds(), incidents=incidents())
    if world.buyers.trouble and disturb in (nothing, sit, hold_snapshot):
        tools.fail(f"{name}: the buyers met {world.buyers.trouble}")
    return dict(found, met=found["prompt_share"] >= SHARE_TARGET and found["caught_up_s"] <= CAUGHT_UP_TARGET_S
                and found["lost"] == 0 and found["audit_holds"])


def capacity(a):
    """Orders a second that are placed and decided when the buyers place as many as they can."""
    tools.progress("as many orders as can be placed")
    with World(a, "calibrate", None):
        time.sleep(CALIBRATE_S)
        before = decided_now()
        time.sleep(CALIBRATE_S)
        return (decided_now() - before) / CALIBRATE_S


def decided_now():
    return int(tools.psql("SELECT count(*) FROM orders WHERE state IN ('fulfilled', 'rejected')"))


def tell_head(rate):
    tools.tell(f"{rate:,.0f} orders a second are placed\n")
    tools.tell(f"{'':<44}{'decided a second':^27}{'from placed to decided':^24}{'acknow-':>9}{'':>6}{'caught':>9}")
    tools.tell(f"{'':<44}{'before':>9}{'during':>9}{'after':>9}{'p99 ms':>12}{'in 1 s':>12}{'ledged':>9}{'lost':>6}{'up, s':>9}")


def tell_case(name, v):
    tools.tell(f"{name:<44}{v['before_per_s']:>9,.0f}{v['during_per_s']:>9,.0f}{v['after_per_s']:>9,.0f}{v['p99_ms']:>12,.0f}"
               f"{v['prompt_share']:>12.2%}{v['acknowledged']:>9,}{v['lost']:>6}{v['caught_up_s']:>9.1f}"
               f"  {'met' if v['met'] else 'MISSED'}{'' if v['audit_holds'] else ', the audit does not hold'}")


def main(a):
    cases = [case for case in CASES if a.only in case[0]]
    if not cases:
        tools.fail(f"no case has \"{a.only}\" in its name")
    try:
        rate, found = a.rate or capacity(a) / 3, {}
        tell_head(rate)
        for number, (name, disturb) in enumerate(cases):
            found[name] = measure(a, number, name, disturb, rate)
            tell_case(name, found[name])
        about = tools.machine(tools.bench("billing", "--load-only", "--rows", 100))
    finally:
        Server.end()
    tools.write(a.json, dict(about, kind="pressure", arguments=vars(a), filesystem=os.environ["BENCH_FILESYSTEM"], rate=rate,
                             cases=found))
