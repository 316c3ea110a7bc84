// Shows the operator log by the page. It asks the API with the token that is typed in, which is kept
// nowhere. Texts of others are only ever set as text.
"use strict";
(() => {
  const field = (id) => document.getElementById(id);
  const [problem, log, older] = ["problem", "log", "older"].map(field);
  let next = null;
  // What the list that is shown was asked by: the fields may say something else by now.
  let shown = new URLSearchParams();
  // Counts questions: only the answer to the last one is shown.
  let asked = 0;

  /** An element with texts and other elements. */
  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  function filters() {
    const query = new URLSearchParams();
    for (const name of ["actor", "action"]) {
      const value = field(name).value.trim();
      if (value) query.set(name, value);
    }
    if (field("since").value) query.set("since", `${field("since").value}T00:00:00Z`);
    return query;
  }

  async function ask(filter, before) {
    const query = new URLSearchParams(filter);
    if (before !== null) query.set("before", before);
    const headers = { authorization: `Bearer ${field("token").value.trim()}` };
    const answer = await fetch(`/api/v1/operator-log?${query}`, { headers });
    const told = await answer.json().catch(() => ({}));
    if (!answer.ok) throw new Error(told.detail ?? `the coordinator answered ${answer.status}`);
    return told;
  }

  /** What was done: what changed, entry by entry, or the sentence that the log has. */
  function what({ changes = [], detail }) {
    if (changes.length === 0) return make("td", "reason", detail);
    const none = "none";
    return make("td", "reason", ...changes.map(({ key, from = none, to = none }) =>
      make("p", "", make("code", "", key), `: ${from} → ${to}`)));
  }

  function row(act) {
    const time = make("time", "", act.at.slice(0, 16).replace("T", " "));
    time.dateTime = act.at;
    return make("tr", "", make("td", "", time), make("td", "name", act.actor), make("td", "", act.action),
      make("td", "name", act.subject), what(act));
  }

  function show(entries) {
    const body = log.querySelector("tbody");
    if (body) {
      body.append(...entries.map(row));
      return;
    }
    if (entries.length === 0) {
      log.append(make("p", "card empty", "No log entry matches."));
      return;
    }
    const heads = ["Time (UTC)", "Who", "Action", "On", "What"].map((text) => make("th", "", text));
    const scroll = make("div", "scroll", make("table", "", make("thead", "", make("tr", "", ...heads)),
      make("tbody", "", ...entries.map(row))));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", "Operator log");
    log.append(scroll);
  }

  /** Asks for the page before an entry, or for the first page, and says if that fails. */
  async function look(filter, before) {
    asked += 1;
    const question = asked;
    problem.hidden = true;
    try {
      const page = await ask(filter, before);
      if (question !== asked) return;
      if (before === null) log.replaceChildren();
      show(page.entries);
      shown = filter;
      next = page.next ?? null;
      older.hidden = next === null;
    } catch (error) {
      if (question !== asked) return;
      problem.textContent = error.message;
      problem.hidden = false;
    }
  }

  field("asking").addEventListener("submit", (event) => {
    event.preventDefault();
    look(filters(), null);
  });
  older.addEventListener("click", () => look(shown, next));
  field("asking").hidden = false;
})();
