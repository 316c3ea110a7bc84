// The board of the page "Play", as a visitor uses it.

/** The page, with what stands after the question mark. */
export const PLAY = "/runs/main/play";
export const at = (parameters) => `${PLAY}?${new URLSearchParams(parameters)}`;

/** Waits for the line below the board. */
export const says = (page, words) => page.locator("#status", { hasText: words }).waitFor();

/** The moves of the score sheet. */
export const moves = (page) => page.locator("#sheet button").allInnerTexts();

export const movesAre = (page, count) =>
  page.waitForFunction((n) => document.querySelectorAll("#sheet button").length === n, count);

/** The middle of a square in the window. */
export async function middle(page, square) {
  const box = await page.locator("cg-board").boundingBox();
  const isFlipped = await page.locator(".cg-wrap.orientation-black").count() > 0;
  const [file, rank] = [square.charCodeAt(0) - 97, Number(square[1]) - 1];
  const [across, down] = isFlipped ? [7 - file, rank] : [file, 7 - rank];
  return [box.x + (across + 0.5) * box.width / 8, box.y + (down + 0.5) * box.height / 8];
}

export async function clickMove(page, from, to) {
  await page.locator("cg-board").scrollIntoViewIfNeeded();
  await page.mouse.click(...await middle(page, from));
  await page.mouse.click(...await middle(page, to));
}

export async function dragMove(page, from, to) {
  await page.mouse.move(...await middle(page, from));
  await page.mouse.down();
  await page.mouse.move(...await middle(page, to), { steps: 6 });
  await page.mouse.up();
}

export async function type(page, move) {
  await page.fill("#typed", move);
  await page.press("#typed", "Enter");
}

/** Sets up a FEN or a PGN. */
export async function setUp(page, text) {
  await page.getByText("Begin from a position or a game").click();
  await page.fill("#position", text);
  await page.click("#setup button");
}

/** Waits until the board shows so many of something: chessground draws in the browser's next frame. */
export async function drawn(locator, count) {
  if (count > 0) await locator.nth(count - 1).waitFor({ state: "attached" });
  await locator.nth(count).waitFor({ state: "detached" });
}
