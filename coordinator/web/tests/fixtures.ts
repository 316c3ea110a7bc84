// Positions as the worker encodes and evaluates them; crates/backend-cpu/tests/browser_fixtures.rs writes them.

import { readFileSync } from "node:fs";
import type { InputEncoding } from "../src/encoding/input";
import type { PolicyEncoding } from "../src/encoding/policy";
import type { MoveList } from "./games";

export interface Fixture {
  readonly network: string;
  readonly input: InputEncoding;
  readonly policy: PolicyEncoding;
  readonly positions: FixturePosition[];
}

export interface FixturePosition extends MoveList {
  readonly name: string;
  /** The binary planes, bit 0 of each being a1 as the mover sees the board, in hexadecimal. */
  readonly planes: string[];
  /** What the planes that follow are filled with. */
  readonly scalars: number[];
  /** Castling is king takes rook. */
  readonly legal: { move: string; index: number; prior: number }[];
  readonly wdl: [number, number, number];
}

const path = (name: string) => new URL(`../fixtures/${name}`, import.meta.url);

export const fixtures: Fixture[] = ["lc0", "az", "classic"]
  .map((name) => JSON.parse(readFileSync(path(`${name}.json`), "utf8")) as Fixture);

export const model = (fixture: Fixture): Uint8Array => readFileSync(path(fixture.network));
