#!/bin/bash
# Files and folders call each other in one direction, and worker/README.md lists every function that a due row
# passes: from batch_run on, each function of the three folders of the pool that a listed one calls is listed itself, or
# is named there as one that such a row does not come to. A call through a job's pointer counts, too.
set -euo pipefail
cd "$(dirname "$0")/../.."
exec python3 - <<'PYTHON'
import glob, re, sys

POOL = ("worker/jobs", "worker/batch", "worker/pool")
MOST_FUNCTIONS, MOST_FILES = 35, 10
found, functions, shared, pointers = [], {}, {}, []
for path in sorted(p for folder in ("common/base", "common/pg", "worker", "worker/*", "ops", "ops/*") for p in glob.glob(folder + "/*.[ch]")):
    text = re.sub(r"/\*.*?\*/", "", open(path, encoding="ascii").read(), flags=re.S)
    text = re.sub(r'"(\\.|[^"\\])*"', '""', text)
    for start, name, body in re.findall(r"^([^\s#}{/][^;{}=]*?)\b(\w+)\([^;{}]*\)\n\{\n(.*?)^\}", text, re.S | re.M):
        functions[path, name] = body
        if not start.startswith("static") or path.endswith(".h"):
            shared[name] = path
    if path.startswith("worker/jobs/"):
        pointers += [(member, path, name) for member, name in re.findall(r"^    \.(\w+) = (\w+),", text, re.M)]
if len(functions) < 800:
    sys.exit("calls: the functions were not found")


def calls(path, name):
    """The functions that one calls, or passes on as a pointer: (file, name)."""
    for word in set(re.findall(r"\b([a-z]\w*)\b(?=\(|,|\))", functions[path, name])) - {name}:
        own = (path, word) in functions
        if own or word in shared and re.search(rf"\b{word}\(", functions[path, name]):
            yield (path if own else shared[word], word)
    for member, of, word in pointers:
        if (of, word) in functions and re.search(rf"\bjob->{member}\(", functions[path, name]):
            yield (of, word)


# ---- circles: a file and its header are one ----
used = {}
for path, name in functions:
    for to, word in calls(path, name):
        if to[:-2] != path[:-2] and (to, word) not in [(of, name) for _, of, name in pointers]:
            used.setdefault(path[:-2], {})[to[:-2]] = f"{name} calls {word}"


def reached(module, seen):
    for to in used.get(module, {}):
        if to not in seen:
            seen.add(to)
            reached(to, seen)
    return seen


for module in used:
    for to, why in used[module].items():
        if module in reached(to, {to}):
            found.append(f"a circle: {module} and {to} ({why})")

# ---- the way of a due row ----
page = re.sub(r"\s+", " ", open("worker/README.md", encoding="utf-8").read())
stated = re.search(r"On this way a due row passes (\d+) functions of `worker/` in (\d+) files: (.*?)\. The row does not come to: (.*?)\.", page)
if stated is None:
    sys.exit("calls: worker/README.md does not say which functions a due row passes")
listed, apart = (re.findall(r"`(\w+)`", stated[n]) for n in (3, 4))
seen, waiting, files = set(), [(shared["batch_run"], "batch_run")], set()
while waiting:
    path, name = waiting.pop()
    if name in apart or name in seen or not path.startswith(POOL):
        continue
    seen.add(name)
    files.add(path[:-2])
    waiting += calls(path, name)
found += [f"worker/README.md does not list {name}" for name in sorted(seen - set(listed))]
found += [f"worker/README.md lists {name}, which such a row does not come to" for name in sorted(set(listed) - seen)]
found += [f"worker/README.md: {name} is no function" for name in apart if not any(name == f for _, f in functions)]
if (int(stated[1]), int(stated[2])) != (len(seen), len(files)):
    found.append(f"a due row passes {len(seen)} functions in {len(files)} files, the page says {stated[1]} in {stated[2]}")
if len(seen) > MOST_FUNCTIONS or len(files) > MOST_FILES:
    found.append(f"a due row passes more than {MOST_FUNCTIONS} functions or {MOST_FILES} files: {' '.join(sorted(files))}")
print("".join(f"calls: {line}\n" for line in found), end="")
sys.exit(1 if found else 0)
PYTHON
