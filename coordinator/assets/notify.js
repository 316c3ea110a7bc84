// Tells of promotions by the browser's notifications, to those who have asked for it, while the overview of the run is open.
"use strict";
(() => {
  const button = document.getElementById("notify");
  const run = document.body.dataset.run;
  if (!button || !window.Notification) return;
  const KEY = `rookery-notify-${run}`;
  const said = document.getElementById("notify-said");

  let wanted = false;
  try { wanted = localStorage.getItem(KEY) === "yes"; } catch { /* Storage is forbidden. */ }

  const isOn = () => wanted && Notification.permission === "granted";
  const show = () => {
    button.hidden = false;
    button.dataset.on = isOn();
    button.textContent = isOn() ? "Stop notifications" : "Notify me of promotions";
  };

  button.addEventListener("click", async () => {
    wanted = !isOn();
    if (wanted && (await Notification.requestPermission()) !== "granted") {
      wanted = false;
      said.textContent = "The browser does not allow this page to notify you; its settings for the page change that.";
    } else {
      said.textContent = wanted ? "The browser notifies you of a new best network while this page is open." : "";
    }
    try { localStorage.setItem(KEY, wanted ? "yes" : "no"); } catch { /* The choice lasts as long as the page. */ }
    show();
  });

  document.addEventListener("rookery-promotion", (event) => {
    if (!isOn()) return;
    const { number } = event.detail;
    let note;
    try {
      note = new Notification(`Network #${number} is the best now`, {
        body: document.title, icon: document.querySelector('link[rel="icon"]').href, tag: `${run}-${number}`,
      });
    } catch {
      // Chrome on Android lets only service workers notify.
      said.textContent = "This browser shows no notifications of pages.";
      return;
    }
    note.addEventListener("click", () => {
      focus();
      location.assign(`/runs/${run}/networks/${number}`);
    });
  });
  show();
})();
