// Starts the page: the position that its address names, and the chosen network.

import "chessground/assets/chessground.base.css";
import "./style.css";
import { App } from "./app";
import { readGame, readPly } from "./chess/pgn";
import { GameRecord } from "./chess/record";
import { messageOf } from "./errors";
import { element } from "./ui/elements";
import { fetchPieces } from "./ui/pieces";

/** The game of `?game=N&ply=K`, or the position of `?fen=`. */
async function addressedGame(query: URLSearchParams): Promise<GameRecord | undefined> {
  const [id, fen] = [query.get("game"), query.get("fen")];
  if (id !== null) {
    const response = await fetch(`/api/v1/games/${encodeURIComponent(id)}/pgn`);
    if (!response.ok) throw new Error(`There is no game ${id} here.`);
    const record = readGame(await response.text());
    record.show(readPly(query.get("ply"), record.length));
    record.truncate();
    return record;
  }
  return fen === null ? undefined : readGame(fen);
}

function bindSetup(app: App): void {
  const form = element("setup", HTMLFormElement);
  const text = element("position", HTMLTextAreaElement);
  const problem = element("setup-problem", HTMLElement);
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    try {
      const record = readGame(text.value);
      app.begin(record, record.history().position.turn);
      problem.textContent = "";
    } catch (error) {
      problem.textContent = messageOf(error);
    }
  });
}

async function start(): Promise<void> {
  fetchPieces();
  const app = new App();
  bindSetup(app);
  const loading = app.load();
  try {
    const record = await addressedGame(new URLSearchParams(location.search));
    app.begin(record ?? new GameRecord(), record ? record.history().position.turn : "white");
    await loading;
  } catch (error) {
    app.begin(new GameRecord(), "white");
    await loading;
    app.fail(error);
  }
}

void start();
