// Light, dark, or as the system says, as the visitor has chosen. It runs before the page is drawn.
"use strict";
(() => {
  const KEY = "rookery-theme";
  const root = document.documentElement;
  // Where storage is forbidden, the choice lasts as long as the page.
  const remembered = () => {
    try { return localStorage.getItem(KEY); } catch { return null; }
  };
  const apply = (theme) => {
    if (theme === "light" || theme === "dark") root.dataset.theme = theme;
    else delete root.dataset.theme;
  };
  apply(remembered());
  document.addEventListener("DOMContentLoaded", () => {
    const choice = document.querySelector("#theme select");
    choice.value = root.dataset.theme ?? "auto";
    choice.parentElement.hidden = false;
    choice.addEventListener("change", () => {
      apply(choice.value);
      try { localStorage.setItem(KEY, choice.value); } catch { /* forbidden */ }
    });
    addEventListener("storage", (event) => {
      if (event.key !== KEY) return;
      apply(event.newValue);
      choice.value = root.dataset.theme ?? "auto";
    });
  });
})();
