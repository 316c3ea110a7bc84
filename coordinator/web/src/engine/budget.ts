// How long a search may go on, and how large its batches are.

export interface Budget {
  /** At most. */
  readonly visits: number;
  /** From when the search begins; without it, only visits count. The root is evaluated in any case. */
  readonly milliseconds?: number;
}

/** Of searches by time, for the sake of memory. */
const MOST_VISITS = 100_000;

/** Searches of no more visits take one leaf a batch, and find what the worker finds: larger ones led to other moves. */
const MOST_SINGLE_VISITS = 100;
/** Visits for each leaf of a batch: short searches take smaller batches, which cost less strength. */
const VISITS_A_LEAF = 12;

/** The budget of a strength as the page's options write it: visits (`100`), or seconds (`5s`). */
export function readBudget(strength: string): Budget {
  const [, seconds] = /^(\d+)s$/.exec(strength) ?? [];
  return seconds === undefined
    ? { visits: Number(strength) }
    : { visits: MOST_VISITS, milliseconds: 1000 * Number(seconds) };
}

/** Leaves a batch for a search that makes so many evaluations a second. */
export function leavesFor({ visits, milliseconds }: Budget, evaluationsPerSecond: number): number {
  const inTime = milliseconds === undefined ? visits : (evaluationsPerSecond * milliseconds) / 1000;
  const expected = Math.min(visits, inTime);
  return expected <= MOST_SINGLE_VISITS ? 1 : Math.floor(expected / VISITS_A_LEAF);
}
