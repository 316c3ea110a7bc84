// A network's file: fetched once, verified by its SHA-256 each time it is used, kept in the browser's cache.

import { sha256 } from "@noble/hashes/sha2";
import { bytesToHex } from "@noble/hashes/utils";
import type { NetworkFile } from "./protocol";

const CACHE = "rookery-networks";
/** Networks that are kept, the newest. */
const KEPT = 8;

export async function loadFile(file: NetworkFile, progress: (received: number) => void): Promise<Uint8Array> {
  const cache = await openCache();
  const kept = await cache?.match(file.address);
  if (kept) {
    const bytes = new Uint8Array(await kept.arrayBuffer());
    if (isIntact(bytes, file)) return bytes;
    await cache?.delete(file.address);
  }
  const bytes = await download(file, progress);
  if (!isIntact(bytes, file)) throw new Error("The network's file does not have the SHA-256 that the coordinator names.");
  await keep(cache, file, bytes);
  return bytes;
}

/** There is none where the page does not come over HTTPS; the browser's HTTP cache keeps the file all the same. */
async function openCache(): Promise<Cache | undefined> {
  return "caches" in globalThis ? caches.open(CACHE) : undefined;
}

function isIntact(bytes: Uint8Array, file: NetworkFile): boolean {
  return bytesToHex(sha256(bytes)) === file.sha256;
}

async function download({ address, bytes: size }: NetworkFile, progress: (received: number) => void): Promise<Uint8Array> {
  const response = await fetch(address);
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

async function keep(cache: Cache | undefined, { address }: NetworkFile, bytes: Uint8Array): Promise<void> {
  if (!cache) return;
  try {
    await cache.put(address, new Response(bytes.slice()));
    const addresses = await cache.keys();
    await Promise.all(addresses.slice(0, -KEPT).map((old) => cache.delete(old)));
  } catch {
    // The quota is used up: the network is fetched again the next time.
  }
}
