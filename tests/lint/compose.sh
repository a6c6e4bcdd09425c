#!/bin/bash
# Each service of docker-compose.yml is confined: no root, no capability, no writable root, limits, a network without a way out. A
# pool with a page serves orders by four workers at once; `once` has no page, no button and no shop; the last words are an address. The image of
# the program is built once, with every folder that its build reads, and a pool waits for the seed.
set -euo pipefail
cd "$(dirname "$0")/../.."
python3 -c 'import yaml' 2>/dev/null || { echo "skipped: python3-yaml is not installed" && exit 77; }
python3 - "${1:-docker-compose.yml}" <<'PYTHON'
import re
import sys
import yaml

with open(sys.argv[1], encoding="utf-8") as file:
    compose = yaml.safe_load(file)
bad = []


def must(name, holds, sentence):
    if not holds:
        bad.append(f"{name}: {sentence}")


def is_loopback(port):
    return isinstance(port, str) and re.sub(r"^\$\{\w+:-", "", port).startswith("127.0.0.1:")


def command_of(service):
    return [str(word) for word in service.get("command") or []]


networks = compose.get("networks") or {}
must("networks", (networks.get("default") or {}).get("internal") is True, "default must be internal")
for name, service in compose["services"].items():
    user = str(service.get("user", "root")).split(":")[0]
    must(name, user not in ("root", "0"), "user must be another one than root")
    must(name, service.get("read_only") is True, "read_only must be true")
    must(name, service.get("cap_drop") == ["ALL"], "cap_drop must be [ALL]")
    must(name, "cap_add" not in service, "cap_add gives rights back")
    must(name, not service.get("privileged"), "privileged gives all rights")
    must(name, "no-new-privileges:true" in service.get("security_opt", []), "security_opt must have no-new-privileges:true")
    limits = (service.get("logging") or {}).get("options") or {}
    must(name, "max-size" in limits and "max-file" in limits, "its log has no limit")
    must(name, "mem_limit" in service, "mem_limit is missing")
    must(name, 0 < service.get("pids_limit", 0), "pids_limit is missing")
    must(name, set(service.get("networks", ["default"])) <= ({"default", "page"} if service.get("ports") else {"default"}),
         "a network that is not internal is for a published page alone")
    must(name, "network_mode" not in service, "network_mode leaves the internal network")
    must(name, "ipc" not in service and service.get("pid", "service:").startswith("service:"), "pid or ipc of the host is shared")
    is_shop = service.get("entrypoint") == ["ledgerlock-shop"]
    must(name, "pid" not in service or is_shop, "who may signal the workers is the shop alone")
    must(name, all(map(is_loopback, service.get("ports", []))), "ports must be published on 127.0.0.1 alone")
    for volume in service.get("volumes", []):
        source = volume if isinstance(volume, str) else str(volume.get("source", ""))
        must(name, "docker.sock" not in source, "the socket of the engine gives the rights of root")
    for key in service.get("environment") or {}:
        must(name, "PASSWORD" not in key or key.endswith("_FILE"), f"{key} is a secret in the environment")
    command = command_of(service)
    profiles = service.get("profiles") or []
    if service.get("ports") and not is_shop:
        workers = command[command.index("-w") + 1] if "-w" in command else "0"
        must(name, int(workers) >= 4, "fewer than four workers serve orders")
    if command[:1] == ["run"]:
        must(name, "any" in command, "only one worker would serve orders")
    if service.get("ports") or is_shop:
        must(name, profiles and "once" not in profiles, "--profile once must have neither page nor shop")
words = [line for line in str(compose["services"]["audit"]["command"]).split("\\n") if "echo" in line]
must("audit", words and "http://127.0.0.1:9484" in words[-1] and "press a button" in words[-1], "its last words are no address")
once = {name for name, service in compose["services"].items() if "once" in (service.get("profiles") or [])}
must("services", once == {"worker-once", "audit-once"}, f"--profile once starts others: {once}")
builders = [name for name, service in compose["services"].items() if "build" in service]
must("services", builders == ["migrate"], f"Compose 1 builds an image once for each service that names it: {builders}")
for name, service in compose["services"].items():
    waits = set(service.get("depends_on") or {})
    must(name, "ledgerlock" not in str(service.get("image")) or name in builders or waits & {"migrate", "seed"},
         "its image may not be built yet: it waits neither for migrate nor for seed")
    must(name, command_of(service)[:1] != ["run"] or "seed" in waits, "a pool that does not wait for the seed meets it month by month")
must("services", len(compose["services"]) > 0, "there is none")
taken = open(".dockerignore").read().split()
made = open("labs/CMakeLists.txt").read()
for folder in re.findall(r"add_subdirectory\((\w+)\)", made) + re.findall(r"(\w+)/\*\.c", made):
    must("the image", f"!labs/{folder}" in taken or folder == "tests", f"it is built from labs/{folder}, which .dockerignore leaves out")
for line in bad:
    print("compose:", line)
sys.exit(bool(bad))
PYTHON
