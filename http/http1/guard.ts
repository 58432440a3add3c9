import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/*
 * Prevents bytes of a client or of the app from ending the process. Bytes are handled by listeners, of Node, libraries and this project,
 * all of which are called by their emitter's `emit`. The guard wraps `emit` once for each kind of emitter, so that it covers every
 * listener. An exception is reported, and its connection is closed; all others continue.
 */

/** Counts and logs an exception. Must never throw. */
export type OnInternalError = (error: unknown) => void;

interface Emitter {
  emit(event: string | symbol, ...args: unknown[]): boolean;
}

interface Thrown<E> {
  readonly error: unknown;
  readonly emitter: E;
  /** Arguments of the listeners. */
  readonly args: readonly unknown[];
}

/** Catches exceptions of the listeners of an emitter, or of all emitters with this prototype. */
export function guardEmits<E extends object>(target: E, onThrown: (thrown: Thrown<E>) => void): void {
  const { emit } = target as Emitter;
  (target as Emitter).emit = function (this: Emitter, event, ...args) {
    try {
      return emit.call(this, event, ...args);
    } catch (error) {
      onThrown({ error, emitter: this as unknown as E, args });
      return true;
    }
  };
}

/** Runs code that is not called by an emitter, such as a timer or the next tick. */
export function guardRun(run: () => void, onInternalError: OnInternalError): void {
  try {
    run();
  } catch (error) {
    onInternalError(error);
  }
}

/** Closes a socket whose listeners throw. */
export function guardSocket(socket: Socket, onInternalError: OnInternalError): void {
  guardEmits(socket, ({ error }) => {
    onInternalError(error);
    socket.destroy();
  });
}

/** Classes for `createServer` that close requests and responses whose listeners throw, with their connection. */
export function guardedMessages(onInternalError: OnInternalError): {
  IncomingMessage: typeof IncomingMessage;
  ServerResponse: typeof ServerResponse;
} {
  class GuardedRequest extends IncomingMessage {}
  class GuardedResponse<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {}
  guardEmits(GuardedRequest.prototype, ({ error, emitter }) => {
    onInternalError(error);
    emitter.socket.destroy();
  });
  guardEmits(GuardedResponse.prototype, ({ error, emitter }) => {
    onInternalError(error);
    emitter.req.socket.destroy();
  });
  return { IncomingMessage: GuardedRequest, ServerResponse: GuardedResponse };
}

/** Guards the server's own events, and the connections that it accepts. */
export function guardServer(server: Server, onInternalError: OnInternalError): void {
  guardEmits(server, ({ error, args }) => {
    onInternalError(error);
    // Arguments are a request and its response, or a connection: destroying any of them closes the connection.
    for (const arg of args) if (isDestroyable(arg)) arg.destroy();
  });
  server.on("connection", (socket: Socket) => guardSocket(socket, onInternalError));
}

const isDestroyable = (value: unknown): value is { destroy(): unknown } =>
  typeof value === "object" && value !== null && "destroy" in value && typeof value.destroy === "function";
