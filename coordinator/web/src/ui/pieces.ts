// Pictures of the pieces, fetched before they are needed: a pawn may promote when there is no connection any more.

const PICTURES = import.meta.glob<string>("../../generated/*.svg", { eager: true, query: "?url", import: "default" });

export function fetchPieces(): void {
  for (const address of Object.values(PICTURES)) new Image().src = address;
}
