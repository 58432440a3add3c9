import { subscribe, unsubscribe } from "node:diagnostics_channel";
import type { Socket } from "node:net";
// See `upstream.ts` for why these are not taken from the package's entry.
import buildConnector from "undici/lib/core/connect.js";
import { guardSocket, type OnFault } from "../../http1/guard.ts";
import type { AppWatch } from "./app-watch.ts";
import { ContinueFilter } from "./continue-filter.ts";

/*
 * Connections to the app, prepared for undici: their listeners cannot end the process, an unrequested `100 Continue` does not end
 * the connection, and a response that was cut off does not look complete.
 */

export interface AppConnector {
  readonly connect: ReturnType<typeof buildConnector>;
  close(): void;
}

/** Published for each request with its connection, just before it is sent. */
const SENDING = "undici:client:sendHeaders";

export function openAppConnector(options: { timeoutMs: number; watch: AppWatch; onFault: OnFault }): AppConnector {
  const { timeoutMs, watch, onFault } = options;
  const connect = buildConnector({ timeout: timeoutMs, allowH2: false });
  const filters = new WeakMap<object, ContinueFilter>();
  const onSending = (message: unknown): void => filters.get((message as { socket: object }).socket)?.expectHead();
  subscribe(SENDING, onSending);
  return {
    connect: (options, callback) =>
      connect(options, (...outcome) => {
        const [error, socket] = outcome;
        // After an error there is no socket, although the types say `null`.
        if (!socket) watch.failed(error);
        else {
          watch.connected();
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
 * undici treats a reset as the end of a response that lasts until the connection ends, so a client would get a part of it as the
 * whole. With another error code undici treats it as a failure.
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
    // undici reads whole chunks when there are some. The stream itself calls with a size, and then with 0 to fetch more: the result of
    // such a call would be lost, so it is passed on unchanged.
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
