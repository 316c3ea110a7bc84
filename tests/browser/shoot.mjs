// The picture of the documentation, taken from a running coordinator that has some networks:
//
//     node tests/browser/shoot.mjs http://127.0.0.1:8080 docs/images
//
// home.png is the overview.

import { join } from "node:path";
import { launch } from "./showcase.mjs";

const [url, folder] = process.argv.slice(2);
if (!url || !folder) {
  console.error("usage: node tests/browser/shoot.mjs URL FOLDER");
  process.exit(2);
}

const browser = await launch();
const page = await browser.newPage({ viewport: { width: 1200, height: 960 } });
await page.goto(url);
await page.evaluate(() => document.fonts.ready);
await page.screenshot({ path: join(folder, "home.png") });
await browser.close();
