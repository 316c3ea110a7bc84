// A network's file: fetched once, verified by its SHA-256 each time it is used, kept in the browser's cache.

import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex } from "@noble/hashes/utils";
import type { NetworkFile } from "./protocol";

const CACHE = "rookery-networks";
/** Networks that are kept, the newest. */
const KEPT = 8;

export async function loadFile(file: NetworkFile, progress: (received: number) => void): Promise<Uint8Array> {
  const kept = await readKept(file);
  if (kept && isIntact(kept, file)) return kept;
  // The browser's HTTP cache may hold a damaged file, which "reload" passes over.
  for (const mode of ["default", "reload"] as const) {
    const bytes = await download(file, mode, progress);
    if (!isIntact(bytes, file)) continue;
    await keep(file, bytes);
    return bytes;
  }
  throw new Error("The network's file does not have the SHA-256 that the coordinator names.");
}

/** Nothing where the page does not come over HTTPS or site data is blocked; the HTTP cache keeps the file all the same. */
async function readKept({ address }: NetworkFile): Promise<Uint8Array | undefined> {
  try {
    const kept = await (await caches.open(CACHE)).match(address);
    return kept && new Uint8Array(await kept.arrayBuffer());
  } catch {
    return undefined;
  }
}

function isIntact(bytes: Uint8Array, file: NetworkFile): boolean {
  return bytesToHex(sha256(bytes)) === file.sha256;
}

async function download(
  { address, bytes: size }: NetworkFile,
  cache: RequestCache,
  progress: (received: number) => void,
): Promise<Uint8Array> {
  const response = await fetch(address, { cache });
  if (!response.ok || !response.body) {
    throw new Error(`The coordinator answered ${response.status} to the request for the network's file.`);
  }
  const bytes = new Uint8Array(size);
  const reader = response.body.getReader();
  let received = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return bytes.subarray(0, received);
    if (received + value.length > size) throw new Error("The network's file is larger than the coordinator said.");
    bytes.set(value, received);
    received += value.length;
    progress(received);
  }
}

async function keep({ address }: NetworkFile, bytes: Uint8Array): Promise<void> {
  try {
    const cache = await caches.open(CACHE);
    await cache.put(address, new Response(bytes.slice()));
    const addresses = await cache.keys();
    await Promise.all(addresses.slice(0, -KEPT).map((old) => cache.delete(old)));
  } catch {
    // There is no cache, or its quota is used up: the network is fetched again the next time.
  }
}
