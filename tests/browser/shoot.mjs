// The pictures of the documentation, taken from a running coordinator:
//
//     node tests/browser/shoot.mjs http://127.0.0.1:8080 docs/images
//
// home.png is the overview, game.png the latest match game that ended in mate, a little past its
// middle.

import { join } from "node:path";
import { launch } from "./showcase.mjs";

const [url, folder] = process.argv.slice(2);
if (!url || !folder) {
  console.error("usage: node tests/browser/shoot.mjs URL FOLDER");
  process.exit(2);
}

async function latestMate() {
  const games = await (await fetch(`${url}/api/v1/games?kind=match&limit=500`)).json();
  return games.find((game) => game.termination === "checkmate" && game.plies >= 40) ?? games[0];
}

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1200, height: 960 } });

async function shoot(path, name) {
  await page.goto(url + path);
  await page.evaluate(() => document.fonts.ready);
  await page.screenshot({ path: join(folder, name) });
}

await shoot("/", "home.png");
const game = await latestMate();
if (game) await shoot(`/games/${game.id}?ply=${Math.round(game.plies * 0.55)}`, "game.png");
await browser.close();
