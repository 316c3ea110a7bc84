// Steps through a game without asking the server again: the page holds every position and every
// search as JSON. Without this script the same links load the page at another ply.
"use strict";
(() => {
  const viewer = document.getElementById("viewer");
  const steps = JSON.parse(document.getElementById("steps").textContent);
  const board = document.getElementById("board");
  const panel = document.getElementById("search");
  const said = document.getElementById("said");
  const moves = document.getElementById("moves");
  const cursor = document.getElementById("cursor");
  const curve = document.getElementById("curve");
  const playOn = document.getElementById("play-on");
  const analysis = document.getElementById("analysis");
  const last = steps.length - 1;
  let ply = Number(viewer.dataset.ply);
  let below = viewer.dataset.below;

  const { svg, place } = rookeryBoard;

  function html(name, text, className) {
    const element = document.createElement(name);
    if (text !== undefined) element.textContent = text;
    if (className) element.className = className;
    return element;
  }

  // The moves that were visited most, thicker the more.
  function drawArrows(step) {
    const arrows = [];
    for (const move of (step.search?.top ?? []).slice(0, 4)) {
      if (move.share < 5) continue;
      const [x1, y1] = place(move.uci.slice(0, 2), below);
      const [x2, y2] = place(move.uci.slice(2, 4), below);
      const length = Math.hypot(x2 - x1, y2 - y1);
      const [dx, dy] = [(x2 - x1) / length, (y2 - y1) / length];
      const half = 0.9 + move.share / 28;
      const head = 5 + half * 2.2;
      // Along the arrow and across it, from the middle of the first square.
      const at = (along, across) =>
        `${(x1 + 22.5 + dx * along - dy * across).toFixed(1)} ${(y1 + 22.5 + dy * along + dx * across).toFixed(1)}`;
      const neck = length - head - 2;
      const outline = [at(8, half), at(neck, half), at(neck, head * 0.62), at(length - 2, 0),
        at(neck, -head * 0.62), at(neck, -half), at(8, -half)];
      const className = move.played ? "arrow played" : "arrow";
      arrows.push(svg("path", { class: className, d: `M${outline.join("L")}Z` }));
    }
    board.querySelector(".arrows").replaceChildren(...arrows);
  }

  function drawNames() {
    board.querySelectorAll(".file").forEach((name, at) => {
      name.textContent = "abcdefgh"[below === "white" ? at : 7 - at];
    });
    board.querySelectorAll(".rank").forEach((name, at) => {
      name.textContent = String(below === "white" ? 8 - at : at + 1);
    });
  }

  function bar(className, parts) {
    const element = svg("svg", { class: className, viewBox: "0 0 100 6", preserveAspectRatio: "none" });
    let x = 0;
    for (const [kind, width] of parts) {
      element.append(svg("rect", { class: kind, x, width: Math.max(width, 0), height: 6 }));
      x += width;
    }
    return element;
  }

  function number(value, digits) {
    return value.toFixed(digits).replace("-", "−").replace(/^−(0[.0]*)$/, "$1");
  }

  function drawSearch(step) {
    const search = step.search;
    if (!search) {
      const over = ply === last;
      panel.replaceChildren(
        html("h2", "No search in this position"),
        html("p", over ? viewer.dataset.ending : "The next move was given, not searched.", "soft"),
      );
      return;
    }
    const white = Math.min(Math.max((1 - search.draw + search.white) / 2, 0), 1 - search.draw);
    const text = html("p", "value for White ", "soft");
    text.append(
      html("b", number(search.white, 2)),
      `, draw ${number(100 * search.draw, 0)} %, ${search.visits} visit${search.visits === 1 ? "" : "s"}${search.full ? "" : ", fast"}`,
    );
    const body = html("tbody");
    for (const move of search.top) {
      const row = html("tr", undefined, move.played ? "played" : undefined);
      const wide = html("td", undefined, "wide");
      wide.append(bar("bar", [["fill", move.share], ["track", 100 - move.share]]));
      row.append(html("td", move.san), html("td", `${number(move.share, 1)} %`, "n"), wide);
      body.append(row);
    }
    const table = html("table", undefined, "top");
    table.append(body);
    panel.replaceChildren(
      html("h2", "Search in this position"),
      bar("tally", [["side-white", 100 * white], ["draw", 100 * search.draw], ["side-black", 100 * (1 - search.draw - white)]]),
      text,
      table,
    );
  }

  function mark() {
    moves.querySelector("[aria-current]")?.removeAttribute("aria-current");
    const link = moves.querySelector(`[data-ply="${ply}"]`);
    link?.setAttribute("aria-current", "true");
    const row = link?.closest("tr");
    if (row) moves.scrollTop = row.offsetTop - moves.clientHeight / 2;
    else moves.scrollTop = 0;
  }

  // Some browsers refuse to write the address many times in a row, as while a key is held: then it is written once
  // the key rests.
  let writing;
  function writeAddress() {
    clearTimeout(writing);
    try {
      history.replaceState(null, "", `?ply=${ply}&below=${below}`);
    } catch {
      writing = setTimeout(writeAddress, 1000);
    }
  }

  function show(next) {
    ply = Math.min(Math.max(next, 0), last);
    const step = steps[ply];
    rookeryBoard.draw(board, step, below);
    board.setAttribute("aria-label", rookeryBoard.describe(step.fen));
    drawArrows(step);
    drawNames();
    drawSearch(step);
    mark();
    // The move and what the search expects: a screen reader need not hear the whole table.
    const move = moves.querySelector(`[data-ply="${ply}"]`)?.textContent ?? "start";
    said.textContent = step.search ? `${move}, value for White ${number(step.search.white, 2)}` : move;
    cursor.setAttribute("x", ply - Number(cursor.getAttribute("width")) / 2);
    viewer.dataset.ply = String(ply);
    viewer.dataset.below = below;
    playOn.href = playOn.href.replace(/ply=\d+/, `ply=${ply}`);
    analysis.href = analysis.href.replace(/(analysis\/\w+\/).*/, `$1${step.fen.replaceAll(" ", "_")}`);
    writeAddress();
  }

  function turn() {
    below = below === "white" ? "black" : "white";
    show(ply);
  }

  const actions = {
    first: () => show(0),
    back: () => show(ply - 1),
    next: () => show(ply + 1),
    last: () => show(last),
    flip: turn,
  };
  for (const [id, action] of Object.entries(actions)) {
    document.getElementById(id).addEventListener("click", (event) => {
      event.preventDefault();
      action();
    });
  }
  moves.addEventListener("click", (event) => {
    const link = event.target.closest("[data-ply]");
    if (!link) return;
    event.preventDefault();
    show(Number(link.dataset.ply));
  });
  curve.addEventListener("click", (event) => {
    const box = curve.getBoundingClientRect();
    show(Math.round((last * (event.clientX - box.left)) / box.width));
  });
  const keys = {
    ArrowLeft: actions.back,
    ArrowRight: actions.next,
    ArrowUp: actions.first,
    ArrowDown: actions.last,
    Home: actions.first,
    End: actions.last,
    f: turn,
  };
  document.addEventListener("keydown", (event) => {
    const action = event.altKey || event.ctrlKey || event.metaKey ? undefined : keys[event.key];
    // These keys have a meaning of their own in fields.
    const isSideways = event.key === "ArrowLeft" || event.key === "ArrowRight";
    if (!action || event.target.closest?.(isSideways ? "input, select, textarea" : "input, select, textarea, #moves")) return;
    event.preventDefault();
    action();
  });
  show(ply);
})();
