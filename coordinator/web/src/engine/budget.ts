// How long a search may go on.

export interface Budget {
  /** At most. */
  readonly visits: number;
  /** From when the search begins; without it, only visits count. The root is evaluated in any case. */
  readonly milliseconds?: number;
}

/** Of searches by time, for the sake of memory. */
const MOST_VISITS = 100_000;

/** The budget of a strength as the page's options write it: visits (`100`), or seconds (`5s`). */
export function readBudget(strength: string): Budget {
  const [, seconds] = /^(\d+)s$/.exec(strength) ?? [];
  return seconds === undefined
    ? { visits: Number(strength) }
    : { visits: MOST_VISITS, milliseconds: 1000 * Number(seconds) };
}
