// Boards of games that are being played: live.js hands on what the coordinator tells of them.
"use strict";
(() => {
  const section = document.getElementById("boards");
  const frame = document.getElementById("board-frame");
  const list = section.querySelector(".boards");
  const seats = 4;
  // How long a board of which nothing is heard stays.
  const silence = 180000;
  // In the order in which something was heard of them.
  const known = new Map();

  function caption(figure, told) {
    figure.querySelector(".white-name").textContent = `#${told.white}`;
    figure.querySelector(".black-name").textContent = `#${told.black}`;
    figure.querySelector(".player").textContent = told.contributor;
    figure.querySelector(".board").setAttribute("aria-label", `#${told.white} against #${told.black}`);
  }

  function seat(job) {
    let found = known.get(job);
    if (found) return found;
    let figure = list.querySelector(`[data-job="${CSS.escape(job)}"]`);
    if (!figure) {
      if (list.children.length >= seats) leave(silent());
      figure = frame.content.firstElementChild.cloneNode(true);
      figure.dataset.job = job;
      list.append(figure);
    }
    found = { figure, coming: [], shown: figure.dataset.fen, timer: undefined, isOver: false };
    known.set(job, found);
    return found;
  }

  // The job whose board makes room: of those that are over, or else of all, the one of which nothing was heard longest.
  function silent() {
    const [longest] = known.keys();
    for (const [job, one] of known) if (one.isOver) return job;
    return longest;
  }

  function step(one) {
    const next = one.coming.shift();
    if (!next) {
      one.timer = undefined;
      if (one.isOver) leave(one.figure.dataset.job);
      return;
    }
    one.shown = next.fen;
    rookeryBoard.draw(one.figure.querySelector(".board"), next, "white");
    one.timer = setTimeout(() => step(one), one.pause);
  }

  function leave(job) {
    const gone = known.get(job);
    clearTimeout(gone.timer);
    clearTimeout(gone.gone);
    gone.figure.remove();
    known.delete(job);
    section.hidden = list.children.length === 0;
  }

  // The board of a job leaves if nothing is heard of it from now on.
  function keep(job) {
    const one = seat(job);
    known.delete(job);
    known.set(job, one);
    clearTimeout(one.gone);
    one.gone = setTimeout(() => leave(job), silence);
    return one;
  }

  function hear(told) {
    const one = keep(told.job);
    caption(one.figure, told);
    one.figure.querySelector(".expects").setAttribute("height", String((100 + told.value) / 2));
    const queued = one.coming.length > 0 ? one.coming[one.coming.length - 1].fen : one.shown;
    const at = told.positions.findIndex((position) => position.fen === queued);
    // What is not a continuation is another game, or some plies were not told.
    one.coming = at < 0 ? told.positions : [...one.coming, ...told.positions.slice(at + 1)];
    one.pause = Math.min(3000, Math.max(400, 35000 / Math.max(one.coming.length, 1)));
    section.hidden = false;
    if (one.timer === undefined) step(one);
  }

  // The board of a job that is over leaves once its moves were shown.
  function end(job) {
    const one = known.get(job);
    if (!one) return;
    one.isOver = true;
    if (one.timer === undefined) leave(job);
  }

  for (const figure of list.querySelectorAll("[data-job]")) keep(figure.dataset.job);
  document.addEventListener("rookery-board", (event) => {
    if (event.detail.run === document.body.dataset.run) hear(event.detail);
  });
  document.addEventListener("rookery-board-ended", (event) => end(event.detail.job));
})();
