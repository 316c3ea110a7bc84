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

  // The position of a FEN for people who do not see it, in the words of the server (pages/board.rs).
  function describe(fen) {
    const [rows, turn] = fen.split(" ");
    const sides = { white: { pieces: [], pawns: 0 }, black: { pieces: [], pawns: 0 } };
    // From a1 on, as the server does.
    rows.split("/").reverse().forEach((row, rank) => {
      let file = 0;
      for (const letter of row) {
        if (letter >= "1" && letter <= "8") {
          file += Number(letter);
          continue;
        }
        const side = sides[letter === letter.toUpperCase() ? "white" : "black"];
        const name = NAMES[letter.toLowerCase()];
        if (name === "pawn") side.pawns += 1;
        else side.pieces.push(`${name} ${"abcdefgh"[file]}${rank + 1}`);
        file += 1;
      }
    });
    const words = ({ pieces, pawns }) => `${pieces.join(", ")}, ${pawns} ${pawns === 1 ? "pawn" : "pawns"}`;
    return `White: ${words(sides.white)}. Black: ${words(sides.black)}. ${turn === "w" ? "White" : "Black"} to move.`;
  }

  return { svg, place, draw, describe };
})();
