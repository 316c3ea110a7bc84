import { readFileSync } from "node:fs";
import { expect, test } from "vitest";

const style = readFileSync(new URL("../../assets/style.css", import.meta.url), "utf8");

test("browsers without light-dark() have the light colours", () => {
  const [plain, both] = style.split("@supports (color: light-dark(#000, #fff)) {");
  const light = [...both!.matchAll(/(--[\w-]+): light-dark\((.+), .+\);/g)].map(([, name, color]) => [name, color]);
  expect(light.length).toBeGreaterThan(20);
  expect([...plain!.matchAll(/(--[\w-]+): (.+);/g)].map(([, name, color]) => [name, color])).toEqual(light);
  expect(both!.match(/light-dark\(/g), "all of them are variables").toHaveLength(light.length);
});
