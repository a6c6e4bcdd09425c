"use strict";
// Both verdicts, the buttons, and what came of each fault.
const SILENT_MS = 10000; // a document is asked for each second
let token = "", answeredAt = Date.now();

function button(action) {
  const b = document.createElement("button");
  b.type = "button";
  b.id = action.name;
  b.title = action.sentence;
  b.textContent = action.title;
  b.onclick = async () => { // one that may not be pressed keeps the focus
    if (b.getAttribute("aria-disabled") === "true" || !confirm(action.title + "? " + action.sentence + ".")) return;
    const answer = await fetch("/press/" + action.name, { method: "POST", body: new URLSearchParams({ token, confirm: "yes" }) })
      .catch(() => ({ ok: false, text: async () => "the shop does not answer" }));
    say("said", answer.ok ? action.title + ": begun" : await answer.text());
  };
  return b;
}

// The gateway counts cards by itself.
const figures = (of, cards) => number(of.charged_twice) + " charged twice, " + (of.oversold < 0 ? "–" : number(of.oversold)) + " oversold, " + number(of.wrong_totals) + " totals wrong" + (cards === undefined ? "" : ", " + number(cards) + " charged to a card twice");
const isBroken = (of, cards) => of.charged_twice > 0 || of.oversold > 0 || of.wrong_totals > 0 || cards > 0;

function showOurs(of, cards) {
  $("verdict").dataset.state = isBroken(of, cards) ? "bad" : "good";
  $("verdict-text").textContent = figures(of, cards);
  say("word", isBroken(of, cards) ? "BROKEN" : "no promise is broken");
  $("verdict-of").textContent = "Among the newest " + number(of.charges) + " charges, " + number(of.wallets) + " wallets and " + number(of.skus) + " SKUs.";
}

function showPlain(of, cards) {
  $("plain").dataset.state = isBroken(of, cards) ? "bad" : "good";
  $("plain-verdict").textContent = figures(of, cards);
  say("plain-word", isBroken(of, cards) ? "it has failed" : "nothing has failed yet; press a button");
  $("plain-of").textContent = "The same orders and periods, the same faults, under the plain lock (SET NX PX, delete by compare) over tables without guards: " +
    number(of.charges) + " charges since " + new Date(of.since_ms).toLocaleTimeString() + ".";
}

// From the begin of the fault until all was decided that was there at its end.
function recovery(f) {
  if (f.recovered_ms >= 0) return [age(f.recovered_ms) + " after the fault began" + (f.lasts_ms ? ", which lasted " + age(f.lasts_ms) : ""), "good"];
  return f.is_over ? ["–", "bad"] : ["under way", "bad"];
}

// The figures were so, and may be so no more.
function forget() {
  for (const id of ["verdict", "plain"]) $(id).dataset.state = "unknown";
  for (const id of ["word", "plain-word"]) say(id, "not known; it was:");
}

function show(doc) {
  token = doc.token;
  for (const action of doc.actions) {
    if (!$(action.name)) $(action.breaks_plain ? "breaking" : "bearing").append(button(action));
    $(action.name).setAttribute("aria-disabled", doc.is_busy);
  }
  fill("faults", doc.faults.map((f) => [new Date(f.at_ms).toLocaleTimeString(), f.fault, f.what, recovery(f)]), "none was started yet: press a button");
  if (doc.tables && doc.tables.newest[0]) showOurs(doc.tables.newest[0], doc.tables.cards?.twice);
  if (doc.tables && doc.tables.plain) showPlain(doc.tables.plain, doc.tables.cards?.plain_twice);
  if (doc.trouble || doc.tables_age_ms > SILENT_MS) forget();
}

async function ask() {
  try {
    const doc = await (await fetch("/state")).json();
    answeredAt = Date.now();
    show(doc);
    say("live", doc.trouble ? "the tables cannot be read: " + doc.trouble : "live");
  } catch {
    if (Date.now() - answeredAt > SILENT_MS) {
      say("live", "the shop does not answer");
      forget();
    }
  }
  setTimeout(ask, 1000);
}
ask();
