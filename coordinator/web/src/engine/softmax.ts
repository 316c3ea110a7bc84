/** From logits, divided by the temperature, to probabilities. */
export function softmax(logits: Float32Array, temperature = 1): Float32Array {
  const highest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights = logits.map((logit) => Math.exp((logit - highest) / temperature));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}
