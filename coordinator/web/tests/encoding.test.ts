import { makeUci } from "chessops/util";
import { describe, expect, test } from "vitest";
import { legalMoves } from "../src/chess/moves";
import { encodeInput, planes } from "../src/encoding/input";
import { policyIndex, policySize } from "../src/encoding/policy";
import { type FixturePosition, fixtures } from "./fixtures";
import { game } from "./games";

/** A fixture's planes as a tensor. */
function tensor({ planes: binary, scalars }: FixturePosition): Float32Array {
  const bits = binary.flatMap((plane) => {
    const number = BigInt(`0x${plane}`);
    return Array.from({ length: 64 }, (_, square) => Number((number >> BigInt(square)) & 1n));
  });
  return Float32Array.from([...bits, ...scalars.flatMap((value) => Array<number>(64).fill(value))]);
}

describe.each(fixtures)("$input with $policy, as the worker encodes them", (fixture) => {
  test.each(fixture.positions)("planes: $name", (position) => {
    const encoded = encodeInput(fixture.input, game(position));
    expect(encoded).toHaveLength(64 * planes(fixture.input));
    expect(encoded).toEqual(tensor(position));
  });

  test.each(fixture.positions)("moves: $name", (position) => {
    const at = game(position).position;
    const found = legalMoves(at).map((move) => [makeUci(move), policyIndex(fixture.policy, at, move)]);
    expect(found).toEqual(position.legal.map(({ move, index }) => [move, index]));
  });

  test("indices are below the policy's size", () => {
    const indices = fixture.positions.flatMap(({ legal }) => legal.map(({ index }) => index));
    expect(Math.max(...indices)).toBeLessThan(policySize(fixture.policy));
  });
});
