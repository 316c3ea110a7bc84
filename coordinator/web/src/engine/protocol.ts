// What the page and its web worker say to each other.

import type { NormalMove } from "chessops/types";
import type { Budget } from "./budget";
import type { DeviceChoice, DeviceStatus } from "./device";
import type { Encodings } from "./network";
import type { Report } from "./report";

/** A network's file on the coordinator. */
export interface NetworkFile extends Encodings {
  readonly address: string;
  readonly sha256: string;
  readonly bytes: number;
}

/** Each has a tree of its own, so that analysis does not make the opponent stronger; threats are searched after a pass. */
export type Player = "opponent" | "analyst" | "threat";

export interface SearchRequest extends Budget {
  readonly id: number;
  readonly player: Player;
  /** A FEN. */
  readonly start: string;
  readonly moves: readonly NormalMove[];
}

export type Request =
  | { readonly kind: "device"; readonly choice: DeviceChoice }
  | { readonly kind: "load"; readonly network: NetworkFile }
  | { readonly kind: "search"; readonly search: SearchRequest }
  | { readonly kind: "stop" };

export type Reply =
  | { readonly kind: "device"; readonly status: DeviceStatus }
  | { readonly kind: "progress"; readonly received: number }
  | { readonly kind: "loaded" }
  | { readonly kind: "not-loaded"; readonly message: string }
  | { readonly kind: "report"; readonly id: number; readonly report: Report | undefined; readonly isLast: boolean }
  | { readonly kind: "failed"; readonly id: number; readonly message: string };
