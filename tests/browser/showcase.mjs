// Starts the real coordinator with something to show, and a browser that reports what goes wrong.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { createInterface } from "node:readline";
import { after, before } from "node:test";
import { fileURLToPath } from "node:url";
import axe from "axe-core";
import { chromium } from "playwright-core";

const root = fileURLToPath(new URL("../..", import.meta.url));
const target = process.env.CARGO_TARGET_DIR ?? join(root, "target");
const profile = process.env.ROOKERY_PROFILE ?? "debug";

/** Where screenshots go; the folder is named when the tests begin. */
export const screenshots =
  process.env.ROOKERY_SCREENSHOTS ?? mkdtempSync(join(tmpdir(), "rookery-screenshots-"));
mkdirSync(screenshots, { recursive: true });

/** How long a browser and its pages may take for anything. SwiftShader compiles a network's kernels for tens of seconds. */
const PATIENCE = 300_000;

/** A coordinator; `more()` plays one more job on it. */
export class Showcase {
  static async start(...args) {
    const program = join(target, profile, "rookery-showcase");
    if (!existsSync(program)) {
      throw new Error(`${program} is missing: run \`cargo build --workspace --bins\` first`);
    }
    const showcase = new Showcase();
    showcase.process = spawn(program, args, { stdio: ["pipe", "pipe", "inherit"] });
    showcase.lines = createInterface({ input: showcase.process.stdout })[Symbol.asyncIterator]();
    return Object.assign(showcase, await showcase.answer());
  }

  async answer() {
    const { value, done } = await this.lines.next();
    if (done) throw new Error("rookery-showcase ended; its message is above");
    return JSON.parse(value);
  }

  async more() {
    this.process.stdin.write("more\n");
    return (await this.answer()).played;
  }

  async stop() {
    const ended = new Promise((done) => this.process.once("exit", done));
    this.process.stdin.end();
    await ended;
  }
}

/** The first browser on the PATH, by the names that scripts/setup looks for. */
function findBrowser() {
  const names = [process.env.ROOKERY_CHROMIUM ?? "chromium", "chromium-browser", "google-chrome"];
  const folders = ["", ...process.env.PATH.split(delimiter)];
  const files = names.flatMap((name) => folders.map((folder) => join(folder, name)));
  const found = files.find((file) => existsSync(file));
  if (!found) throw new Error(`none of ${names.join(", ")} is on the PATH; ROOKERY_CHROMIUM names another`);
  return found;
}

/** WebGPU on the processor: no test needs a graphics card. */
export const SOFTWARE_WEBGPU = ["--enable-unsafe-webgpu", "--use-webgpu-adapter=swiftshader"];

export function launch(...more) {
  return chromium.launch({
    timeout: PATIENCE,
    executablePath: findBrowser(),
    args: [
      "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
      "--disable-background-networking", "--disable-component-update", "--disable-sync", ...more,
    ],
  });
}

/**
 * A page of a fresh browser context. `complaints` collects what must not happen: errors and
 * warnings on the console (breaches of the content security policy are told there), exceptions,
 * requests that failed or went elsewhere.
 */
export async function open(browser, base, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1200, height: 900 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const complaints = [];
  page.on("console", (message) => {
    if (["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("request", (request) => {
    if (!request.url().startsWith(base)) complaints.push(`a request to ${request.url()}`);
  });
  page.on("response", (response) => {
    if (response.status() >= 400) complaints.push(`${response.status()} for ${response.url()}`);
  });
  return {
    page,
    complaints,
    visit: (path) => page.goto(base + path),
    shot: (name, more = {}) =>
      page.screenshot({ path: join(screenshots, `${name}.png`), fullPage: true, ...more }),
    close: () => context.close(),
  };
}

/**
 * A browser with these flags and a showcase for the tests of a file, from before the first until after the last. `on`
 * visits a page of it, `open` gives a page of a fresh context.
 */
export function withShowcase(...flags) {
  const site = {
    on: (...page) => visit(site, ...page),
    open: (options) => open(site.browser, site.showcase.url, options),
  };
  before(async () => {
    [site.browser, site.showcase] = await Promise.all([launch(...flags), Showcase.start()]);
  });
  after(async () => {
    await site.browser?.close();
    await site.showcase?.stop();
  });
  return site;
}

/** Visits a page, lets `check` look at it, and asserts that nothing was complained about. */
export async function visit({ browser, showcase }, path, name, check, options = {}) {
  const view = await open(browser, showcase.url, options);
  try {
    const answer = await view.visit(path);
    assert.equal(answer.status(), 200, path);
    await check(view.page, view);
    await view.shot(name);
    assert.deepEqual(view.complaints, []);
  } finally {
    await view.close();
  }
}

/** Whether anything sticks out of the page sideways. */
export const overflows = (page) =>
  page.evaluate(() => document.documentElement.scrollWidth > document.documentElement.clientWidth);

/** What axe finds serious on a page. */
export async function seriousFaults(page) {
  await page.evaluate(axe.source);
  const { violations } = await page.evaluate(() => globalThis.axe.run());
  const serious = violations.filter(({ impact }) => ["serious", "critical"].includes(impact));
  return serious.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.target).join(", ")}`);
}

/**
 * Texts with less contrast to what is behind them than WCAG asks for at AA. axe does not decide that where a background has
 * a gradient, as tables have. Boards are left out: their coordinates stand on squares of two colours.
 */
export const faintTexts = (page) => page.evaluate(() => {
  const LEFT_OUT = ".unseen, .skip, .board, .cg-wrap, script, template, option";
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const luminance = (colors) => {
    for (const color of colors) {
      canvas.fillStyle = color;
      canvas.fillRect(0, 0, 1, 1);
    }
    const linear = (c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    const [red, green, blue] = [...canvas.getImageData(0, 0, 1, 1).data].map((n) => linear(n / 255));
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
  };
  const faint = [];
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (texts.nextNode()) {
    const words = texts.currentNode.textContent.trim();
    const element = texts.currentNode.parentElement;
    if (!words || !element.checkVisibility() || element.closest(LEFT_OUT)) continue;
    const style = getComputedStyle(element);
    const behind = [];
    for (let part = element; part; part = part.parentElement) behind.unshift(getComputedStyle(part).backgroundColor);
    const color = element.closest("svg") ? style.fill : style.color;
    const [darker, lighter] = [luminance(behind), luminance([...behind, color])].sort((a, b) => a - b);
    const contrast = (lighter + 0.05) / (darker + 0.05);
    const size = parseFloat(style.fontSize);
    const isLarge = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
    if (contrast < (isLarge ? 3 : 4.5)) faint.push(`${words.slice(0, 40)}: ${contrast.toFixed(2)}`);
  }
  return faint;
});
