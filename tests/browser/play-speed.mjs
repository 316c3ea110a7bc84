// What the page "Play" fetches and how fast it evaluates the network that comes with Rookery, 6x64, on each device:
//
//     node tests/browser/play-speed.mjs http://127.0.0.1:8080/runs/main/play [FLAG OF CHROMIUM …]
//
// Without flags the graphics card is imitated by SwiftShader, whose speed says nothing of a card.

import { SOFTWARE_WEBGPU, launch, open } from "./showcase.mjs";

const [address, ...flags] = process.argv.slice(2);
if (!address) {
  console.error("usage: node tests/browser/play-speed.mjs URL [FLAG OF CHROMIUM …]");
  process.exit(2);
}

const seconds = (since) => ((performance.now() - since) / 1000).toFixed(1);

async function measure(browser, device) {
  const { page, visit, close } = await open(browser, new URL(address).origin);
  page.setDefaultTimeout(600_000);
  let bytes = 0;
  page.context().on("requestfinished", async (request) => {
    if (request.url().includes("/assets/board/")) bytes += (await request.sizes()).responseBodySize;
  });
  const begun = performance.now();
  await visit(`${new URL(address).pathname}?network=small`);
  await page.locator("#status", { hasText: "White to move." }).waitFor();
  const ready = seconds(begun);
  const chosen = performance.now();
  await page.selectOption("#device", device);
  await page.locator(`#computed[data-device=${device}]`, { hasNotText: "is tried" }).waitFor();
  const taken = seconds(chosen);
  await page.selectOption("#side", "both");
  await page.check("#analyse");
  const shown = await page.waitForFunction(() => {
    const [, visits, speed] = /([\d,]+) visits, (\d+) evaluations/.exec(document.querySelector("#summary").textContent) ?? [];
    return Number(visits?.replaceAll(",", "") ?? 0) > 96 && `${speed} evaluations/s over ${visits} visits`;
  });
  console.log(`${device}: ${(bytes / 1e6).toFixed(2)} MB, ready after ${ready} s, device after ${taken} s more, ${await shown.jsonValue()}`);
  await close();
}

const browser = await launch(...(flags.length > 0 ? flags : SOFTWARE_WEBGPU));
for (const device of ["processor", "gpu"]) await measure(browser, device);
await browser.close();
