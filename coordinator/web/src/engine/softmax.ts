/** From logits to probabilities. */
export function softmax(logits: Float32Array): Float32Array {
  const highest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights = logits.map((logit) => Math.exp(logit - highest));
  const sum = weights.reduce((a, b) => a + b, 0);
  return weights.map((weight) => weight / sum);
}
