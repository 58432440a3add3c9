import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
// See `upstream.ts` for why these are not taken from the package's entry.
import buildConnector from "undici/lib/core/connect.js";
import { guardSocket, type OnFault } from "../http/guard.ts";
import { ContinueFilter } from "./continue-filter.ts";

/*
 * Connections to the app, prepared for undici: its listeners cannot end the process, an unasked `100 Continue` does not end
 * the connection, and an answer that was broken off does not look whole.
 */

export interface AppConnector {
  readonly connect: ReturnType<typeof buildConnector>;
  close(): void;
}

/** Says of each request on which connection it is sent, just before it is. */
const SENDING = "undici:client:sendHeaders";

export function openAppConnector({ timeoutMs, onFault }: { timeoutMs: number; onFault: OnFault }): AppConnector {
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
  const filters = new WeakMap<object, ContinueFilter>();
  const onSending = (message: unknown): void => filters.get((message as { socket: object }).socket)?.expectHead();
  subscribe(SENDING, onSending);
  return {
    connect: (options, callback) =>
      connect(options, (...outcome) => {
        const [, socket] = outcome;
        // With an error there is none, whatever the types say of `null`.
        if (socket) {
          guardSocket(socket, onFault);
          tellResets(socket);
          filters.set(socket, filterReads(socket));
        }
        callback(...outcome);
      }),
    close: () => void unsubscribe(SENDING, onSending),
  };
}

/**
 * undici takes a reset for the end of an answer that lasts until the connection ends. A client would get a part of it as the
 * whole. By another name undici takes it for the failure that it is.
 */
function tellResets(socket: Socket): void {
  socket.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "ECONNRESET") error.code = "ERR_APP_RESET";
  });
}

function filterReads(socket: Socket): ContinueFilter {
  const filter = new ContinueFilter();
  const read = socket.read.bind(socket);
  socket.read = (size?: number) => {
    // undici reads whole chunks, when told that there are some. A size is what the stream itself asks with, and then 0, to
    // have more fetched: what came of such a call would be lost.
    if (size !== undefined) return read(size);
    for (;;) {
      const chunk: Buffer | null = read();
      if (chunk === null) return null;
      const passed = filter.pass(chunk);
      if (passed !== undefined) return passed;
    }
  };
  return filter;
}
