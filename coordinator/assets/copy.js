// Gives commands a button that copies them. Without this script, or where the browser lets no page use
// the clipboard, they are selected and copied as any text.
"use strict";
(() => {
  async function copy(code) {
    if (navigator.clipboard) return navigator.clipboard.writeText(code.textContent);
    // Pages without encryption have no clipboard, but may copy what is selected.
    getSelection().selectAllChildren(code);
    if (!document.execCommand("copy")) throw new Error("the browser does not copy");
  }

  for (const command of document.querySelectorAll("pre.command")) {
    // What is renewed live would lose its button, and differ from what the server renders.
    if (command.closest("[data-live]")) continue;
    const code = command.querySelector("code");
    const button = document.createElement("button");
    button.type = "button";
    button.className = "copy";
    button.textContent = "Copy";
    button.addEventListener("click", () => {
      const say = (text) => { button.textContent = text; };
      copy(code).then(() => say("Copied"), () => say("Select and copy"));
    });
    command.append(button);
  }
})();
