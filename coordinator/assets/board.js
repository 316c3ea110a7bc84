// Draws positions on the boards that the server has rendered (templates/board.html).
"use strict";
const rookeryBoard = (() => {
  const NAMES = { p: "pawn", n: "knight", b: "bishop", r: "rook", q: "queen", k: "king" };
  const SVG = "http://www.w3.org/2000/svg";

  function svg(name, attributes) {
    const element = document.createElementNS(SVG, name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  }

  function corner(file, rank, below) {
    return below === "white" ? [file * 45, (7 - rank) * 45] : [(7 - file) * 45, rank * 45];
  }

  function place(square, below) {
    return corner(square.charCodeAt(0) - 97, Number(square[1]) - 1, below);
  }

  // The pieces of a step's `fen`, the squares of its `last` move, and whether the mover is in `check`.
  function draw(board, step, below) {
    const pieces = [];
    const marks = [];
    for (const square of step.last ?? []) {
      const [x, y] = place(square, below);
      marks.push(svg("rect", { class: "last", x, y, width: 45, height: 45 }));
    }
    const [rows, turn] = step.fen.split(" ");
    rows.split("/").forEach((row, down) => {
      let file = 0;
      for (const letter of row) {
        if (letter >= "1" && letter <= "8") {
          file += Number(letter);
          continue;
        }
        const color = letter === letter.toUpperCase() ? "white" : "black";
        const [x, y] = corner(file, 7 - down, below);
        const href = `#${NAMES[letter.toLowerCase()]}`;
        pieces.push(svg("use", { class: color, href, x, y, width: 45, height: 45 }));
        if (step.check && letter === (turn === "w" ? "K" : "k")) {
          marks.push(svg("circle", { class: "check", cx: x + 22, cy: y + 22, r: 21 }));
        }
        file += 1;
      }
    });
    board.querySelector(".pieces").replaceChildren(...pieces);
    board.querySelector(".marks").replaceChildren(...marks);
  }

  return { svg, place, draw };
})();
