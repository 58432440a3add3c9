import type { IncomingMessage, ServerResponse } from "node:http";
import { startApp, type TestApp } from "../harness/gate.ts";

/** An app behind a gate that can be told to misbehave, and to be away. */
export interface MoodyApp {
  readonly url: string;
  behave(mood: Mood): void;
  /** Its connections are reset, and new ones refused. */
  stop(): Promise<void>;
  /** On the same port again. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/**
 * well      answers 200
 * halfway   promises 100 bytes, sends a part of them and resets the connection
 * nonsense  answers with bytes that are no HTTP
 * twice     answers with two lengths that differ
 */
export type Mood = "well" | "halfway" | "nonsense" | "twice";

export async function openMoodyApp(): Promise<MoodyApp> {
  let mood: Mood = "well";
  const listener = (req: IncomingMessage, res: ServerResponse): void => {
    // The reset of a request that is read is no one's fault here.
    req.on("error", () => undefined).resume();
    req.on("end", () => {
      const { socket } = req;
      if (mood === "well") res.end("ok");
      else if (mood === "halfway") socket.write(HALFWAY, () => socket.resetAndDestroy());
      else socket.end(mood === "twice" ? TWO_LENGTHS : "\u0000\u0001 what is this\r\n\r\n");
    });
  };
  let app: TestApp = await startApp(listener);
  const { url } = app;
  return {
    url,
    behave: (next) => {
      mood = next;
    },
    stop: () => app.close(),
    start: async () => {
      app = await startApp(listener, Number(new URL(url).port));
    },
    close: () => app.close(),
  };
}

const HALFWAY = "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\na part";
const TWO_LENGTHS = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok";
