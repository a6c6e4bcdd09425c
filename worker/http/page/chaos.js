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
  button.onclick = async () => {
    if (!confirm(action.title + "? " + action.sentence + ".")) return;
    const answer = await fetch("/chaos/" + action.name, { method: "POST", body: new URLSearchParams({ token: chaosRoot.dataset.token, confirm: "yes" }) })
      .catch(() => ({ ok: false, text: async () => "the pool does not answer" }));
    $("chaos-said").textContent = answer.ok ? "" : await answer.text();
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
  plain.setAttribute("aria-label", "The same work under a plain lock");
  for (const id of ["plain-verdict", "plain-of"]) {
    const p = document.createElement("p");
    p.id = id;
    plain.append(p);
  }
  plain.firstChild.className = "big";
  $("verdict").after(plain);
}

function chaosRecovery(f) {
  if (f.recovered_ms >= 0) return [age(f.recovered_ms) + " after the fault" + (f.lasts_ms ? ", which lasted " + age(f.lasts_ms) : ""), "good"];
  return f.is_over ? ["–", "bad"] : ["under way", "bad"];
}

function showChaos(doc) {
  const chaos = doc.chaos, side = doc.tables && doc.tables.plain;
  if (!chaosRoot.parentNode) chaosOpen(chaos);
  chaosRoot.dataset.token = chaos.token;
  chaosRoot.querySelectorAll("button").forEach((b) => { b.disabled = chaos.is_busy; });
  fill("faults", chaos.faults.map((f) => [new Date(f.at_ms).toLocaleTimeString(), f.fault, f.what, chaosRecovery(f)]), "none was started yet: press a button");
  $("plain").hidden = !side;
  if (!side) return;
  $("plain-verdict").textContent = number(side.charged_twice) + " charged twice, " + number(side.oversold) + " oversold, " +
    number(side.wrong_totals) + " totals wrong";
  $("plain").dataset.state = side.charged_twice + side.oversold + side.wrong_totals > 0 ? "bad" : "good";
  $("plain-of").textContent = "The same orders and periods, the same faults, under the plain lock (SET NX PX, delete by compare) over tables without guards: " +
    number(side.charges) + " charges since " + new Date(side.since_ms).toLocaleTimeString() + ".";
}
