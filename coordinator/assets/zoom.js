// Dragging over a chart asks for that part of its horizontal axis: the page is asked for with `from` and `to`, so
// that axes and points are those that the server draws. A double click shows all of it again; so does the link
// "whole run", which works without a mouse.
"use strict";
(() => {
  // Shorter ways are clicks.
  const LEAST = 12;
  let drag = null;

  const place = (svg, event) => {
    const box = svg.getBoundingClientRect();
    const width = svg.viewBox.baseVal.width;
    const [low, high, left, right] = svg.dataset.span.split(" ").map(Number);
    const at = Math.min(right, Math.max(left, ((event.clientX - box.left) / box.width) * width));
    return { at, value: low + ((at - left) / (right - left)) * (high - low) };
  };

  const show = (change) => {
    const address = new URL(location.href);
    change(address.searchParams);
    location.assign(address);
  };

  const end = () => {
    drag?.mark.remove();
    drag = null;
  };

  document.addEventListener("pointerdown", (event) => {
    const svg = event.target.closest?.("svg[data-span]");
    // A finger scrolls the page.
    if (!svg || event.button !== 0 || event.pointerType === "touch") return;
    const mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    mark.setAttribute("class", "selection");
    mark.setAttribute("height", svg.viewBox.baseVal.height);
    drag = { svg, mark, from: place(svg, event), moved: false };
  });

  // Points are links, which a browser would carry away.
  document.addEventListener("dragstart", (event) => {
    if (drag) event.preventDefault();
  });

  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    const to = place(drag.svg, event);
    drag.moved ||= Math.abs(to.at - drag.from.at) >= LEAST;
    if (!drag.moved) return;
    drag.svg.append(drag.mark);
    drag.mark.setAttribute("x", Math.min(drag.from.at, to.at));
    drag.mark.setAttribute("width", Math.abs(to.at - drag.from.at));
  });

  document.addEventListener("pointerup", (event) => {
    if (!drag) return;
    const { svg, from, moved } = drag;
    const to = place(svg, event);
    end();
    // A chart that was renewed meanwhile has no width.
    if (!moved || !svg.isConnected || from.value === to.value) return;
    // The click that follows would open the network under the pointer.
    addEventListener("click", (click) => click.preventDefault(), { capture: true, once: true });
    show((query) => {
      query.set("from", Math.min(from.value, to.value));
      query.set("to", Math.max(from.value, to.value));
    });
  });

  document.addEventListener("pointercancel", end);
  document.addEventListener("dblclick", (event) => {
    const zoomed = new URLSearchParams(location.search);
    if (!event.target.closest?.("svg[data-span]") || !(zoomed.has("from") || zoomed.has("to"))) return;
    show((query) => {
      query.delete("from");
      query.delete("to");
    });
  });
})();
