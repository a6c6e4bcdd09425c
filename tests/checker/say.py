"""say: how the checker speaks."""
import collections
import sys

FOREVER = sys.maxsize
SHOWN = 5
counts = collections.Counter()  # of each rule that is broken


def broken(rule, words):
    """The first few of each rule are printed, all are counted."""
    counts[rule] += 1
    if counts[rule] <= SHOWN:
        print(f"broken: {rule}: {words}")


def die(words):
    """The check cannot be made."""
    print(f"checker: {words}", file=sys.stderr)
    sys.exit(3)
