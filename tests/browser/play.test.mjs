// The page "Play": a game against a network that the browser computes.

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { PLAY, at, clickMove, dragMove, drawn, middle, moves, movesAre, says, setUp, type } from "./board.mjs";
import { overflows, seriousFaults, withShowcase } from "./showcase.mjs";

const site = withShowcase();
const { on } = site;

describe("a game", () => {
  test("is played by clicking and by dragging, and the network answers", () =>
    on(PLAY, "play", async (page) => {
      await says(page, "White to move.");
      await clickMove(page, "e2", "e4");
      await movesAre(page, 2);
      await says(page, "White to move.");
      await dragMove(page, "g1", "f3");
      await movesAre(page, 4);
      assert.deepEqual((await moves(page)).filter((_, ply) => ply % 2 === 0), ["e4", "Nf3"]);
      await drawn(page.locator("square.last-move"), 2);
    }));

  test("shows where a piece may go", () =>
    on(PLAY, "play-targets", async (page) => {
      await says(page, "White to move.");
      await page.mouse.click(...await middle(page, "b1"));
      await drawn(page.locator("square.move-dest"), 2);
    }));

  test("is played by typing, stepped through by keys, and taken back", () =>
    on(PLAY, "play-typed", async (page) => {
      await says(page, "White to move.");
      await type(page, "d4");
      await movesAre(page, 2);
      await says(page, "White to move.");
      await type(page, "g1f3");
      await movesAre(page, 4);
      await page.locator("h1").click();
      const shown = () => page.locator("#sheet [aria-current]").allInnerTexts();
      const before = await moves(page);
      await page.keyboard.press("ArrowLeft");
      assert.deepEqual(await shown(), [before[2]]);
      await page.keyboard.press("Home");
      assert.deepEqual(await shown(), []);
      await page.keyboard.press("End");
      assert.deepEqual(await shown(), [before[3]]);
      await says(page, "White to move.");
      await page.click("#takeback");
      assert.deepEqual(await moves(page), before.slice(0, 2));
      await page.click("#new");
      assert.deepEqual(await moves(page), []);
    }));

  test("can be played by keyboard: the focus stays, and the network's move is announced", () =>
    on(PLAY, "play-keyboard", async (page) => {
      const focused = (selector) => page.waitForFunction((name) => document.activeElement.matches(name), selector);
      await says(page, "White to move.");
      await page.focus("#network");
      await page.selectOption("#network", "0");
      await says(page, "White to move.");
      await focused("#network:enabled");
      await type(page, "e4");
      await movesAre(page, 2);
      await says(page, `${(await moves(page))[1]}. White to move.`);
      await focused("#typed");
      await page.locator("#sheet button").first().click();
      await focused("#sheet [aria-current]");
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.evaluate(() => document.activeElement.innerText), (await moves(page))[1]);
      await page.keyboard.press("Home");
      await focused("#moves");
      await page.keyboard.press("u");
      assert.equal((await moves(page)).length, 2, "taking back starts at the game's end");
    }));

  test("refuses a typed move that is not legal", () =>
    on(PLAY, "play-illegal", async (page) => {
      await says(page, "White to move.");
      await type(page, "Ke4");
      assert.match(await page.$eval("#typed", (field) => field.validationMessage), /not a legal move/);
      assert.deepEqual(await moves(page), []);
    }));

  test("is begun by the network if the visitor plays Black, with policy only", () =>
    on(PLAY, "play-black", async (page) => {
      await says(page, "White to move.");
      await page.selectOption("#strength", "0");
      await page.selectOption("#side", "black");
      await movesAre(page, 1);
      await says(page, "Black to move.");
      await drawn(page.locator(".cg-wrap.orientation-black"), 1);
      await clickMove(page, "e7", "e5");
      await movesAre(page, 3);
      assert.equal((await moves(page))[1], "e5");
    }));

  test("ends by mate, which the page says", () =>
    on(at({ fen: "7k/8/5K2/8/8/8/8/6Q1 w - - 0 1" }), "play-mate", async (page) => {
      await says(page, "White to move.");
      await clickMove(page, "g1", "g7");
      await says(page, "Checkmate. White wins.");
      await drawn(page.locator("square.check"), 1);
    }));
});

describe("a promotion", () => {
  const fen = "8/P6k/8/8/8/8/7p/K7 w - - 0 1";

  test("asks what the pawn becomes", () =>
    on(at({ fen }), "play-promotion", async (page, view) => {
      await says(page, "White to move.");
      await clickMove(page, "a7", "a8");
      await page.getByRole("dialog", { name: "Promote to" }).waitFor();
      await view.shot("play-promotion-menu");
      assert.deepEqual(await seriousFaults(page), []);
      await page.getByRole("button", { name: "knight" }).click();
      await movesAre(page, 2);
      assert.equal((await moves(page))[0], "a8=N");
    }));

  test("can be thought better of", () =>
    on(at({ fen }), "play-promotion-cancelled", async (page) => {
      await says(page, "White to move.");
      await clickMove(page, "a7", "a8");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.deepEqual(await moves(page), []);
      await clickMove(page, "a1", "b1");
      await movesAre(page, 2);
    }));

  const menuOpens = async (page) => {
    await says(page, "White to move.");
    await clickMove(page, "a7", "a8");
    await page.getByRole("dialog").waitFor();
  };

  test("is still asked for after another setting is chosen", () =>
    on(at({ fen }), "play-promotion-kept", async (page) => {
      await menuOpens(page);
      await page.selectOption("#strength", "10");
      await page.getByRole("button", { name: "rook" }).click();
      await movesAre(page, 2);
      assert.equal((await moves(page))[0], "a8=R");
    }));

  test("is no longer asked for once the board is turned", () =>
    on(at({ fen }), "play-promotion-turned", async (page) => {
      await menuOpens(page);
      await page.click("#flip");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await clickMove(page, "a7", "a8");
      const menu = page.getByRole("dialog");
      await menu.waitFor();
      const [, y] = await middle(page, "a8");
      const box = await menu.getByRole("button", { name: "queen" }).boundingBox();
      assert.ok(Math.abs(box.y + box.height / 2 - y) < box.height, "it stands on the promotion's square");
      await page.getByRole("button", { name: "queen" }).click();
      await movesAre(page, 2);
      assert.equal((await moves(page))[0], "a8=Q");
    }));

  test("can be thought better of wherever the focus is", () =>
    on(at({ fen }), "play-promotion-escaped", async (page) => {
      await menuOpens(page);
      await page.focus("#strength");
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      assert.deepEqual(await moves(page), []);
    }));

  test("is no longer asked for in another position", () =>
    on(at({ fen }), "play-promotion-gone", async (page) => {
      await menuOpens(page);
      await page.click("#new");
      await page.getByRole("dialog").waitFor({ state: "detached" });
      await clickMove(page, "e2", "e4");
      await movesAre(page, 2);
    }));
});

describe("a position", () => {
  test("is set up from a FEN", () =>
    on(PLAY, "play-fen", async (page) => {
      await says(page, "White to move.");
      await setUp(page, "4k3/8/8/8/8/8/4p3/R3K2R b KQ - 3 40");
      await says(page, "Black to move.");
      // Pieces that leave the board fade.
      await page.waitForFunction(() => document.querySelectorAll("cg-board piece").length === 5);
      assert.equal(await page.inputValue("#side"), "black");
    }));

  test("is set up from a PGN", () =>
    on(PLAY, "play-pgn", async (page) => {
      await says(page, "White to move.");
      await setUp(page, "[Event \"?\"]\n\n1. e4 {best by test} e5 (1... c5) 2. Nf3 Nc6 3. Bb5 a6 *");
      await says(page, "White to move.");
      assert.deepEqual(await moves(page), ["e4", "e5", "Nf3", "Nc6", "Bb5", "a6"]);
    }));

  test("that cannot be read is refused with the reason", () =>
    on(PLAY, "play-refused", async (page) => {
      await says(page, "White to move.");
      await setUp(page, "1. e4 e5 2. Ke3");
      assert.match(await page.innerText("#setup-problem"), /Move 2 of the PGN, Ke3, is not legal/);
      await page.fill("#position", "8/8/8/8/8/8/8/4K3 w - - 0 1");
      await page.click("#setup button");
      assert.match(await page.innerText("#setup-problem"), /each side needs one king/);
    }));

  test("of a game is played on from the viewer", async () => {
    const games = await (await fetch(`${site.showcase.url}/api/v1/games?run=main`)).json();
    const { id } = games.find(({ plies }) => plies > 6);
    await on(`/games/${id}?ply=6`, "play-on", async (page) => {
      const viewed = await page.locator("#moves a").allInnerTexts();
      await page.keyboard.press("ArrowLeft");
      await page.click("#play-on");
      await page.waitForURL((url) => url.href.endsWith(`/play?game=${id}&ply=5`));
      await movesAre(page, 5);
      assert.deepEqual(await moves(page), viewed.slice(0, 5));
      await says(page, "Black to move.");
    });
  });
});

describe("networks", () => {
  test("are chosen on the page and by their own pages", () =>
    on("/runs/main/networks/0", "play-network", async (page) => {
      await page.click("text=Play in the browser");
      await page.waitForURL(/play\?network=0$/);
      await says(page, "White to move.");
      assert.equal(await page.inputValue("#network"), "0");
      await page.selectOption("#network", "2");
      await says(page, "White to move.");
      await type(page, "e4");
      await movesAre(page, 2);
    }));

  test("the one that comes with Rookery takes a queen that is given away", () =>
    on(at({ network: "small", fen: "rnb1kbnr/ppp1pppp/8/3q4/8/2N5/PPPP1PPP/R1BQKBNR b KQkq - 1 3" }), "play-included", async (page) => {
      await says(page, "Black to move.");
      assert.equal(await page.inputValue("#network"), "small");
      await type(page, "Qxd2");
      await movesAre(page, 2);
      assert.match((await moves(page))[1], /xd2$/);
    }));

  test("are loaded without a percentage for screen readers", () =>
    on("/runs/main/networks/0", "play-loading", async (page) => {
      await page.addInitScript(() => {
        globalThis.said = [];
        globalThis.shown = [];
        document.addEventListener("DOMContentLoaded", () => {
          const status = document.getElementById("status");
          new MutationObserver(() => {
            const spoken = status.cloneNode(true);
            spoken.querySelectorAll("[aria-hidden]").forEach((part) => part.remove());
            globalThis.said.push(spoken.textContent);
            globalThis.shown.push(status.textContent);
          }).observe(status, { childList: true, characterData: true, subtree: true });
        });
      });
      await page.click("text=Play in the browser");
      await says(page, "White to move.");
      const [said, shown] = await page.evaluate(() => [globalThis.said, globalThis.shown]);
      assert.ok(shown.some((text) => /^Loading network #0 … 100 %$/.test(text)), shown.join("; "));
      assert.ok(said.every((text) => !text.includes("%")), said.join("; "));
    }));

  test("are fetched once", async () => {
    const view = await site.open();
    const fetched = [];
    view.page.context().on("request", (request) => {
      if (request.url().includes("/file?")) fetched.push(request.url());
    });
    await view.visit(PLAY);
    await says(view.page, "White to move.");
    assert.equal(fetched.length, 1);
    await view.page.reload();
    await says(view.page, "White to move.");
    assert.equal(fetched.length, 1);
    assert.deepEqual(view.complaints, []);
    await view.close();
  });

  test("whose file is damaged on the way are not played", async () => {
    const view = await site.open();
    await view.page.context().route("**/file?**", (route) => route.fulfill({ body: "damaged" }));
    await view.visit(PLAY);
    await says(view.page, "does not have the SHA-256");
    await view.close();
  });

  test("that cannot be loaded leave the last one in the game, and can be chosen again", async () => {
    const view = await site.open();
    const { page } = view;
    await view.visit(`${PLAY}?network=2`);
    await says(page, "White to move.");
    const isFile = /\/file\?/;
    let fail;
    const failure = new Promise((resolve) => (fail = resolve));
    await page.context().route(isFile, async (route) => {
      await failure;
      await route.fulfill({ body: "damaged" });
    });
    await page.selectOption("#network", "0");
    await page.selectOption("#side", "black");
    fail();
    await movesAre(page, 1);
    await says(page, /does not have the SHA-256 .* Black to move/);
    assert.equal(await page.inputValue("#network"), "2");
    await type(page, "e5");
    await movesAre(page, 3);
    await page.context().unroute(isFile);
    await page.selectOption("#network", "0");
    await says(page, /^Black to move/);
    assert.equal(await page.inputValue("#network"), "0");
    await view.close();
  });

  test("that this page does not know are named", async () => {
    const view = await site.open();
    await view.page.route("**/api/v1/networks/*", async (route) => {
      const info = await (await route.fetch()).json();
      await route.fulfill({ json: { ...info, spec: { ...info.spec, input: "lc0-200" } } });
    });
    await view.visit(PLAY);
    await says(view.page, "the input encoding lc0-200, which this page does not know");
    await view.close();
  });
});

describe("without a graphics card", () => {
  test("the processor computes, which the page says", () =>
    on(PLAY, "play-processor", async (page) => {
      const line = page.locator("#computed");
      await line.filter({ hasText: "Your processor computes the network: the browser offers no graphics card." }).waitFor();
      await page.selectOption("#device", "gpu");
      await page.locator("#computed.problem").waitFor();
      await page.selectOption("#device", "processor");
      await line.filter({ hasText: /^Your processor computes the network\.$/ }).waitFor();
      await type(page, "e4");
      await movesAre(page, 2);
    }));
});

describe("the board", () => {
  for (const colorScheme of ["light", "dark"]) {
    test(`fits a telephone and takes touches, ${colorScheme}`, () =>
      on(PLAY, `play-phone-${colorScheme}`, async (page) => {
        await says(page, "White to move.");
        assert.equal(await overflows(page), false);
        await page.locator("cg-board").scrollIntoViewIfNeeded();
        await page.touchscreen.tap(...await middle(page, "e2"));
        await page.touchscreen.tap(...await middle(page, "e4"));
        await movesAre(page, 2);
        await page.check("#analyse");
        await page.locator("#lines tr").nth(4).waitFor();
        assert.equal(await overflows(page), false);
      }, { viewport: { width: 390, height: 800 }, hasTouch: true, colorScheme }));
  }

  for (const [width, order] of [[1200, ["settings", "moves", "analysis"]], [390, ["moves", "settings", "analysis"]]]) {
    test(`has the score sheet next to it, ${width} pixels wide`, () =>
      on(PLAY, `play-sheet-${width}`, async (page) => {
        await type(page, "e4");
        await movesAre(page, 2);
        const tops = await page.evaluate(() => {
          const top = (selector) => document.querySelector(selector).getBoundingClientRect().top;
          return { settings: top(".settings"), moves: top("#moves"), analysis: top("#analysis") };
        });
        assert.deepEqual(Object.keys(tops).sort((a, b) => tops[a] - tops[b]), order);
      }, { viewport: { width, height: 800 } }));
  }

  test("says without JavaScript that it needs it", () =>
    on(PLAY, "play-without-js", async (page) => {
      assert.match(await page.innerText("main"), /The board needs JavaScript/);
    }, { javaScriptEnabled: false }));

  test("is linked from the run's overview and its navigation", () =>
    on("/", "play-linked", async (page) => {
      await page.click(".actions .button:text('Play against')");
      await says(page, "White to move.");
      assert.equal(await page.innerText("nav [aria-current]"), "Play");
    }));
});
