import * as ort from "onnxruntime-web/wasm";
import { beforeAll, describe, expect, test } from "vitest";
import { legalMoves } from "../src/chess/moves";
import { OnnxNetwork } from "../src/engine/network";
import { softmax } from "../src/engine/softmax";
import { fixtures, model } from "./fixtures";
import { game } from "./games";

describe.each(fixtures)("$network, as the worker evaluates it", (fixture) => {
  let network: OnnxNetwork;
  beforeAll(async () => {
    network = await OnnxNetwork.load({ ort, provider: "wasm", batchSizes: [] }, model(fixture), fixture);
  });

  test("priors and values, all positions in one batch", async () => {
    const questions = fixture.positions.map((position) => {
      const at = game(position);
      return network.encode(at, legalMoves(at.position));
    });
    const answers = await network.evaluate(questions);
    fixture.positions.forEach(({ name, legal, wdl }, index) => {
      const { logits, value } = answers[index]!;
      softmax(logits).forEach((prior, place) => {
        expect(Math.abs(prior - legal[place]!.prior), `${name}, ${legal[place]!.move}`).toBeLessThan(1e-3);
      });
      [value.win, value.draw, value.loss].forEach((share, place) => {
        expect(Math.abs(share - wdl[place]!), name).toBeLessThan(1e-3);
      });
    });
  });
});
