import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/*
 * Prevents input from a client or from the app from ending the process. The input is handled by listeners of Node, of libraries and of this
 * project, all of which are called by their emitter's `emit`. The guard wraps `emit` once for each kind of emitter, so it covers every
 * listener. It reports an exception and closes the connection that caused it; all other connections continue.
 */

/** Counts and logs an exception. Must never throw. */
export type OnInternalError = (error: unknown) => void;

interface Emitter {
  emit(event: string | symbol, ...args: unknown[]): boolean;
}

interface Thrown<E> {
  readonly error: unknown;
  readonly emitter: E;
  /** Arguments with which `emit` called the listeners. */
  readonly args: readonly unknown[];
}

/**
 * Catches exceptions that the listeners of an emitter throw. If `target` is a prototype, this covers every emitter that inherits from it.
 */
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

/** Runs code that no emitter calls, such as a timer's callback, and reports its exceptions. */
export function guardRun(run: () => void, onInternalError: OnInternalError): void {
  try {
    run();
  } catch (error) {
    onInternalError(error);
  }
}

/** Closes the socket when one of its listeners throws. */
export function guardSocket(socket: Socket, onInternalError: OnInternalError): void {
  guardEmits(socket, ({ error }) => {
    onInternalError(error);
    socket.destroy();
  });
}

/** Returns request and response classes for `createServer`. They close the connection when one of their listeners throws. */
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

/** Guards the listeners of a server and of the connections that it accepts. */
export function guardServer(server: Server, onInternalError: OnInternalError): void {
  guardEmits(server, ({ error, args }) => {
    onInternalError(error);
    // The arguments are a request and its response, or a connection. Destroying any of them closes the connection.
    for (const arg of args) if (isDestroyable(arg)) arg.destroy();
  });
  server.on("connection", (socket: Socket) => guardSocket(socket, onInternalError));
}

const isDestroyable = (value: unknown): value is { destroy(): unknown } =>
  typeof value === "object" && value !== null && "destroy" in value && typeof value.destroy === "function";
