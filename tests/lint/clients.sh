#!/bin/sh
# docs/clients.md has every function of clients, with the arguments, the answer and the roles that sql/functions gives it.
set -eu
cd "$(dirname "$0")/../.."
exec python3 -B - <<'PYTHON'
import glob
import re
import sys

bad = []
PEOPLE = {"shop", "cashier", "warehouse", "support", "reader"}


def plain(text):
    return " ".join(text.split()).replace("( ", "(")


signatures, roles = {}, {}
for path in glob.glob("sql/functions/*.sql"):
    text = open(path).read()
    grant = re.search(r"^GRANT EXECUTE ON FUNCTION (\w+) TO ([^;]+);", text, re.M)
    if grant:
        name, granted = grant[1], set(re.findall(r"ledgerlock_(\w+)", grant[2]))
        roles[name] = granted & PEOPLE
        signatures[name] = plain(re.search(r"^CREATE OR REPLACE FUNCTION (.*?)\s+LANGUAGE\b", text, re.M | re.S)[1])
        if not granted & {"shop", "cashier", "warehouse"} and "worker" in granted and name not in {"terms_of", "explain", "status", "report", "doctor"}:
            del roles[name]  # a part of the audit, which readers may call as well

page = open("docs/clients.md").read()
told = {}  # name: roles
for names, who in re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| ((?:`ledgerlock_\w+`(?:, )?)+) \|", page, re.M):
    for name in re.findall(r"`(\w+)`", names):
        told[name] = set(re.findall(r"ledgerlock_(\w+)", who))
written = {}  # name: signature
for text in re.findall(r"^    \w+\(p_[^\n]*\n(?:        [^\n]*\n)*", page, re.M):
    written[plain(text).split("(")[0]] = plain(text)

for name in sorted(roles.keys() | told.keys() | written.keys()):
    if told.get(name) != roles.get(name):
        bad.append(f"{name}: the table says {told.get(name)}, its GRANT {roles.get(name)}")
    if written.get(name) != signatures.get(name) and (name in roles or name in written):
        bad.append(f"{name}: the page has {written.get(name)}\n  and its file {signatures.get(name)}")
if len(roles) < 30:
    bad.append(f"only {len(roles)} functions were found")
for line in bad:
    print("clients:", line)
sys.exit(bool(bad))
PYTHON
