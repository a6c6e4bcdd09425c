"""The limit: pgbench drives the statements that the pool runs, over batches that are prepared, so that every call
has work. Nothing is copied: the texts are those of sql/queries, each $n replaced by what its head says it is."""
import glob
import re

from tools import ROOT, fail, pgbench, psql, psql_file

# Every call has the same token: no row is ever fenced, and nothing is minted.
TOKEN = "(1099511627777::bigint)"
BATCH = "(SELECT {} FROM ledgerlock_bench.batches WHERE batch_id = :batch_id)"
# The words of a query's head for a parameter, and its value here. The first that fits.
PARAMETERS = (
    ("token", TOKEN),
    ("worker", "'pgbench'"),
    ("now", "(NULL::timestamptz)"),
    ("subscription ids", BATCH.format("items")),
    ("places", BATCH.format("places")),
    ("payers", BATCH.format("payers")),
    ("the most periods", "1000000::bigint"),
    ("order ids", BATCH.format("items")),
    ("user ids", BATCH.format("users")),
    ("sku ids", BATCH.format("skus")),
    ("the shard", ":shard"),
    ("limit", ":limit"),
    ("a time", "('-infinity'::timestamptz)"),
    ("an id", "0"),
)


def value_of(stem, number, described):
    for word, value in PARAMETERS:
        if described.lower().startswith(word):
            return value
    return fail(f"{stem}.sql: nothing is known to stand for ${number}: \"{described}\"")


def statement(stem):
    """One query of the program, as pgbench runs it."""
    with open(glob.glob(f"{ROOT}/sql/queries/*/{stem}.sql")[0], encoding="ascii") as file:
        lines = file.read().splitlines()
    head = " ".join(line.lstrip("- ") for line in lines if line.startswith("--"))
    text = "\n".join(line for line in lines if not line.startswith("--"))
    found = dict(re.findall(r"\$(\d+) [a-z0-9\[\]]+: (.*?)(?=\. |\.$|$)", head))
    for number in sorted({int(n) for n in re.findall(r"\$(\d+)", text)}, reverse=True):
        if str(number) not in found:
            fail(f"{stem}.sql: its head does not say what ${number} is")
        value = value_of(stem, number, found[str(number)])
        text = text.replace(f"${number}", value)
    return text.rstrip().rstrip(";") + ";\n"


def script(statements):
    # A client's batches follow each other; no two clients have one in common.
    pick = "\\set k :k + 1\n\\set batch_id :client_id * :calls + :k\n"
    return pick + "BEGIN;\n" + "".join(statements) + "COMMIT;\n"


def billing_script():
    return script([statement("pool_claim_users"), statement("billing_apply_charges")])


def orders_script():
    """Here batches share SKUs. The pool steps back from a row that is taken; one that has nothing else to do waits
    for it, in the order of the keys, so that none waits for the other: with claims that lack SKIP LOCKED alone."""
    claims = []
    for name in ("claim_users", "claim_stock"):
        with open(f"{ROOT}/sql/functions/{name}.sql", encoding="ascii") as file:
            waiting = file.read().replace(f"FUNCTION {name}", f"FUNCTION ledgerlock_bench.{name}")
        psql(waiting.replace(" SKIP LOCKED", ""), "ledgerlock_migrate")
        claims.append(statement(f"pool_{name}").replace(f"{name}(", f"ledgerlock_bench.{name}("))
    return script(claims + [statement("orders_apply_orders")])


DONE = {
    "billing": "SELECT count(*) FROM ledgerlock.charges WHERE state = 'captured'",
    "orders": "SELECT count(*) FROM ledgerlock.orders WHERE state IN ('fulfilled', 'rejected')",
}


def measure(mode, batch, clients):
    """Rows a second over what `bench --load-only` has left; every call must have done its batch."""
    batches = int(psql_file(f"{ROOT}/labs/bench/prepare_{mode}.sql", batch=batch))
    calls = batches // clients
    if calls == 0:
        fail(f"{batches} batches are too few for {clients} connections; take more rows")
    text = billing_script() if mode == "billing" else orders_script()
    made, seconds = pgbench(text, clients, "-t", calls, "-D", f"calls={calls}", "-D", "k=0")
    done = int(psql(DONE[mode]))
    # An order may be left for the next batch, where stock or wallet just end; no period is.
    least = made * batch * (1 if mode == "billing" else 0.9)
    if not least <= done <= made * batch:
        fail(f"the limit of {mode}: {made} calls of {batch} rows left {done} rows")
    return done / seconds
