// Renews the parts of a page that are marked data-live when the coordinator tells of something
// new. The page is asked for again and its parts are exchanged, so that what is shown live is what
// the server renders, and nothing is written twice.
"use strict";
(() => {
  const parts = document.querySelectorAll("[data-live][id]");
  const lamp = document.getElementById("live");
  const run = document.body.dataset.run;
  if (parts.length === 0 || !window.EventSource) return;

  const pause = 2000;
  let waiting = false;
  let missed = false;

  async function renew() {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-live][id]")) {
      const fresh = page.getElementById(part.id);
      if (fresh && fresh.innerHTML !== part.innerHTML) {
        part.replaceChildren(...document.importNode(fresh, true).childNodes);
      }
    }
  }

  // At most one renewal each pause, and one after the last event.
  function soon() {
    if (waiting || document.hidden) {
      missed = true;
      return;
    }
    waiting = true;
    missed = false;
    renew().catch(() => {}).finally(() => setTimeout(() => {
      waiting = false;
      if (missed) soon();
    }, pause));
  }

  const events = new EventSource("/api/v1/events");
  const hear = (event) => {
    try {
      const told = JSON.parse(event.data);
      if (!told.run || !run || told.run === run) soon();
    } catch {
      soon();
    }
  };
  for (const kind of ["chunk", "network", "match", "promotion", "rollback", "ratings", "metrics", "missed"]) {
    events.addEventListener(kind, hear);
  }
  events.onopen = () => {
    lamp.hidden = false;
    lamp.classList.remove("lost");
    lamp.textContent = "live";
    if (missed) soon();
  };
  events.onerror = () => {
    missed = true;
    lamp.classList.add("lost");
    lamp.textContent = "connecting…";
  };
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && missed) soon();
  });
})();
