// Renews the parts of a page that are marked data-live when the coordinator tells of something
// new. The page is asked for again and its parts are exchanged, so that what is shown live is what
// the server renders, and nothing is written twice. All who watch share what is rendered.
"use strict";
(() => {
  const parts = document.querySelectorAll("[data-live][id]");
  const lamp = document.getElementById("live");
  const run = document.body.dataset.run;
  if (parts.length === 0 || !window.EventSource) return;

  const pause = 2000;
  // How long a hidden page keeps its stream open.
  const grace = 60000;
  let waiting = false;
  let missed = false;
  let events = null;
  let retrying;
  let hiding;

  // Whether somebody is about to do something in a part: keys go there, text is marked, or a chart is dragged over.
  // A click into a table gives it the focus too, which is no sign that keys will follow.
  function isInUse(part) {
    const marked = getSelection();
    return part.matches(":focus-visible") || part.querySelector(":focus-visible, .selection") !== null
      || (!marked.isCollapsed && marked.containsNode(part, true));
  }

  // Exchanges what is in a part; what was scrolled sideways stays so.
  function exchange(part, fresh) {
    const wide = () => part.querySelectorAll(".scroll, .plot");
    const scrolled = Array.from(wide(), (one) => one.scrollLeft);
    part.replaceChildren(...document.importNode(fresh, true).childNodes);
    wide().forEach((one, place) => { one.scrollLeft = scrolled[place] ?? 0; });
  }

  // Renews the parts, but for those in use, whose turn is the next time; says whether by what somebody else was shown
  // before, which may be older than what was told here.
  async function renew() {
    const headers = { accept: "text/html", "x-rookery-live": "1" };
    const answer = await fetch(location.href, { headers });
    if (!answer.ok) return false;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.innerHTML && !isInUse(part)) exchange(part, fresh);
    }
    return answer.headers.has("age");
  }

  // At most one renewal each pause, and one after the last event. Nothing is shared for longer than
  // a pause: a second renewal for the same event is new enough.
  function soon(second = false) {
    if (waiting || document.hidden) {
      missed = true;
      return;
    }
    waiting = true;
    missed = false;
    renew().catch(() => false).then((shared) => setTimeout(() => {
      waiting = false;
      if (missed || (shared && !second)) soon(!missed);
    }, pause));
  }

  const hear = (event) => {
    try {
      const told = JSON.parse(event.data);
      if (!told.run || !run || told.run === run) soon();
    } catch {
      soon();
    }
  };
  function opened() {
    lamp.hidden = false;
    lamp.classList.remove("lost");
    lamp.textContent = "live";
    if (missed) soon();
  }

  // The browser connects again after a break, but not after an error of HTTP: of a proxy whose coordinator restarts,
  // or of a coordinator that has too many listeners of one address. All who wait do not come back at once.
  function failed() {
    missed = true;
    lamp.classList.add("lost");
    lamp.textContent = "connecting…";
    if (events.readyState === EventSource.CLOSED) retrying = setTimeout(connect, 15000 + 30000 * Math.random());
  }

  function connect() {
    events = new EventSource("/api/v1/events");
    for (const kind of ["chunk", "network", "match", "promotion", "rollback", "ratings", "metrics", "missed"]) {
      events.addEventListener(kind, hear);
    }
    for (const kind of ["board", "board-ended"]) {
      events.addEventListener(kind, (event) => {
        document.dispatchEvent(new CustomEvent(`rookery-${kind}`, { detail: JSON.parse(event.data) }));
      });
    }
    events.addEventListener("promotion", (event) => {
      const told = JSON.parse(event.data);
      if (told.run === run) document.dispatchEvent(new CustomEvent("rookery-promotion", { detail: told }));
    });
    events.onopen = opened;
    events.onerror = failed;
  }

  // A hidden page gives up its stream unless it was asked for notices: by HTTP/1.1 a browser opens only six
  // connections to a server, for all its tabs.
  function disconnect() {
    if (document.querySelector('#notify[data-on="true"]')) return;
    clearTimeout(retrying);
    events?.close();
    events = null;
    missed = true;
  }

  document.addEventListener("visibilitychange", () => {
    clearTimeout(hiding);
    if (document.hidden) {
      hiding = setTimeout(disconnect, grace);
      return;
    }
    if (missed) soon();
    if (events) return;
    // What happens before the stream is open is shown once it is.
    missed = true;
    connect();
  });
  connect();
  // The scripts that follow have run by then, and know whether notices were asked for.
  document.addEventListener("DOMContentLoaded", () => { if (document.hidden) disconnect(); });
})();
