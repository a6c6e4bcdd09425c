"use strict";
// Words and tables, for the page of a pool and for that of the demonstration.
const $ = (id) => document.getElementById(id);
const number = (n) => Number(n).toLocaleString("en");

// As age_text in common/base/age.c: the largest unit and the one below it, rounded down.
const UNITS = [["y", 31536000000], ["d", 86400000], ["h", 3600000], ["min", 60000], ["s", 1000]];
function age(ms) {
  if (ms < 0) return "-";
  if (ms < 1000) return Math.floor(ms) + " ms";
  if (ms < 10000) return Math.floor(ms / 1000) + "." + Math.floor(ms % 1000 / 100) + " s";
  const i = UNITS.findIndex(([, unit]) => ms >= unit), [name, unit] = UNITS[i];
  const rest = i + 1 < UNITS.length ? Math.floor(ms % unit / UNITS[i + 1][1]) : 0;
  return Math.floor(ms / unit) + " " + name + (rest > 0 ? " " + rest + " " + UNITS[i + 1][0] : "");
}

function cell(value, kind) {
  const td = document.createElement("td");
  if (value instanceof Node) td.append(value); else td.textContent = value;
  if (kind) td.className = kind;
  return td;
}

// A live region is read out when its text is new, not each second.
function say(id, text) {
  if ($(id).textContent !== text) $(id).textContent = text;
}

// Replaces the rows of a table; each row is a list of [text or node, class]. In a narrow window a row is a card, and each cell has
// the head of its column before it.
function fill(id, rows, none) {
  const table = $(id), body = table.tBodies[0], heads = [...table.tHead.rows[0].cells].map((th) => th.textContent), columns = heads.length;
  const made = rows.map((row) => {
    const tr = document.createElement("tr");
    row.forEach((c, i) => {
      const td = Array.isArray(c) ? cell(c[0], c[1]) : cell(c);
      td.dataset.head = heads[i];
      tr.append(td);
    });
    return tr;
  });
  if (made.length === 0) {
    const tr = document.createElement("tr"), td = cell(none, "none");
    td.colSpan = columns;
    tr.append(td);
    made.push(tr);
  }
  body.replaceChildren(...made);
}
