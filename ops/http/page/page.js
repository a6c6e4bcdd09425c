"use strict";
// Shows the document of /events. Text from the server only ever becomes text nodes.
const SECONDS = 120;
const SILENT_MS = 10000; // a document comes each second
const CELL_ROWS = 40; // of a list that shows several cells
const history = [];
let latest = null, receivedAt = Date.now(), isLost = false;

function svg(name, attributes) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) node.setAttribute(key, attributes[key]);
  return node;
}

function bar(part, whole, label) {
  const share = whole > 0 ? Math.max(0, Math.min(1, part / whole)) : 0;
  const node = svg("svg", { class: "bar", viewBox: "0 0 100 10", preserveAspectRatio: "none", role: "img", "aria-label": label });
  node.append(svg("rect", { width: share * 100, height: 10 }));
  return node;
}

// A screen reader is told the newest values.
function chart(id, name, lines) {
  const node = $(id), most = Math.max(1, ...lines.flatMap((l) => l.values));
  const box = node.getBoundingClientRect(), w = Math.max(100, box.width), h = Math.max(40, box.height);
  const made = lines.map((l) => svg("path", {
    class: l.kind,
    d: l.values.map((v, i) => (i ? "L" : "M") + (w * (SECONDS - l.values.length + i + 1) / SECONDS).toFixed(1) + " " +
      (h - 2 - (h - 18) * v / most).toFixed(1)).join(""),
  }));
  const label = svg("text", { x: 0, y: 11 });
  label.textContent = number(Math.round(most));
  node.setAttribute("viewBox", "0 0 " + w + " " + h);
  node.setAttribute("aria-label", name + ": " + lines.map((l) => l.name + " now " + number(Math.round(l.values[l.values.length - 1] || 0)) +
    ", at most " + number(Math.round(Math.max(0, ...l.values)))).join("; "));
  node.replaceChildren(label, ...made);
}

const DONE = { billing: ["charged", "declined", "cancelled"], orders: ["fulfilled", "rejected"], payments: ["captured", "card_declined", "refunded"] };
const done = (doc, job) => Object.entries(doc.counters[job] || {})
  .reduce((sum, [name, n]) => sum + ((DONE[job] || []).includes(name) ? n : 0), 0);

// All cells as if they were one database, or the one that the address names; without cells the only database.
function together(doc) {
  const chosen = doc.databases.filter((d) => "#" + d.cell === location.hash), shown = chosen.length > 0 ? chosen : doc.databases;
  const read = shown.filter((d) => d.tables), named = (d, text) => shown.length > 1 ? "cell " + d.cell + ": " + text : text;
  const sum = (rows, key) => rows.reduce((n, row) => n + row[key], 0), most = (rows, key) => Math.max(...rows.map((row) => row[key]));
  const list = (key, name) => read.flatMap((d) => d.tables[key].map((row) => Object.assign({}, row, { [name]: named(d, row[name]) }))).slice(0, CELL_ROWS);
  const trouble = (key) => shown.filter((d) => d[key]).map((d) => named(d, d[key])).join("; ");
  const audits = shown.filter((d) => d.audit), newest = read.map((d) => d.tables.newest[0]);
  const job = (name) => {
    const of = read.map((d) => d.tables.jobs[name]), all = {};
    for (const key in of[0]) all[key] = key.endsWith("_ms") ? most(of, key) : sum(of, key);
    return [name, all];
  };
  return {
    verdict: ["bad", "unknown", "good"].find((v) => shown.some((d) => d.verdict === v)), shown,
    tables_age_ms: read.length > 0 ? most(read, "tables_age_ms") : 0, stale_ms: Math.min(...shown.map((d) => d.stale_ms)),
    trouble: trouble("trouble"), audit_trouble: trouble("audit_trouble"),
    audit: audits.length < shown.length ? null : { broken: audits.flatMap((d) => d.audit.broken.map((name) => named(d, name))),
      invariants: most(audits.map((d) => d.audit), "invariants"), age_ms: most(audits.map((d) => d.audit), "age_ms") },
    tables: read.length === 0 ? null : {
      jobs: Object.fromEntries(Object.keys(read[0].tables.jobs).map(job)),
      newest: Object.fromEntries(Object.keys(newest[0]).map((key) => [key, newest.some((n) => n[key] < 0) ? -1 : sum(newest, key)])),
      paused: list("paused", "since"), stock: list("stock", "sku"), waits: list("waits", "application_name"),
      incidents: list("incidents", "kind"), parked: list("parked", "row") },
  };
}

function remember(doc, view) {
  const last = history[history.length - 1];
  const entry = { at: doc.at_ms, done: {}, rate: {}, due: {} };
  for (const job in doc.counters) {
    entry.done[job] = done(doc, job);
    const seconds = last ? (entry.at - last.at) / 1000 : 0;
    entry.rate[job] = seconds > 0 && last.done[job] !== undefined ? Math.max(0, (entry.done[job] - last.done[job]) / seconds) : 0;
    entry.due[job] = view.tables ? view.tables.jobs[job].due : 0;
  }
  history.push(entry);
  if (history.length > SECONDS) history.shift();
  return entry;
}

// Also while no document comes: what was good and is no longer read is not known.
function showVerdict() {
  const doc = latest, view = doc && together(doc), late = Date.now() - receivedAt, known = !isLost && late < SILENT_MS;
  const newest = view && view.tables ? view.tables.newest : null, audit = view ? view.audit : null;
  const readAge = newest ? view.tables_age_ms + late : 0;
  const state = !newest ? "unknown" : view.verdict === "good" && !(known && readAge <= view.stale_ms) ? "unknown" : view.verdict;
  $("unknown").textContent = state !== "unknown" ? "" : newest ? "Not known; it was: " : "Not known yet: ";
  $("twice").textContent = newest ? number(newest.charged_twice) : "–";
  $("oversold").textContent = newest && newest.oversold >= 0 ? number(newest.oversold) : "–";
  $("wrong").textContent = newest ? number(newest.wrong_totals) : "–";
  $("newest").textContent = newest ? "Among the newest " + number(newest.charges) + " charges, " + number(newest.wallets) + " wallets and " +
    number(newest.skus) + " SKUs" + (newest.oversold < 0 ? " (too many for this: the audit counts them)" : "") + ", read " + age(readAge) + " ago." : "";
  $("audit").textContent = !audit ? "No whole audit has ended yet." :
    (audit.broken.length === 0 ? "The last whole audit: no promise is broken (" + audit.invariants + " invariants), " :
      "The last whole audit: BROKEN: " + audit.broken.join(", ") + ", ") + age(audit.age_ms + late) + " ago.";
  $("audit-trouble").textContent = view && view.audit_trouble ? "Its last try failed: " + view.audit_trouble : "";
  $("verdict").dataset.state = state;
  say("word", { good: "no promise is broken", bad: "a promise is broken", unknown: "not known" }[state]);
  const trouble = !known ? "the pool does not answer; trying again" : !doc ? "connecting" : view.trouble ? "PostgreSQL: " + view.trouble :
    doc.redis_trouble ? "Redis: " + doc.redis_trouble : "";
  say("live", trouble || "live");
  $("live").dataset.state = trouble ? "lost" : "live";
}

function link(text, to) {
  const node = document.createElement("a");
  node.textContent = text;
  node.href = to;
  return node;
}

// Links keep their place and the focus while the figures change.
function showLinks(cells) {
  const nav = $("cell-links"), names = cells.map((d) => "cell " + d.cell), before = [...nav.children].slice(1).map((a) => a.textContent);
  if (names.join() !== before.join()) nav.replaceChildren(link("all", "#"), ...cells.map((d, i) => link(names[i], "#" + d.cell)));
  for (const a of nav.children) a.toggleAttribute("aria-current", a.hash === location.hash);
}

function showCells(doc) {
  const cells = doc.databases.filter((d) => d.cell !== null);
  $("cells-part").hidden = cells.length === 0;
  showLinks(cells);
  fill("cells", cells.map((d) => {
    const jobs = d.tables ? Object.values(d.tables.jobs) : [], sum = (key) => number(jobs.reduce((n, job) => n + job[key], 0));
    const oldest = Math.max(-1, ...jobs.filter((job) => job.due > 0).map((job) => job.oldest_due_ms));
    return ["cell " + d.cell, [d.verdict + (d.trouble ? ": " + d.trouble : ""), d.verdict === "good" ? "good" : "bad"],
      [d.tables ? sum("due") : "–", "n"], [oldest < 0 ? "–" : age(oldest), "n"], [d.tables ? sum("parked") : "–", "n"],
      [number(doc.workers.filter((w) => w.cell === d.cell && w.pid).length), "n"], [d.tables ? age(d.tables_age_ms) : "–", "n"]];
  }), "none");
}

function showJobs(doc, view, entry) {
  const jobs = view.tables ? Object.entries(view.tables.jobs) : [];
  const paused = (name) => view.tables.paused.filter((p) => p.job === name).map((p) => " (paused since " + p.since + " by " + p.by +
    (p.reason ? ": " + p.reason : "") + ")").join("");
  fill("jobs", jobs.map(([name, job]) => [name + paused(name), [number(job.due), "n"], [job.due ? age(job.oldest_due_ms) : "–", "n"],
    [number(Math.round(entry.rate[name] || 0)), "n"], [number(job.parked), job.parked ? "n bad" : "n"]]), view.trouble || "not read yet");
  const cards = view.tables ? view.tables.jobs.payments : null;
  say("attempts", !cards || cards.planned + cards.sent + cards.unknown === 0 ? "" : "Attempts at the gateway: " + number(cards.planned) + " planned, " +
    number(cards.sent) + " sent, " + number(cards.unknown) + " unknown" + (cards.unknown ? ", the oldest since " + age(cards.unknown_ms) +
    "; asked again in " + age(cards.next_ms) : "") + ".");
  const kinds = ["a", "b", "c"], names = Object.keys(doc.counters);
  chart("rate", "Rows a second, last two minutes", names.map((name, i) => ({ name, kind: kinds[i % 3], values: history.map((e) => e.rate[name] || 0) })));
  chart("backlog", "Backlog, last two minutes", names.map((name, i) => ({ name, kind: kinds[i % 3], values: history.map((e) => e.due[name] || 0) })));
}

function showWorkers(doc) {
  fill("worker-rows", doc.workers.map((w) => {
    const well = w.state === "works" || w.state === "connected";
    const keys = w.key_ct === 0 ? "–" : w.keys.join(" ") + (w.key_ct > w.keys.length ? " and " + number(w.key_ct - w.keys.length) + " more" : "") + (w.holds ? "" : " (given back)");
    const left = document.createElement("span");
    left.append(w.lease_left_ms > 0 ? age(w.lease_left_ms) : "–", bar(w.lease_left_ms, w.lease_ms, "lease left"));
    return [w.slot, w.job + (w.cell === null ? "" : " in cell " + w.cell), [w.pid || "–", "n"], [w.state + (w.trouble ? ": " + w.trouble : ""), well ? "good" : "bad"],
      [number(w.restarts), "n"], keys, left];
  }), "no workers");
}

function showRest(doc, t) {
  fill("timeline", doc.timeline.map((e) => [new Date(e.at_ms).toLocaleTimeString(), e.what, e.worker, e.detail,
    e.recovered_ms < 0 ? ["not yet", "bad"] : [age(e.recovered_ms), "good"]]), "nothing has happened");
  if (!t) return;
  fill("stock", t.stock.map((s) => [s.sku, [number(s.sold), "n"], [number(s.on_hand), s.on_hand < 0 ? "n bad" : "n"],
    bar(s.on_hand, Math.max(s.initial_qty, s.on_hand), number(s.on_hand) + " of " + number(s.initial_qty))]), "nothing was sold");
  const busy = doc.busy.map((b) => ["worker " + b.slot + " (" + b.job + ")", "key " + b.key + " of " + b.holder + ", " +
    (b.left_ms < 0 ? "without an end" : age(b.left_ms) + " left"), [age(b.waits_ms), "n"]]);
  fill("waits", t.waits.map((w) => [w.application_name + " (" + w.pid + ")", (w.holder || "a session") + " (" + w.holder_pid + "), " + w.state,
    [age(w.waits_ms), "n"]]).concat(busy), "nobody waits");
  fill("incidents", t.incidents.map((i) => [new Date(i.at_ms).toLocaleTimeString(), i.kind, i.resource, i.detail || i.phase]), "none");
  fill("parked", t.parked.map((p) => [p.row + " " + p.id, p.since, p.reason]), "none");
}

function show(doc) {
  const view = together(doc), entry = remember(doc, view);
  latest = doc;
  receivedAt = Date.now();
  isLost = false;
  $("pool").textContent = "pool " + doc.pool + " on " + doc.host + ", version " + doc.version;
  showVerdict();
  showCells(doc);
  showJobs(doc, view, entry);
  showWorkers(doc);
  showRest(doc, view.tables);
}

// A browser gives up for good when the answer is an error: too many pages are open, or a proxy finds no pool.
function listen() {
  const source = new EventSource("/events");
  source.onmessage = (event) => show(JSON.parse(event.data));
  source.onerror = () => {
    isLost = true;
    showVerdict();
    if (source.readyState === EventSource.CLOSED) setTimeout(listen, 2000);
  };
}

listen();
addEventListener("hashchange", () => {
  history.length = 0;
  if (latest) show(latest);
});
setInterval(() => { if (Date.now() - receivedAt > 2000) showVerdict(); }, 1000);
