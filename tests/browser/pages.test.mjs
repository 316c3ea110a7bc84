// What people see: every page in a real browser on a coordinator with a season behind it.
//
//     cargo build --workspace --bins && npm ci --prefix tests/browser && node --test tests/browser/

import assert from "node:assert/strict";
import { createHash, webcrypto } from "node:crypto";
import { readFileSync, readdirSync } from "node:fs";
import { basename, join } from "node:path";
import { before, describe, test } from "node:test";
import { Showcase, faintTexts, open, overflows, screenshots, seriousFaults, withShowcase } from "./showcase.mjs";

const site = withShowcase();
const { on } = site;

before(() => console.log(`screenshots in ${screenshots}`));

const text = (page, selector) => page.locator(selector).innerText();

describe("overview", () => {
  test("tells the best network, what came in, and how the gate match stands", () =>
    on("/", "overview", async (page) => {
      assert.match(await text(page, "#figures"), /Best network\s+#1/);
      assert.match(await text(page, "#figures"), /a minute/);
      assert.match(await text(page, "#gate"), /Network #3 is being tested/);
      assert.match(await text(page, "#gate"), /LLR/);
      assert.equal(await page.locator("#latest tbody tr").count(), 8);
      assert.ok((await page.locator("#rating .point").count()) >= 3);
      assert.ok((await page.locator("#workers tbody tr").count()) >= 1);
    }));

  test("is complete without JavaScript", () =>
    on("/", "overview-without-js", async (page) => {
      assert.match(await text(page, "#gate"), /Network #3 is being tested/);
      assert.equal(await page.locator("#latest tbody tr").count(), 8);
    }, { javaScriptEnabled: false }));

  test("renews itself when a chunk arrives", () =>
    on("/", "overview-live", async (page) => {
      await page.locator("#live:not([hidden])").waitFor();
      const newest = await page.locator("#latest tbody a").first().innerText();
      // A chunk of puzzles is told, too, but not among the latest games.
      while (await site.showcase.more() === "puzzles");
      await page.waitForFunction(
        (old) => document.querySelector("#latest tbody a").innerText !== old, newest);
    }));

  for (const colorScheme of ["light", "dark"]) {
    test(`fits a telephone, ${colorScheme}`, () =>
      on("/", `overview-phone-${colorScheme}`, async (page) => {
        assert.equal(await overflows(page), false);
      }, { viewport: { width: 390, height: 800 }, colorScheme }));
  }

  test("is readable in the dark", () =>
    on("/", "overview-dark", async (page) => {
      const color = await page.evaluate(() => getComputedStyle(document.body).backgroundColor);
      assert.equal(color, "rgb(21, 24, 26)");
    }, { colorScheme: "dark" }));
});

describe("networks", () => {
  test("are listed with status, rating and puzzle score", () =>
    on("/runs/main/networks", "networks", async (page) => {
      const rows = page.locator("tbody tr");
      assert.equal(await rows.count(), 4);
      const statuses = await page.locator("tbody td:nth-child(2)").allInnerTexts();
      assert.deepEqual(statuses.map((s) => s.trim().split(/\s+/)), [
        ["candidate"], ["rejected"], ["promoted", "best"], ["initial"],
      ]);
      assert.match(await rows.nth(2).innerText(), /\+\d+ ± \d+/);
      assert.equal(await page.locator(".wide-screen .point.promoted").count(), 1);
      assert.equal(await page.locator(".wide-screen .point.rejected").count(), 1);
    }));

  test("have their ratings drawn over the positions that had been played", () =>
    on("/runs/main/networks", "networks-over-positions", async (page) => {
      await page.click("text=by positions played");
      await page.waitForURL(/over=positions$/);
      assert.match(await text(page, "#chart .choice:first-child [aria-current]"), /positions/);
      assert.ok((await page.locator("#chart .wide-screen .point").count()) >= 3);
      assert.match(await page.locator("#chart svg").first().textContent(), /training positions/);
    }, { javaScriptEnabled: false }));

  test("have their ratings drawn over time, and a part of that", () =>
    on("/runs/main/networks", "networks-over-time", async (page) => {
      await page.click("text=by time");
      await page.waitForURL(/over=time$/);
      assert.match(await page.locator("#chart svg").first().textContent(), /time \(UTC\)/);
      await page.click("text=last tenth");
      await page.waitForURL(/over=time&from=[\d.]+$/);
      await page.click("text=by number");
      // A place on one axis is none on another.
      await page.waitForURL((url) => !url.search.includes("from"));
    }, { javaScriptEnabled: false }));

  test("can be looked at more closely by dragging over the chart", () =>
    on("/runs/main/networks", "networks-zoomed", async (page) => {
      const points = page.locator("#chart .wide-screen .point");
      const all = await points.count();
      const box = await page.locator("#chart .wide-screen svg").boundingBox();
      // From left of network 1 to right of network 2.
      const drag = async (from, to) => {
        await page.mouse.move(box.x + from * box.width, box.y + 40);
        await page.mouse.down();
        await page.mouse.move(box.x + to * box.width, box.y + 60, { steps: 4 });
        await page.mouse.up();
      };
      await drag(0.3, 0.8);
      await page.waitForURL(/from=.*to=/);
      assert.ok((await points.count()) < all);
      assert.ok((await points.count()) >= 1);
      await page.locator("#chart .wide-screen svg").dblclick({ position: { x: 300, y: 20 } });
      await page.waitForURL((url) => !url.search.includes("from"));
      assert.equal(await points.count(), all);
    }));

  test("have a page each, with the file as it was submitted", () =>
    on("/runs/main/networks/1", "network", async (page) => {
      const hash = (await text(page, ".hash")).trim();
      const link = await page.locator("a.button[download]").getAttribute("href");
      const file = await (await fetch(site.showcase.url + link)).arrayBuffer();
      const digest = await webcrypto.subtle.digest("SHA-256", file);
      assert.equal(Buffer.from(digest).toString("hex"), hash);
      assert.match(await text(page, "main"), /mateIn1/);
      assert.match(await text(page, "main"), /Gate match against #0 promoted/);
    }));

  test("open by their numbers, which a field takes", () =>
    on("/runs/main/networks", "networks-find", async (page) => {
      await page.fill("#number", "9999");
      await page.press("#number", "Enter");
      await page.locator("#find", { hasText: "no network “9999”" }).waitFor();
      await page.fill("#number", "#2");
      await page.click("#find button");
      await page.waitForURL(/\/networks\/2$/);
    }, { javaScriptEnabled: false }));

  test("that do not exist are not found", async () => {
    const view = await site.open();
    const answer = await view.visit("/runs/main/networks/99");
    assert.equal(answer.status(), 404);
    assert.match(await text(view.page, "main"), /Page not found/);
    await view.shot("not-found");
    await view.close();
  });
});

describe("matches", () => {
  test("are listed with their verdicts", () =>
    on("/runs/main/matches", "matches", async (page) => {
      const verdicts = await page.locator("tbody .badge").allInnerTexts();
      assert.deepEqual(verdicts, ["open", "rejected", "promoted"]);
    }));

  test("are chosen by verdict, and sorted", () =>
    on("/runs/main/matches", "matches-chosen", async (page) => {
      await page.click("th >> text=Games");
      await page.waitForURL(/sort=games$/);
      assert.equal(await page.getAttribute("th[aria-sort]", "aria-sort"), "descending");
      assert.equal(await text(page, "th[aria-sort]"), "Games");
      assert.equal(await page.locator("tbody tr").count(), 3);
      await page.click(".choice >> text=promoted");
      await page.waitForURL(/show=promoted&sort=games$/);
      assert.deepEqual(await page.locator("tbody .badge").allInnerTexts(), ["promoted"]);
      await page.click(".choice >> text=for ratings");
      await page.locator("#list", { hasText: "There is no such match" }).waitFor();
    }, { javaScriptEnabled: false }));

  test("are those of a network, which a field takes", () =>
    on("/runs/main/matches?show=gates", "matches-of-network", async (page) => {
      await page.fill("#network", "#3");
      await page.press("#network", "Enter");
      await page.waitForURL(/show=gates&network=%233$/);
      assert.equal(await page.locator("tbody tr").count(), 1);
      await page.click("text=any network");
      await page.waitForURL((url) => !url.search.includes("network"));
      assert.equal(await page.locator("tbody tr").count(), 3);
    }, { javaScriptEnabled: false }));

  test("show result, pairs, test and games", () =>
    on("/matches/1", "match", async (page) => {
      assert.match(await text(page, "#result"), /won.*drawn.*lost/s);
      assert.match(await text(page, "#result"), /logistic Elo, 95 % interval/);
      assert.match(await text(page, "#result"), /Decided: /);
      assert.equal(await page.locator(".pairs rect").count(), 5);
      assert.ok((await page.locator("#games tbody tr").count()) >= 8);
    }));
});

describe("the game viewer", () => {
  const pieces = (page) =>
    page.locator("#board .pieces use").evaluateAll((all) =>
      all.map((use) => ["href", "x", "y"].map((name) => use.getAttribute(name)).join(" ")));
  let game;

  before(async () => {
    const games = await (await fetch(`${site.showcase.url}/api/v1/games?match=1`)).json();
    game = games[0];
  });

  test("steps forward and back with keys, buttons and links", () =>
    on(`/games/${game.id}?ply=0`, "game-start", async (page) => {
      const start = await pieces(page);
      assert.equal(start.length, 32);
      await page.keyboard.press("ArrowRight");
      const one = await pieces(page);
      assert.notDeepEqual(one, start);
      await page.waitForURL(/ply=1&/);
      assert.equal(await page.locator("#moves [aria-current]").count(), 1);
      await page.click("#next");
      await page.click("#back");
      assert.deepEqual(await pieces(page), one);
      await page.keyboard.press("Home");
      assert.deepEqual(await pieces(page), start);
      await page.locator('#moves [data-ply="7"]').click();
      await page.waitForURL(/ply=7&/);
    }));

  test("shows the search, its favourite moves and the board from both sides", () =>
    on(`/games/${game.id}?ply=24`, "game", async (page) => {
      assert.match(await text(page, "#search"), /value for White/);
      const shares = await page.locator("#search .top td:nth-child(2)").allInnerTexts();
      assert.ok(shares.length >= 1 && shares.every((share) => /\d %$/.test(share)), shares.join());
      assert.ok((await page.locator("#board .arrow").count()) >= 1);
      const before = await pieces(page);
      await page.keyboard.press("f");
      const turned = await pieces(page);
      assert.notDeepEqual(turned, before);
      await page.keyboard.press("f");
      assert.deepEqual(await pieces(page), before);
    }));

  test("shows the same without JavaScript", async () => {
    let scripted;
    await on(`/games/${game.id}?ply=9`, "game-js", async (page) => { scripted = await pieces(page); });
    await on(`/games/${game.id}?ply=9`, "game-without-js", async (page) => {
      assert.deepEqual((await pieces(page)).sort(), scripted.sort());
      await page.click("#next");
      await page.waitForURL(/ply=10/);
      assert.notDeepEqual((await pieces(page)).sort(), scripted.sort());
    }, { javaScriptEnabled: false });
  });

  test("names each position for those who do not see it, as the server does", () =>
    on(`/games/${game.id}?ply=0`, "game-named", async (page) => {
      const label = () => page.locator("#board").getAttribute("aria-label");
      const start = await label();
      assert.match(start, /^White: rook a1, .* 8 pawns\. Black: .* White to move\.$/);
      for (let ply = 0; ply < 9; ply++) await page.keyboard.press("ArrowRight");
      const reached = await label();
      assert.notEqual(reached, start);
      const html = await (await fetch(`${site.showcase.url}/games/${game.id}?ply=9`)).text();
      assert.ok(html.includes(`aria-label="${reached}"`), reached);
    }));

  test("steps on where the browser refuses to write the address, and writes it later", () =>
    on(`/games/${game.id}?ply=0`, "game-held", async (page) => {
      await page.evaluate(() => {
        history.replaceState = () => {
          delete history.replaceState;
          throw new DOMException("too often", "SecurityError");
        };
      });
      await page.keyboard.press("ArrowRight");
      assert.equal(await page.locator('#moves [aria-current][data-ply="1"]').count(), 1);
      await page.waitForURL(/ply=1&/);
    }));

  test("shows a puzzle from its solver's side", async () => {
    const games = await (await fetch(`${site.showcase.url}/api/v1/games?kind=puzzles`)).json();
    for (const { id } of games.slice(0, 4)) {
      const game = await (await fetch(`${site.showcase.url}/api/v1/games/${id}`)).json();
      // Lichess's first move is the opponent's: the solver is then who does not move in the FEN.
      const white = / w /.test(game.fen) === (game.opening.length === 0);
      await on(`/games/${id}`, "game-puzzle", async (page) => {
        const below = await page.locator("#viewer").getAttribute("data-below");
        assert.equal(below, white ? "white" : "black", game.fen);
        assert.match(await text(page, "main"), /from puzzle/);
        await page.click("#solution summary");
        assert.match(await text(page, "#solution p"), /^\d+(\.|…) .*#?/);
      });
    }
  });

  test("offers the game as PGN", async () => {
    const answer = await fetch(`${site.showcase.url}/api/v1/games/${game.id}/pgn`);
    const pgn = await answer.text();
    assert.match(pgn, /\[Result "(1-0|0-1|1\/2-1\/2)"\]/);
    assert.ok(pgn.includes(`[Site "${site.showcase.url}/games/${game.id}"]`), pgn);
    assert.match(pgn, /\n1\. /);
  });

  test("fits a telephone", () =>
    on(`/games/${game.id}?ply=24`, "game-phone", async (page) => {
      assert.equal(await overflows(page), false);
    }, { viewport: { width: 390, height: 800 } }));

  test("is readable in the dark", () =>
    on(`/games/${game.id}?ply=24`, "game-dark", async () => {}, { colorScheme: "dark" }));
});

describe("the answers' headers", () => {
  test("allow nothing from elsewhere and no script in a page", async () => {
    const { headers } = await fetch(`${site.showcase.url}/`);
    const policy = headers.get("content-security-policy");
    assert.match(policy, /default-src 'none'/);
    assert.doesNotMatch(policy, /unsafe|\*|https?:/);
    assert.equal(headers.get("x-content-type-options"), "nosniff");
  });

  test("let browsers keep scripts and styles for ever", async () => {
    const html = await (await fetch(`${site.showcase.url}/`)).text();
    const assets = [...html.matchAll(/(?:src|href)="(\/assets\/[^"]+)"/g)].map((found) => found[1]);
    assert.equal(assets.length, 9);
    for (const asset of assets) {
      const { status, headers } = await fetch(site.showcase.url + asset);
      assert.equal(status, 200, asset);
      assert.match(headers.get("cache-control"), /immutable/);
    }
  });
});

describe("addresses that lead nowhere", () => {
  test("say what may stand after the question mark", async () => {
    for (const path of ["/games/1?ply=-1", "/runs/main/games?kind=chess"]) {
      const answer = await fetch(site.showcase.url + path);
      assert.equal(answer.status, 400);
      assert.match(await answer.text(), /<h1>Bad request<\/h1>/);
    }
  });

  for (const path of ["/runs/NO", "/runs/other", "/runs/main/networks/x", "/matches/999",
    "/games/999999", "/games/x"]) {
    test(`${path} is a page that says so`, async () => {
      const answer = await fetch(site.showcase.url + path);
      assert.equal(answer.status, 404);
      assert.match(await answer.text(), /<h1>Page not found<\/h1>/);
    });
  }
});

describe("joining", () => {
  test("shows the whole command on a telephone", () =>
    on("/runs/main/join", "join-command-phone", async (page) => {
      const [shown, whole] = await page.locator("#start code")
        .evaluate((command) => [command.clientWidth, command.scrollWidth]);
      assert.equal(shown, whole);
      // Lines break between words: none is taller than the shortest.
      const words = await page.locator("#start code span")
        .evaluateAll((spans) => spans.map((span) => [span.textContent, span.getClientRects()[0].height]));
      const line = Math.min(...words.map(([, height]) => height));
      const flags = words.filter(([word]) => word.startsWith("--"));
      assert.equal(flags.length, 3);
      assert.ok(flags.every(([, height]) => height === line), JSON.stringify(words));
    }, { viewport: { width: 390, height: 800 } }));

  test("takes one command, with the address of this coordinator", () =>
    on("/runs/main/join", "join", async (page) => {
      assert.equal(await text(page, "#start code"),
        `rookery-worker run --server ${site.showcase.url} --run main --name YOUR-NAME`);
      assert.match(await text(page, "nav [aria-current]"), /Join/);
      assert.match(await text(page, "#expect"), /Ctrl-C/);
    }));

  test("copies the command", () =>
    on("/runs/main/join", "join-copied", async (page) => {
      const copy = page.locator("#start .copy");
      await copy.click();
      await page.waitForFunction(() => document.querySelector("#start .copy").textContent === "Copied");
      await page.context().grantPermissions(["clipboard-read"]);
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      assert.equal(copied, await text(page, "#start code"));
    }));

  test("is linked from the list of runs, to which every page leads", () =>
    on("/", "runs-to-join", async (page) => {
      await page.click("text=all runs");
      await page.locator("h1", { hasText: /^Runs$/ }).waitFor();
      await page.click("#runs .button:text('Join')");
      await page.waitForURL(/\/runs\/main\/join$/);
    }));
});

describe("the other pages", () => {
  test("contributors are listed with what they gave", () =>
    on("/runs/main/contributors", "contributors", async (page) => {
      const names = await page.locator("tbody td:nth-child(2)").allInnerTexts();
      assert.deepEqual(names.sort(), ["ada", "bronstein", "shannon"]);
    }));

  test("contributors are listed by what they gave lately", () =>
    on("/runs/main/contributors", "contributors-lately", async (page) => {
      await page.click("text=7 days");
      await page.waitForURL(/span=7d$/);
      assert.equal(await text(page, ".choice [aria-current]"), "7 days");
      assert.match(await text(page, "#list"), /in the last 7 days, in .* by 3 contributors/);
      assert.equal(await page.locator("#list tbody tr").count(), 3);
    }, { javaScriptEnabled: false }));

  test("a contributor has a page with credit, games and workers", () =>
    on("/runs/main/contributors", "contributor", async (page) => {
      await page.click("#list >> text=ada");
      await page.waitForURL(/\/contributors\/ada$/);
      assert.equal(await text(page, "h1"), "ada");
      assert.deepEqual(await page.locator("#credit h2").allInnerTexts(),
        ["24 hours", "7 days", "30 days", "all time"]);
      assert.equal(await page.locator("#latest tbody tr").count(), 10);
      assert.equal(await page.locator("#workers tbody tr").count(), 1);
      await page.click("text=all games");
      await page.waitForURL(/contributor=ada$/);
    }, { javaScriptEnabled: false }));

  test("training shows the losses", () =>
    on("/runs/main/training", "training", async (page) => {
      const names = await page.locator("#charts h2").allInnerTexts();
      assert.match(names.join(), /Policy loss/);
      assert.equal(await page.locator("#charts .chart").count(), 4);
    }));

  test("training is drawn over time, and in part", () =>
    on("/runs/main/training", "training-over-time", async (page) => {
      await page.click(".choice >> text=by time");
      await page.waitForURL(/over=time$/);
      assert.match(await page.locator("#charts svg").first().textContent(), /time \(UTC\)/);
      await page.click(".choice >> text=last tenth");
      await page.waitForURL(/over=time&from=[\d.]+$/);
      await page.click(".choice >> text=by step");
      await page.waitForURL((url) => url.search === "");
    }, { javaScriptEnabled: false }));

  test("training has all parameters of the run, folded", () =>
    on("/runs/main/training", "training-parameters", async (page) => {
      assert.equal(await page.locator("#parameters pre").isVisible(), false);
      await page.click("#parameters summary");
      assert.match(await text(page, "#parameters pre"), /^\[training\.window\]$/m);
    }));

  test("puzzles show sets and scores", () =>
    on("/runs/main/puzzles", "puzzles", async (page) => {
      assert.match(await text(page, "main"), /puzzles\.csv/);
      assert.match(await text(page, "#list thead"), /mateIn1/);
      const cell = (place) => page.locator(`#list tbody tr:first-child td:nth-child(${place})`);
      assert.match(await cell(3).innerText(), /%/);
      assert.equal(await cell(4).locator(".bar").count(), 1, "the bar stands beside its share");
    }));

  test("games can be chosen by what they were played for", () =>
    on("/runs/main/games?kind=puzzles", "games", async (page) => {
      assert.ok((await page.locator("tbody tr").count()) >= 8);
      const kinds = await page.locator("tbody td:nth-child(2)").allInnerTexts();
      assert.ok(kinds.every((kind) => /puzzle (solved|missed)/.test(kind)), kinds.join());
    }));

  test("games are sorted by their length with the keyboard", () =>
    on("/runs/main/games?kind=self-play", "games-sorted", async (page) => {
      const plies = async () => {
        const cells = await page.locator("tbody td:nth-child(7)").allInnerTexts();
        return cells.map(Number);
      };
      const order = () => page.getAttribute("th[aria-sort]", "aria-sort");
      for (const [direction, sign] of [["descending", -1], ["ascending", 1]]) {
        await page.focus("th >> text=Plies");
        await page.keyboard.press("Enter");
        await page.waitForURL(direction === "descending" ? /sort=longest$/ : /sort=shortest$/);
        assert.equal(await order(), direction);
        const listed = await plies();
        assert.deepEqual(listed, [...listed].sort((a, b) => sign * (a - b)));
      }
    }, { javaScriptEnabled: false }));

  test("games can be chosen by their length and end", () =>
    on("/runs/main/games", "games-narrowed", async (page) => {
      await page.click("text=Length and end");
      await page.click("text=up to 40 plies");
      await page.waitForURL(/max_plies=40$/);
      const plies = (await page.locator("tbody td:nth-child(7)").allInnerTexts()).map(Number);
      assert.ok(plies.length >= 1 && plies.every((plies) => plies <= 40), plies.join());
      await page.locator(".choice a", { hasText: "checkmate" }).click();
      await page.waitForURL(/checkmate/);
      const ends = await page.locator("tbody td:nth-child(6)").allInnerTexts();
      assert.ok(ends.length >= 1 && ends.every((end) => end === "checkmate"), ends.join());
      assert.equal(await page.locator("details.folded").getAttribute("open"), "");
    }));

  test("games can be chosen by network and contributor", () =>
    on("/runs/main/games?kind=self-play", "games-by-words", async (page) => {
      const cell = (place) => page.locator(`tbody tr:first-child td:nth-child(${place})`).innerText();
      const [network, contributor] = [await cell(3), await cell(9)];
      await page.fill("#network", network);
      await page.fill("#contributor", contributor);
      await page.press("#contributor", "Enter");
      await page.waitForURL(({ searchParams: chosen }) => chosen.get("contributor") === contributor && chosen.get("kind") === "self-play");
      const names = await page.locator("tbody td:nth-child(9)").allInnerTexts();
      assert.ok(names.length >= 1 && names.every((name) => name === contributor), names.join());
      await page.fill("#contributor", contributor.slice(0, -1));
      await page.click("#by-words button");
      await page.click("text=Names that contain it");
      await page.waitForURL(/\/contributors\?/);
      assert.deepEqual(await page.locator("#list tbody td:nth-child(2)").allInnerTexts(), [contributor]);
    }, { javaScriptEnabled: false }));

  test("contributors are found by a part of their names", () =>
    on("/runs/main/contributors?span=7d", "contributors-by-name", async (page) => {
      await page.fill("#name", "BRON");
      await page.click("#by-name button");
      await page.waitForURL(/span=7d&name=BRON$/);
      assert.deepEqual(await page.locator("#list tbody td:nth-child(2)").allInnerTexts(), ["bronstein"]);
      await page.click("text=any name");
      await page.waitForURL((url) => !url.search.includes("name"));
      assert.equal(await page.locator("#list tbody tr").count(), 3);
    }, { javaScriptEnabled: false }));

  test("the API's calls are a page, to which the foot of every page leads", () =>
    on("/", "api", async (page) => {
      await page.click("footer >> text=API");
      await page.waitForURL(/\/api$/);
      assert.equal(await text(page, "h1"), "API");
      await page.click(".choice >> text=Jobs");
      assert.match(await text(page, "#jobs"), /POST \/api\/v1\/jobs\s+contribute\s+Leases a job/);
      await page.click("#matches details summary >> nth=0");
      assert.match(await text(page, "#matches details dl >> nth=0"), /run/);
    }));

  for (const colorScheme of ["light", "dark"]) {
    test(`the API's calls fit a telephone, ${colorScheme}`, () =>
      on("/api", `api-phone-${colorScheme}`, async (page) => {
        assert.equal(await overflows(page), false);
      }, { viewport: { width: 390, height: 800 }, colorScheme }));
  }

  test("games can be chosen by their opening", () =>
    on("/runs/main/games?kind=self-play", "games-opening", async (page) => {
      const opening = page.locator("tbody td:nth-child(8) a").first();
      const name = await opening.innerText();
      await page.fill("#opening", name.toLowerCase());
      await page.click("#by-words button");
      await page.waitForURL(({ searchParams: chosen }) => chosen.get("opening") === name.toLowerCase() && chosen.get("kind") === "self-play");
      assert.equal(await page.inputValue("#opening"), name);
      const names = await page.locator("tbody td:nth-child(8) a").allInnerTexts();
      assert.ok(names.length >= 1 && names.every((one) => one === name), names.join());
      assert.equal(await page.locator("tbody tr").count(), names.length);
      const game = page.locator("tbody td:first-child a").first();
      await game.click();
      await page.locator(".lead", { hasText: `Opening: ${name}` }).waitFor();
      await page.goBack();
      await page.fill("#opening", "no such");
      await page.press("#opening", "Enter");
      await page.locator(".empty", { hasText: "No opening is called “no such”" }).waitFor();
      await page.click("text=any opening");
      await page.waitForURL((url) => url.search === "?kind=self-play");
    }));

  for (const path of ["networks", "matches", "games", "training", "puzzles", "contributors",
    "contributors?span=7d", "contributors/ada", "join", "dataset"]) {
    test(`${path} fit a telephone`, () =>
      on(`/runs/main/${path}`, `${path.replace(/\W/g, "-")}-phone`, async (page) => {
        assert.equal(await overflows(page), false);
      }, { viewport: { width: 390, height: 800 } }));
  }
});

describe("charts on a telephone", () => {
  test("of few networks fit and show all of them", () =>
    on("/runs/main/networks", "chart-phone", async (page) => {
      const [shown, whole] = await page.locator("#chart .plot:visible")
        .evaluate((plot) => [plot.clientWidth, plot.scrollWidth]);
      assert.equal(shown, whole);
      assert.ok((await page.locator("#chart .point:visible").count()) >= 3);
    }, { viewport: { width: 390, height: 800 } }));
});

describe("wide tables on a telephone", () => {
  const telephone = { viewport: { width: 390, height: 800 } };

  test("can be scrolled with the keyboard", () =>
    on("/runs/main/games", "games-scrolled", async (page) => {
      const table = page.getByRole("region", { name: "Games" });
      await table.focus();
      await page.keyboard.press("ArrowRight");
      await page.waitForFunction(() => document.querySelector(".scroll").scrollLeft > 0);
    }, telephone));

  test("show the beginning of long names, and all of them in wide windows", async () => {
    const cut = (page) => page.locator("td.name").first().evaluate((cell) => {
      cell.firstChild.textContent = "n".repeat(32);
      return cell.scrollWidth > cell.clientWidth;
    });
    await on("/runs/main/contributors", "names-phone", async (page) =>
      assert.equal(await cut(page), true), telephone);
    await on("/runs/main/contributors", "names", async (page) =>
      assert.equal(await cut(page), false));
  });
});

describe("trust", () => {
  const look = async (page, token) => {
    await page.fill("#token", token);
    await page.click("#look");
  };
  const row = (page, name) => page.locator("#everybody tbody tr").filter({
    has: page.locator("td:first-child", { hasText: name }) });

  test("is linked from the contributors and says what it needs without JavaScript", () =>
    on("/runs/main/contributors", "trust-without-js", async (page) => {
      await page.click("text=Do your games count?");
      assert.match(await text(page, "#ask"), /needs JavaScript/);
      assert.equal(await page.locator("#token").isVisible(), false);
    }, { javaScriptEnabled: false }));

  test("tells a contributor that all is well", () =>
    on("/trust", "trust-well", async (page) => {
      await look(page, site.showcase.tokens.ada);
      await page.locator("#own dl").waitFor();
      assert.match(await text(page, "#own"), /ada\s+on probation/);
      assert.match(await text(page, "#own"), /All your games count/);
      assert.match(await text(page, "#own"), /Positions searched again\s+\d/);
      assert.equal(await page.locator("#everybody").innerText(), "", "others are not told of");
    }));

  test("lets an operator hold and clear, and the contributor read why", async () => {
    const reason = "<b>laptop</b> & overclocked";
    await on("/trust", "trust-operator", async (page) => {
      await look(page, site.showcase.tokens.operator);
      const bronstein = row(page, "bronstein");
      await bronstein.waitFor();
      assert.equal(await page.locator("#everybody tbody tr").count(), 3);
      assert.match(await text(page, "#everybody"), /Not returned/);
      const aligned = (cells) => cells.map((cell) => getComputedStyle(cell).textAlign);
      assert.deepEqual(await page.locator("#everybody th").evaluateAll(aligned),
        await page.locator("#everybody tbody tr:first-child > td").evaluateAll(aligned));
      await bronstein.locator("input").fill(reason);
      await bronstein.locator("button").click();
      await bronstein.locator(".badge.rejected").waitFor();
      assert.match(await bronstein.innerText(), /in quarantine/);
      assert.ok((await bronstein.innerText()).includes(reason), "what operators write is text");
      await bronstein.locator("button", { hasText: "Clear" }).waitFor();
    });
    await on("/trust", "trust-held", async (page) => {
      await look(page, site.showcase.tokens.bronstein);
      await page.locator("#own table").waitFor();
      assert.match(await text(page, "#own"), /Quarantined by operator/);
      assert.ok((await text(page, "#own")).includes(reason));
      assert.match(await text(page, "#own"), /write to the operator/);
      assert.ok((await page.locator("#own tbody tr").count()) >= 3);
    });
    for (const colorScheme of ["light", "dark"]) {
      await on("/trust", `trust-phone-${colorScheme}`, async (page) => {
        await look(page, site.showcase.tokens.bronstein);
        await page.locator("#own table").waitFor();
        assert.equal(await overflows(page), false);
      }, { viewport: { width: 390, height: 800 }, colorScheme });
    }
    await on("/trust", "trust-cleared", async (page) => {
      await look(page, site.showcase.tokens.operator);
      const bronstein = row(page, "bronstein");
      await bronstein.locator("input").fill("looked at by hand");
      await bronstein.locator("button").click();
      await bronstein.locator(".badge.candidate").waitFor();
      assert.doesNotMatch(await bronstein.innerText(), /laptop/);
    });
  });

  test("finds a contributor by name for an operator", async () => {
    const view = await site.open();
    await view.visit("/trust");
    await look(view.page, site.showcase.tokens.operator);
    await view.page.fill("#name", "Shannon");
    await view.page.press("#name", "Enter");
    const found = view.page.locator("#everybody h2", { hasText: "shannon" });
    await found.waitFor();
    assert.match(await text(view.page, "#everybody .card"), /Positions searched again/);
    await view.shot("trust-found");
    assert.deepEqual(view.complaints, []);
    await view.page.fill("#name", "nobody");
    await view.page.press("#name", "Enter");
    await view.page.locator("#problem:not([hidden])").waitFor();
    assert.equal(await found.count(), 0);
    await view.close();
  });

  test("says what is no token, and sends nothing", async () => {
    const view = await site.open();
    await view.visit("/trust");
    await look(view.page, "my password");
    await view.page.locator("#problem:not([hidden])").waitFor();
    assert.match(await text(view.page, "#problem"), /not a token/);
    assert.deepEqual(view.complaints, []);
    await view.close();
  });

  test("says when a token is not known", async () => {
    const view = await site.open();
    await view.visit("/trust");
    await look(view.page, `rk_${"0".repeat(64)}`);
    await view.page.locator("#problem:not([hidden])").waitFor();
    assert.match(await text(view.page, "#problem"), /does not know this token/);
    await view.shot("trust-refused");
    await view.close();
  });
});

describe("the operator log", () => {
  const entry = (id) =>
    ({ id, at: "2026-01-02T03:04:05Z", actor: "operator", action: "change-run", subject: "main", detail: `act ${id}` });

  test("shows the answer to the last question only", () =>
    on("/operator-log", "operator-log-asked", async (page) => {
      const held = [];
      await page.route("**/api/v1/operator-log?*", (route) => {
        const before = new URL(route.request().url()).searchParams.get("before");
        const answer = { entries: [entry(before === null ? 9 : before - 1)], next: before === null ? 9 : before - 1 };
        if (before === null) return route.fulfill({ json: answer });
        return held.push(() => route.fulfill({ json: answer }));
      });
      const acts = () => page.locator("#log tbody td:last-child").allInnerTexts();
      await page.fill("#token", "rk_");
      await page.click("#asking button");
      await page.locator("#older:not([hidden])").waitFor();
      await page.locator("#older").dblclick();
      while (held.length < 2) await page.evaluate(() => {});
      for (const answer of held) await answer();
      await page.locator("#log tbody tr").nth(1).waitFor();
      assert.deepEqual(await acts(), ["act 9", "act 8"]);
      await page.locator("#older").click();
      while (held.length < 3) await page.evaluate(() => {});
      await page.click("#asking button");
      await page.locator("#log tbody tr").nth(1).waitFor({ state: "detached" });
      await held[2]();
      await page.locator("#older").click();
      while (held.length < 4) await page.evaluate(() => {});
      await held[3]();
      await page.locator("#log tbody tr").nth(1).waitFor();
      assert.deepEqual(await acts(), ["act 9", "act 8"]);
    }));
});

describe("colours without light-dark()", () => {
  test("are the light ones", async () => {
    const view = await site.open({ colorScheme: "dark" });
    await view.page.route("**/style.css", async (route) => {
      const response = await route.fetch();
      // A browser that does not know it takes it for nothing.
      await route.fulfill({ response, body: (await response.text()).replaceAll("light-dark(", "unknown(") });
    });
    await view.visit("/");
    const color = (selector, property) =>
      view.page.locator(selector).first().evaluate((part, name) => getComputedStyle(part)[name], property);
    assert.equal(await color("body", "backgroundColor"), "rgb(246, 245, 241)");
    assert.equal(await color(".board .light", "fill"), "rgb(236, 223, 196)");
    await view.shot("colours-plain");
    await view.close();
  });
});

describe("before anything has happened", () => {
  test("pages say what to do next", async () => {
    const fresh = await Showcase.start("--fresh");
    const view = await open(site.browser, fresh.url);
    await view.visit("/");
    assert.match(await text(view.page, "#gate"), /rookery-trainer run/);
    assert.ok((await text(view.page, "#latest")).includes(
      `rookery-worker run --server ${fresh.url} --run main`));
    const described = await text(view.page, ".what");
    assert.equal(described, "<script>alert(1)</script> & <b>more</b>", "texts are escaped");
    await view.shot("fresh-overview");
    for (const page of ["networks", "matches", "games", "training", "puzzles", "contributors"]) {
      const answer = await view.visit(`/runs/main/${page}`);
      assert.equal(answer.status(), 200, page);
      assert.ok((await view.page.locator(".empty").count()) >= 1, page);
      await view.shot(`fresh-${page}`);
    }
    assert.deepEqual(view.complaints, []);
    await view.close();
    await fresh.stop();
  });

  test("a coordinator without runs says how to make one", async () => {
    const empty = await Showcase.start("--empty");
    const view = await open(site.browser, empty.url);
    await view.visit("/");
    assert.match(await text(view.page, "main"), /rookery-coordinator run create/);
    await view.shot("empty");
    assert.deepEqual(view.complaints, []);
    await view.close();
    await empty.stop();
  });
});

describe("accessibility", () => {
  const pages = [
    "/", "/runs", "/api", "/trust", "/operator-log", "/matches/1", "/games/1",
    ...["story", "networks", "networks/1", "matches", "games", "play", "training", "puzzles", "contributors",
      "contributors/ada", "join", "dataset"].map((page) => `/runs/main/${page}`),
  ];
  for (const colorScheme of ["light", "dark"]) {
    for (const path of pages) {
      test(`axe finds nothing serious on ${path}, ${colorScheme}`, () =>
        on(path, `axe${path.replaceAll("/", "-")}-${colorScheme}`, async (page) => {
          assert.deepEqual(await seriousFaults(page), []);
          assert.deepEqual(await faintTexts(page), []);
        }, { colorScheme }));
    }
  }
});

describe("the story of a run", () => {
describe("datasets", () => {
  const sha256 = (file) => createHash("sha256").update(file).digest("hex");

  test("are shown as they were published: when, under which licence, with the size and checksum of each file", () =>
    on("/runs/main/dataset", "dataset", async (page) => {
      const { dataset } = site.showcase;
      const manifest = JSON.parse(readFileSync(join(dataset, "manifest.json")));
      assert.match(await text(page, "main"), /Published every Sunday\./);
      const card = page.locator(".dataset");
      assert.equal(await card.locator("h2").innerText(), basename(dataset));
      assert.equal(await card.locator("time").getAttribute("datetime"), manifest.made_at);
      const said = (await card.innerText()).replaceAll("\u202f", "");
      assert.match(said, /CC0-1\.0/);
      assert.match(said, new RegExp(`[\\d.]+ [kM]B, ${manifest.games} games?, `));
      const rows = await card.locator("tbody tr").all();
      assert.ok(rows.length >= 2, "positions and games");
      assert.equal(rows.length, manifest.files.length);
      for (const row of rows) {
        const link = row.locator("a");
        const name = await link.innerText();
        assert.equal(await row.locator("code").innerText(), sha256(readFileSync(join(dataset, name))));
        assert.match(await row.locator(".n").innerText(), /^[\d.]+ ([kM]B|bytes)$/);
        assert.equal(await link.getAttribute("href"), `https://data.example.org/${basename(dataset)}/${name}`);
      }
      assert.deepEqual(readdirSync(dataset).toSorted(),
        [...manifest.files.map(({ name }) => name), "manifest.json"].toSorted());
    }));

  for (const colorScheme of ["light", "dark"]) {
    test(`fit into a narrow window, ${colorScheme}`, () =>
      on("/runs/main/dataset", `dataset-narrow-${colorScheme}`, async (page) => {
        assert.equal(await overflows(page), false);
        assert.deepEqual(await seriousFaults(page), []);
        // Checksums are wider than the window.
        const files = page.locator(".dataset .scroll");
        assert.ok(await files.evaluate((part) => part.scrollWidth > part.clientWidth));
      }, { viewport: { width: 390, height: 800 }, colorScheme }));
  }
});

  test("tells its promotions, and games worth a look", () =>
    on("/runs/main/story", "story", async (page) => {
      assert.match(await text(page, ".lead"), /The run began/);
      assert.equal(await page.locator('[aria-label="Promotions"] tbody tr').count(), 2);
      assert.ok((await page.locator("#strength .chart").count()) >= 1);
    }));

  test("shows the game of the day on the overview", () =>
    on("/", "overview-featured", async (page) => {
      assert.match(await text(page, "#featured"), /Network #1 beats #\d/);
      await page.click("#featured p a");
      await page.locator("h1", { hasText: "Game #" }).waitFor();
    }));

  test("has a picture of its own for previews of links", () =>
    on("/runs/main/story", "story-preview", async (page) => {
      const property = (name) => page.locator(`meta[property="og:${name}"]`).getAttribute("content");
      const picture = await property("image");
      assert.equal(picture, `${site.showcase.url}/runs/main/picture.png?best=1`);
      assert.deepEqual([await property("image:width"), await property("image:height")], ["1200", "630"]);
      const size = await page.evaluate(async (src) => {
        const image = Object.assign(new Image(), { src });
        await image.decode();
        return [image.naturalWidth, image.naturalHeight];
      }, picture);
      assert.deepEqual(size, [1200, 630]);
    }));
});

describe("colours", () => {
  const background = (page) => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const [LIGHT, DARK] = ["rgb(246, 245, 241)", "rgb(21, 24, 26)"];

  test("are those that the visitor chooses, on every page, until he chooses again", () =>
    on("/", "colours", async (page) => {
      assert.equal(await background(page), LIGHT);
      const choice = page.getByLabel("Colours");
      await choice.selectOption("dark");
      assert.equal(await background(page), DARK);
      await page.goto(`${site.showcase.url}/runs/main/games`);
      assert.equal(await background(page), DARK);
      assert.equal(await choice.inputValue(), "dark");
      await choice.selectOption("auto");
      assert.equal(await background(page), LIGHT);
      await page.emulateMedia({ colorScheme: "dark" });
      assert.equal(await background(page), DARK, "as the system");
      await choice.selectOption("light");
      assert.equal(await background(page), LIGHT);
    }));

  test("are the system's without JavaScript", () =>
    on("/", "colours-without-js", async (page) => {
      assert.equal(await background(page), DARK);
      assert.equal(await page.getByLabel("Colours").isVisible(), false);
    }, { javaScriptEnabled: false, colorScheme: "dark" }));
});

describe("notifications", () => {
  const promoted = (page) => page.evaluate(() => {
    const detail = { run: "main", number: 7 };
    document.dispatchEvent(new CustomEvent("rookery-promotion", { detail }));
    return globalThis.notes;
  });

  test("tell of a new best network those who asked for it", () =>
    on("/", "notifications", async (page) => {
      await page.evaluate(() => {
        globalThis.notes = [];
        const Told = class extends EventTarget {
          constructor(title) {
            super();
            globalThis.notes.push(title);
          }
          static permission = "default";
          static async requestPermission() {
            return (Told.permission = "granted");
          }
        };
        globalThis.Notification = Told;
      });
      assert.deepEqual(await promoted(page), []);
      const button = page.locator("#notify");
      await button.click();
      await page.locator('#notify[data-on="true"]').waitFor();
      assert.match(await text(page, "#notify-said"), /while this page is open/);
      assert.deepEqual(await promoted(page), ["Network #7 is the best now"]);
      await button.click();
      await page.locator('#notify[data-on="false"]').waitFor();
      assert.equal((await promoted(page)).length, 1);
    }));
});

describe("live boards", () => {
  test("move as a worker's heartbeats say", () =>
    on("/", "live-boards", async (page) => {
      await page.locator("#live:not([hidden])").waitFor();
      const call = (method, path, body) => fetch(`${site.showcase.url}/api/v1${path}`, {
        method, body: body && JSON.stringify(body),
        headers: { authorization: `Bearer ${site.showcase.tokens.ada}`, "content-type": "application/json" },
      });
      const asked = { protocol: 2, version: "0.1.0", worker: "shared", backend: "cpu-f32", solver: true };
      const job = await (await call("POST", "/jobs", asked)).json();
      const board = {
        game: 0, fen: "rnbqkbnr/pppppppp/8/8/8/8/PPPPPPPP/RNBQKBNR w KQkq - 0 1", moves: "e2e4 e7e5", value: 40,
      };
      const answer = await call("POST", `/jobs/${job.id}/heartbeat`, { board });
      assert.equal(answer.status, 200);
      const shown = page.locator(`[data-job="${job.id}"]`);
      await shown.waitFor();
      // e5 is at the fifth file and fourth row of the drawing.
      await shown.locator('use.black[href="#pawn"][x="180"][y="135"]').waitFor();
      assert.match(await shown.innerText(), /against #\d+, ada/);
      assert.equal(await shown.locator(".expects").getAttribute("height"), "70");
      await call("DELETE", `/jobs/${job.id}`);
      await shown.waitFor({ state: "detached" });
    }));

  test("make room for others: first those of jobs that are over, then the one that is silent longest", () =>
    on("/", "live-boards-full", async (page) => {
      await page.clock.install({ time: 0 });
      // The clock goes on until then.
      await page.clock.pauseAt(3_600_000);
      const tell = (kind, job, more = {}) => page.evaluate(([name, detail]) => {
        const run = document.body.dataset.run;
        document.dispatchEvent(new CustomEvent(name, { detail: { run, ...detail } }));
      }, [kind, { job, ...more }]);
      const fens = ["PPPPPPPP/RNBQKBNR w KQkq - 0 1", "PPPP1PPP/RNBQKBNR b KQkq - 0 1"];
      const positions = fens.map((white) => ({ fen: `rnbqkbnr/pppppppp/8/8/8/8/${white}` }));
      const board = { contributor: "ada", white: 1, black: 0, value: 0, positions };
      const play = (job) => tell("rookery-board", job, board);
      const shown = () => page.locator("#boards [data-job]").evaluateAll((all) => all.map((one) => one.dataset.job));
      for (const job of ["a", "b", "c", "d", "a"]) await play(job);
      assert.deepEqual(await shown(), ["a", "b", "c", "d"]);
      await play("e");
      assert.deepEqual(await shown(), ["a", "c", "d", "e"]);
      await tell("rookery-board-ended", "d");
      assert.deepEqual(await shown(), ["a", "c", "d", "e"], "its moves are shown first");
      await play("f");
      assert.deepEqual(await shown(), ["a", "c", "e", "f"]);
      await tell("rookery-board-ended", "a");
      await page.clock.runFor(60_000);
      assert.deepEqual(await shown(), ["c", "e", "f"]);
    }));
});
