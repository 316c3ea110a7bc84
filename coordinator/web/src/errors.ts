/** What an error says to the visitor. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
