"use strict";
// The buttons that start a fault, and what came of it: loaded only where the pool allows faults.
const chaosRoot = document.createElement("section");
chaosRoot.id = "chaos";
chaosRoot.className = "wide";
chaosRoot.setAttribute("aria-labelledby", "h-chaos");

function chaosButton(action) {
  const button = document.createElement("button");
  button.type = "button";
  button.id = action.name;
  button.title = action.sentence;
  button.textContent = action.title;
  button.onclick = async () => { // one that may not be pressed keeps the focus
    if (button.getAttribute("aria-disabled") === "true" || !confirm(action.title + "? " + action.sentence + ".")) return;
    const answer = await fetch("/chaos/" + action.name, { method: "POST", body: new URLSearchParams({ token: chaosRoot.dataset.token, confirm: "yes" }) })
      .catch(() => ({ ok: false, text: async () => "the pool does not answer" }));
    say("chaos-said", answer.ok ? action.title + ": begun" : await answer.text());
  };
  return button;
}

function chaosOpen(chaos) {
  const head = document.createElement("h2"), said = document.createElement("p");
  head.id = "h-chaos";
  head.textContent = "Break it";
  said.id = "chaos-said";
  said.setAttribute("role", "status");
  const groups = [[true, "These break a plain lock:"], [false, "A plain lock bears these, too:"]].map(([breaks, words]) => {
    const p = document.createElement("p");
    p.append(words, ...chaos.actions.filter((a) => a.breaks_plain === breaks).map(chaosButton));
    return p;
  });
  const table = document.createElement("table");
  table.id = "faults";
  table.className = "cards";
  const row = table.createTHead().insertRow();
  for (const name of ["at", "fault", "what", "at work again"]) {
    const th = document.createElement("th");
    th.scope = "col";
    th.textContent = name;
    row.append(th);
  }
  table.createTBody();
  chaosRoot.append(head, ...groups, said, table);
  $("verdict").after(chaosRoot);
  const plain = document.createElement("section");
  plain.id = "plain";
  plain.className = "wide";
  plain.hidden = true;
  plain.setAttribute("aria-labelledby", "h-plain");
  const title = document.createElement("h2"), word = document.createElement("span");
  title.id = "h-plain";
  title.setAttribute("aria-live", "polite");
  title.setAttribute("aria-atomic", "true");
  word.id = "plain-word";
  title.append("plain Redis lock: ", word);
  plain.append(title);
  for (const id of ["plain-verdict", "plain-of"]) {
    const p = document.createElement("p");
    p.id = id;
    plain.append(p);
  }
  plain.children[1].className = "big";
  $("verdict").after(plain);
}

// From the begin of the fault until the last incident of it is over: the timeline has the incidents one by one.
function chaosRecovery(f) {
  if (f.recovered_ms >= 0) return [age(f.recovered_ms) + " after the fault" + (f.lasts_ms ? ", which lasted " + age(f.lasts_ms) : ""), "good"];
  return f.is_over ? ["–", "bad"] : ["under way", "bad"];
}

function showChaos(doc) {
  const chaos = doc.chaos, side = doc.tables && doc.tables.plain;
  if (!chaosRoot.parentNode) chaosOpen(chaos);
  chaosRoot.dataset.token = chaos.token;
  chaosRoot.querySelectorAll("button").forEach((b) => { b.setAttribute("aria-disabled", chaos.is_busy); });
  fill("faults", chaos.faults.map((f) => [new Date(f.at_ms).toLocaleTimeString(), f.fault, f.what, chaosRecovery(f)]), "none was started yet: press a button");
  $("plain").hidden = !side;
  if (!side) return;
  $("plain-verdict").textContent = number(side.charged_twice) + " charged twice, " + number(side.oversold) + " oversold, " +
    number(side.wrong_totals) + " totals wrong";
  const broken = side.charged_twice + side.oversold + side.wrong_totals > 0;
  $("plain").dataset.state = broken ? "bad" : "good";
  say("plain-word", broken ? "it has failed" : "nothing has failed yet; press a button");
  $("jobs-note").textContent = "Each subscription of the shop began four days ago, since no period is shorter than a day: the oldest is always about 4 days and 1 hour old.";
  $("plain-of").textContent = "The same orders and periods, the same faults, under the plain lock (SET NX PX, delete by compare) over tables without guards: " +
    number(side.charges) + " charges since " + new Date(side.since_ms).toLocaleTimeString() + ".";
}
