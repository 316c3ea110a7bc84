import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex } from "@noble/hashes/utils";
import { afterEach, describe, expect, test, vi } from "vitest";
import { loadFile } from "../src/engine/download";
import type { NetworkFile } from "../src/engine/protocol";

const content = Uint8Array.of(1, 2, 3);
const file: NetworkFile = {
  address: "/file", sha256: bytesToHex(sha256(content)), bytes: 3, input: "lc0-112", policy: "lc0-1858",
};
const damaged = Uint8Array.of(1, 2, 4);

/** A browser whose requests get `answers`, in this order. */
function stubFetch(...answers: Uint8Array<ArrayBuffer>[]) {
  const fetch = vi.fn(async (_address: string, _options: RequestInit) => new Response(answers.shift()));
  vi.stubGlobal("fetch", fetch);
  return () => fetch.mock.calls.map(([, { cache }]) => cache);
}

/** A cache of the browser with one file. */
function stubCache(kept?: Uint8Array<ArrayBuffer>) {
  const put = vi.fn();
  const cache = { match: async () => kept && new Response(kept), put, keys: async () => [] };
  vi.stubGlobal("caches", { open: async () => cache });
  return put;
}

const load = () => loadFile(file, () => {});

afterEach(() => void vi.unstubAllGlobals());

describe("a network's file", () => {
  test("is fetched and kept", async () => {
    const [put, fetched] = [stubCache(), stubFetch(content)];
    expect(await load()).toEqual(content);
    expect([fetched(), put.mock.calls.length]).toEqual([["default"], 1]);
  });

  test("that is kept is not fetched", async () => {
    stubCache(content);
    const fetched = stubFetch();
    expect(await load()).toEqual(content);
    expect(fetched()).toEqual([]);
  });

  test("that is kept with damage is fetched and kept again", async () => {
    const [put, fetched] = [stubCache(damaged), stubFetch(content)];
    expect(await load()).toEqual(content);
    expect([fetched(), put.mock.calls.length]).toEqual([["default"], 1]);
  });

  test.each([
    ["there is no cache", undefined],
    ["site data is blocked", { open: async () => { throw new DOMException("blocked", "SecurityError"); } }],
    ["the cache cannot be read", { open: async () => ({ match: async () => { throw new Error("broken"); } }) }],
  ])("is fetched where %s", async (_, caches) => {
    if (caches) vi.stubGlobal("caches", caches);
    stubFetch(content);
    expect(await load()).toEqual(content);
  });

  test("that the HTTP cache holds with damage is fetched past it", async () => {
    const fetched = stubFetch(damaged, content);
    expect(await load()).toEqual(content);
    expect(fetched()).toEqual(["default", "reload"]);
  });

  test("that is damaged at the source is refused after two requests", async () => {
    const fetched = stubFetch(damaged, damaged);
    await expect(load()).rejects.toThrow(/does not have the SHA-256/);
    expect(fetched().length).toBe(2);
  });
});
