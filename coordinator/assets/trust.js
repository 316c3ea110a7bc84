// Tells what audits have shown: contributors what is held of theirs and what to do, operators who
// stands out, with buttons that hold and clear. It asks the API with the token that is typed in,
// which is kept nowhere. Texts of others are only ever set as text.
"use strict";
(() => {
  const field = document.getElementById("token");
  const problem = document.getElementById("problem");
  const own = document.getElementById("own");
  const everybody = document.getElementById("everybody");
  /** Those who stand out, behind the field that finds others. */
  const list = document.createElement("div");
  const address = own.dataset.contact ? ` (${own.dataset.contact})` : "";
  const levels = {
    probation: ["on probation", "candidate"],
    trusted: ["trusted", "promoted"],
    quarantined: ["in quarantine", "rejected"],
  };

  /** An element with a class, texts and other elements. */
  function make(name, className, ...children) {
    const element = document.createElement(name);
    if (className) element.className = className;
    element.append(...children);
    return element;
  }

  const percent = (share) => `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
  const when = (time) => {
    const shown = make("time", "", time.slice(0, 16).replace("T", " ") + " UTC");
    shown.dateTime = time;
    return shown;
  };
  const badge = (level) => make("span", `badge ${levels[level][1]}`, levels[level][0]);
  const command = (text) => make("code", "", text);

  /** Why the coordinator does not take a token, in the words of this page. */
  const refused = "The coordinator does not know this token, or it was revoked. Copy the whole word that begins with rk_ from the file tokens.toml.";
  const form = /^rk_[0-9a-f]{64}$/i;

  async function ask(path, options = {}) {
    const headers = { authorization: `Bearer ${field.value.trim()}` };
    if (options.body) headers["content-type"] = "application/json";
    const answer = await fetch(`/api/v1${path}`, { ...options, headers });
    if (answer.ok) return answer.status === 204 ? null : answer.json();
    if (answer.status === 401) throw new Error(refused);
    const told = await answer.json().catch(() => ({}));
    throw new Error(told.detail ?? `the coordinator answered ${answer.status}`);
  }

  /** A table of at least one row. Heads stand above numbers as these do, on the right. */
  function table(label, heads, rows) {
    const lines = rows.map((cells) => cells.map((cell) =>
      cell instanceof HTMLTableCellElement ? cell : make("td", "", cell)));
    const head = heads.map((text, column) => {
      const cell = make("th", lines[0][column].className === "n" ? "n" : "", text);
      cell.scope = "col";
      return cell;
    });
    const scroll = make("div", "scroll", make("table", "", make("thead", "", make("tr", "", ...head)),
      make("tbody", "", ...lines.map((cells) => make("tr", "", ...cells)))));
    scroll.tabIndex = 0;
    scroll.setAttribute("role", "region");
    scroll.setAttribute("aria-label", label);
    return scroll;
  }

  function heldTable(held) {
    const rows = held.map((chunk) => [
      command(chunk.chunk.slice(0, 12)), chunk.run, chunk.kind, number(chunk.games),
      number(chunk.positions), make("td", "reason", chunk.reason), when(chunk.since)]);
    return table("Held chunks", ["Chunk", "Run", "Played for", "Games", "Positions", "Reason", "Since"], rows);
  }

  const number = (n) => make("td", "n", n.toLocaleString("en"));

  /** What a contributor's standing means, and what to do about it. */
  function advice(trust) {
    if (trust.quarantine) {
      return [
        "Your games do not count for training, matches, ratings or credit. The coordinator keeps them; they count again when an operator has cleared you.",
        `Update the worker, and run it unchanged and without overclocking. Check that no network file in its folder was replaced. Then write to the operator${address}, with your name and the reason above.`,
      ];
    }
    if (trust.held_chunks > 0) {
      return [
        "Other contributors got other searches for these chunks with the same network. The chunks are excluded until an operator releases them. Your other games count.",
        "A single case may be an accident. If it happens again, check the machine: memory errors, overclocking, a replaced network file.",
      ];
    }
    return trust.level === "probation"
      ? ["All your games count. Every chunk is audited until you have passed ten audits in a row."]
      : ["All your games count."];
  }

  /** How far a contributor is trusted and why, with these words on it, and the chunks that are held. */
  function standing(trust, words) {
    const card = make("section", "card", make("div", "title", make("h2", "", trust.name), badge(trust.level)));
    if (trust.quarantine) {
      const { reason, by, since } = trust.quarantine;
      card.append(make("p", "", make("b", "", `Quarantined by ${by}: `), reason, ", ", when(since)));
    }
    for (const { worker, reason, by, since } of trust.blocked_workers ?? []) {
      card.append(make("p", "", make("b", "", `The worker ${worker} is blocked by ${by}: `), reason, ", ", when(since)));
    }
    for (const text of words) card.append(make("p", "", text));
    const facts = [
      ["Audits passed since the last failure", trust.audits_passed.toLocaleString("en")],
      ["Audits failed", trust.audits_failed.toLocaleString("en")],
      ["Audits under way", trust.audits_open.toLocaleString("en")],
      ["Positions searched again", trust.audited_positions.toLocaleString("en")],
      ["Share of your audits that are full", percent(trust.audit_rate)],
      ["Chunks held", trust.held_chunks.toLocaleString("en")],
    ];
    card.append(make("dl", "", ...facts.flatMap(([name, value]) => [make("dt", "", name), make("dd", "", value)])));
    if (trust.held.length === 0) return [card];
    const all = trust.held.length < trust.held_chunks ? "The newest chunks that are held" : "Chunks that are held";
    return [card, make("section", "", make("h2", "", all), heldTable(trust.held))];
  }

  /** A field for a contributor's name, and whom it has found. */
  function finder() {
    const name = make("input", "");
    name.id = "name";
    name.required = true;
    name.autocomplete = "off";
    name.spellcheck = false;
    const label = make("label", "", "Contributor");
    label.htmlFor = name.id;
    const found = make("div", "");
    const find = async (who) => {
      found.replaceChildren();
      const trust = await ask(`/users/${encodeURIComponent(who)}/trust`);
      const [card, ...held] = standing(trust, []);
      card.append(orders(trust, () => find(who)));
      found.replaceChildren(card, ...held);
    };
    const button = make("button", "button second", "Find");
    const asking = make("form", "asking", label, name, button);
    asking.addEventListener("submit", (event) => {
      event.preventDefault();
      during(() => find(name.value.trim()));
    });
    return make("section", "", asking, found);
  }

  /** The field and the button that hold a contributor's chunks, or let them go; `after` that is shown. */
  function orders(trust, after = () => {}) {
    const held = trust.level === "quarantined";
    const reason = make("input", "");
    reason.placeholder = "why";
    reason.setAttribute("aria-label", `Why ${trust.name} is ${held ? "cleared" : "quarantined"}`);
    const button = make("button", "button", held ? "Clear" : "Quarantine");
    button.type = "button";
    button.addEventListener("click", () => during(async () => {
      const body = JSON.stringify({ quarantined: !held, reason: reason.value });
      await ask(`/users/${encodeURIComponent(trust.name)}/quarantine`, { method: "PUT", body });
      await showEverybody();
      await after();
    }));
    return make("div", "asking", reason, button);
  }

  const drifting = ({ feature, z, worker, backend, at }) =>
    make("p", "", `${feature}, ${z > 0 ? "+" : "−"}${Math.abs(z).toFixed(0)} σ (${worker} on ${backend}, `, when(at), ")");

  /** Why someone deserves a look, and what can be done. */
  function findings(trust) {
    const cell = make("td", "reason");
    if (trust.quarantine) {
      cell.append(make("p", "", `${trust.quarantine.reason} (${trust.quarantine.by}, `, when(trust.quarantine.since), ")"));
    } else {
      const reasons = new Set(trust.held.map((chunk) => chunk.reason));
      cell.append(...[...reasons].map((reason) => make("p", "", reason)));
    }
    cell.append(...trust.drift.map(drifting), orders(trust));
    return cell;
  }

  /** The share of training games that were given and did not come. */
  function missing({ training_games: came, missing_games: missing }) {
    return make("td", "n", came + missing > 0 ? percent(missing / (came + missing)) : "–");
  }

  async function showEverybody() {
    const people = await ask("/trust/contributors");
    const rows = people.map((trust) => [
      trust.name, badge(trust.level), make("td", "n", percent(trust.audit_rate)), number(trust.audits_passed),
      number(trust.audits_failed), number(trust.audits_open), number(trust.audited_positions),
      number(trust.held_chunks), missing(trust), findings(trust)]);
    const heads = ["Name", "Trust", "Audited", "Passed", "Failed", "Open", "Positions", "Held", "Not returned", "Reason and action"];
    const log = make("a", "", "operator log");
    log.href = "/operator-log";
    const section = make("section", "", make("div", "title", make("h2", "", "Contributors"), make("span", "more", log)));
    if (rows.length === 0) {
      section.append(make("p", "card empty", "No contributor has uploaded games yet."));
    } else {
      section.append(table("Contributors", heads, rows));
      section.append(make("p", "soft", "Quarantine: the coordinator keeps the contributor's chunks, and they do not count. Clear: all of them count again. To hold or release one chunk: ",
        command("PUT /api/v1/chunks/{sha256}/quarantine"), ". On the command line: ",
        command("rookery-coordinator user clear NAME --reason …"), "."));
    }
    list.replaceChildren(section);
  }

  /** Does something, and says if it fails. */
  async function during(work) {
    problem.hidden = true;
    try {
      await work();
    } catch (error) {
      problem.textContent = error.message;
      problem.hidden = false;
    }
  }

  const look = () => during(async () => {
    own.replaceChildren();
    everybody.replaceChildren();
    if (!form.test(field.value.trim())) {
      throw new Error("This is not a token. A token is rk_ and 64 digits of 0 to 9 and a to f.");
    }
    const tokens = await ask("/tokens");
    const { scopes } = tokens.find((token) => token.in_use);
    if (scopes.includes("contribute")) {
      const trust = await ask("/trust");
      own.replaceChildren(...standing(trust, advice(trust)));
    }
    if (scopes.includes("operate")) {
      await showEverybody();
      everybody.replaceChildren(finder(), list);
    }
    if (own.childElementCount + everybody.childElementCount === 0) {
      throw new Error("This token has neither the scope contribute nor operate, so there is nothing to show.");
    }
  });

  document.getElementById("asking").addEventListener("submit", (event) => {
    event.preventDefault();
    look();
  });
  document.getElementById("asking").hidden = false;
})();
