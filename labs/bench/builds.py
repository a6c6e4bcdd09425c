"""This checkout and another one, each built, with a database of its own on the same servers."""
import argparse
import json
import os
import subprocess

import statements
import tools

OTHER = "other"  # its database, and the prefix of its lock keys
TABLE = {"billing": "charges", "orders": "orders"}
EFFECT_AT = {"billing": "charged_at", "orders": "decided_at"}


def folder(text):
    if program(text) is None:
        raise argparse.ArgumentTypeError(f"{text} has neither build/labs/ledgerlock nor build/release/ledgerlock: build it first")
    return os.path.abspath(text)


def program(checkout):
    """Of a checkout; an older one had the programs of the labs beside the product's."""
    places = [f"{checkout}/build/{name}/ledgerlock" for name in ("labs", "release")]
    return next((path for path in places if os.access(path, os.X_OK)), None)


def server_cpu_s(before=None):
    """CPU of the servers, so far or since then."""
    now = {"postgres": tools.tree_cpu_s(int(os.environ["LL_PG_PID"])),
           "redis": tools.tree_cpu_s(int(os.environ["LL_REDIS_PID"]))}
    return now if before is None else {name: now[name] - before[name] for name in now}


class Build:
    """A built checkout with a database of its own."""

    def __init__(self, name, program, database):
        self.name, self.database = name, database
        self.words = [program + "-bench"] if os.access(program + "-bench", os.X_OK) else [program, "bench"]
        self.program = program
        self.flags = tools.run([program, "run", "--help"])  # an older build refuses what it does not have

    def settings(self):
        of_test = os.environ.get("LEDGERLOCK_LOCKS_PREFIX", "lock:")
        found = dict(tools.settings("ledgerlock_migrate", self.database),
                     LEDGERLOCK_LOCKS_PREFIX=of_test if self.database == tools.DATABASE else of_test + OTHER + ":")
        if "--catch-up-max" not in self.flags:
            del found["LEDGERLOCK_BILLING_CATCH_UP_MAX"]
        return found

    def make_database(self):
        tools.psql(f"DROP DATABASE IF EXISTS {self.database}", database="postgres")
        tools.psql(f"CREATE DATABASE {self.database} OWNER ledgerlock_owner", database="postgres")
        tools.psql("CREATE SCHEMA ledgerlock_bench AUTHORIZATION ledgerlock_owner", database=self.database)
        tools.run([self.program, "migrate"], self.settings())

    def bench(self, mode, *flags):
        return json.loads(tools.run([*self.words, mode, "--json", "--no-audit", *map(str, flags)], self.settings()))

    def psql(self, sql):
        return tools.psql(sql, database=self.database)

    def rate(self, *jobs):
        """Rows a second of the last run, as the tables tell, and nothing else was ever worked in this database since
        it was filled."""
        effects = " UNION ALL ".join(f"SELECT DISTINCT xmin AS xid, {EFFECT_AT[job]} AS at FROM ledgerlock.{TABLE[job]}"
                                     f" WHERE {EFFECT_AT[job]} IS NOT NULL" for job in jobs)
        seconds = float(self.psql(
            f"SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xid)) - min(at)) FROM ({effects}) AS t"))
        return sum(int(self.psql(statements.DONE[job])) for job in jobs) / seconds

    def run(self, *flags):
        """Works all that is due; a document with the CPU of the run, in all."""
        before = server_cpu_s()
        with subprocess.Popen([self.program, "run", "--once", "--log-level", "warn", *map(str, flags)],
                              env=self.settings(), stdout=subprocess.DEVNULL) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        if process.returncode != 0:
            tools.fail(f"{self.name}: run --once ended with {process.returncode}")
        return dict(server_cpu_s(before), workers=used.ru_utime + used.ru_stime)

    def shuffle(self):
        """An older build cannot load rows shuffled: the tables are written anew in no order."""
        for table, key in (("users", "user_id"), ("subscriptions", "subscription_id")):
            self.psql(f"CREATE INDEX shuffled ON ledgerlock.{table} (hashint8({key}));"
                       f"CLUSTER ledgerlock.{table} USING shuffled; DROP INDEX ledgerlock.shuffled")
        self.psql("VACUUM ANALYZE ledgerlock.users, ledgerlock.subscriptions")
        self.psql("CHECKPOINT")


def this():
    return Build("this build", tools.PROGRAM, tools.DATABASE)


def pair(other):
    """This build, and the one in the folder of another checkout."""
    both = [this(), Build("the other", program(other), OTHER)]
    both[1].make_database()
    return both
