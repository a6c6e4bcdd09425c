"""This checkout and another one, each built, with a database of its own on the same servers."""
import argparse
import json
import os

import limit
import tools

OTHER = "other"  # its database, and the prefix of its lock keys


def folder(text):
    if not os.access(f"{text}/build/release/ledgerlock", os.X_OK):
        raise argparse.ArgumentTypeError(f"{text} has no build/release/ledgerlock: build it first")
    return os.path.abspath(text)


class Build:
    """A built checkout with a database of its own."""

    def __init__(self, name, program, database):
        self.name, self.database = name, database
        self.words = [program + "-bench"] if os.access(program + "-bench", os.X_OK) else [program, "bench"]
        self.program = program
        self.has_catch_up_max = "--catch-up-max" in tools.run([program, "run", "--help"])  # an older build refuses it

    def settings(self):
        of_test = os.environ.get("LEDGERLOCK_LOCKS_PREFIX", "lock:")
        found = dict(tools.settings("ledgerlock_owner", self.database),
                     LEDGERLOCK_LOCKS_PREFIX=of_test if self.database == tools.DATABASE else of_test + OTHER + ":")
        if not self.has_catch_up_max:
            del found["LEDGERLOCK_BILLING_CATCH_UP_MAX"]
        return found

    def make_database(self):
        tools.psql(f"DROP DATABASE IF EXISTS {self.database}", database="postgres")
        tools.psql(f"CREATE DATABASE {self.database} OWNER ledgerlock_owner", database="postgres")
        tools.psql("CREATE SCHEMA ledgerlock_bench AUTHORIZATION ledgerlock_owner", database=self.database)
        tools.run([self.program, "migrate"], self.settings())

    def bench(self, mode, *flags):
        return json.loads(tools.run([*self.words, mode, "--json", "--no-audit", *map(str, flags)], self.settings()))

    def rate(self, mode):
        """Rows a second of the last run, as the tables tell, and nothing else was ever worked in this database since
        it was filled."""
        table, at = ("charges", "charged_at") if mode == "billing" else ("orders", "decided_at")
        seconds = float(tools.psql(
            f"SELECT extract(epoch FROM max(pg_xact_commit_timestamp(xid)) - min(at)) FROM"
            f" (SELECT DISTINCT xmin AS xid, {at} AS at FROM ledgerlock.{table} WHERE {at} IS NOT NULL) AS t",
            database=self.database))
        return int(tools.psql(limit.DONE["billing" if mode == "billing" else "orders"], database=self.database)) / seconds

    def shuffle(self):
        """An older build cannot load rows shuffled: the tables are written anew in no order."""
        for table, key in (("users", "user_id"), ("subscriptions", "subscription_id")):
            tools.psql(f"CREATE INDEX shuffled ON ledgerlock.{table} (hashint8({key}));"
                       f"CLUSTER ledgerlock.{table} USING shuffled; DROP INDEX ledgerlock.shuffled",
                       database=self.database)
        tools.psql("VACUUM ANALYZE ledgerlock.users, ledgerlock.subscriptions", database=self.database)
        tools.psql("CHECKPOINT", database=self.database)


def this():
    return Build("this build", tools.PROGRAM, tools.DATABASE)


def pair(other):
    """This build, and the one in the folder of another checkout."""
    both = [this(), Build("the other", f"{other}/build/release/ledgerlock", OTHER)]
    both[1].make_database()
    return both
