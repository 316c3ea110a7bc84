// The choice of the network, and what the coordinator says of it.

import { INPUT_ENCODINGS, type InputEncoding } from "../encoding/input";
import { POLICY_ENCODINGS, type PolicyEncoding } from "../encoding/policy";
import type { NetworkFile } from "../engine/protocol";

/** What the page needs of the API's `NetworkInfo`. */
export interface NetworkInfo {
  readonly number: number;
  readonly spec: { readonly input: string; readonly policy: { readonly encoding: string } };
  readonly exports: readonly { readonly format: string; readonly hash: string; readonly bytes: number; readonly file: string }[];
}

/** A network to play with, and what the page calls it. */
export interface Opponent {
  readonly name: string;
  readonly file: NetworkFile;
}

/** The network of an option: the one that comes with Rookery, or one of the run's. */
export async function chosenNetwork(run: string, option: HTMLOptionElement): Promise<Opponent> {
  const name = opponentName(option);
  const included = option.dataset["file"];
  if (included !== undefined) return { name, file: JSON.parse(included) as NetworkFile };
  return { name, file: playableFile(await fetchNetwork(run, option.value)) };
}

/** What the page calls the network of an option. */
export function opponentName(option: HTMLOptionElement): string {
  return option.dataset["file"] === undefined ? `network #${option.value}` : "the network that comes with Rookery";
}

async function fetchNetwork(run: string, number: string): Promise<NetworkInfo> {
  const response = await fetch(`/api/v1/networks/${number}?run=${encodeURIComponent(run)}`);
  if (!response.ok) throw new Error(`The coordinator knows no network #${number} of this run.`);
  return (await response.json()) as NetworkInfo;
}

/** The network's ONNX file; throws an `Error` if there is none, or none that can be played here. */
export function playableFile({ number, spec, exports }: NetworkInfo): NetworkFile {
  const file = exports.find(({ format }) => format === "onnx");
  if (!file) throw new Error(`Network #${number} has no ONNX file: its trainer has not sent one.`);
  const input = INPUT_ENCODINGS.find((name): name is InputEncoding => name === spec.input);
  const policy = POLICY_ENCODINGS.find((name): name is PolicyEncoding => name === spec.policy.encoding);
  if (!input) throw new Error(`Network #${number} has the input encoding ${spec.input}, which this page does not know.`);
  if (!policy) {
    throw new Error(`Network #${number} has the policy encoding ${spec.policy.encoding}, which this page does not know.`);
  }
  // The page's content security policy allows no redirect to an object store.
  const address = `${file.file}${file.file.includes("?") ? "&" : "?"}path=through`;
  return { address, sha256: file.hash, bytes: file.bytes, input, policy };
}
