import { IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";

/*
 * No byte of a client or of the app may end the process. Bytes are handled by listeners, Node's and a library's as
 * well as ours, and all of them are called by their emitter's `emit`. The guard is there, once for each kind of emitter,
 * so that no listener can be forgotten. What one throws is reported, and its connection is closed; all others continue.
 */

/** Counts and logs what was thrown. Never throws. */
export type OnFault = (error: unknown) => void;

interface Emitter {
  emit(event: string | symbol, ...args: unknown[]): boolean;
}

interface Thrown<E> {
  readonly error: unknown;
  readonly emitter: E;
  /** The arguments of the listeners. */
  readonly args: readonly unknown[];
}

/** Protects an emitter from its listeners, or all emitters with this prototype. */
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

/** Runs code that no emitter calls: of a timer, or of the next tick. */
export function guardRun(run: () => void, onFault: OnFault): void {
  try {
    run();
  } catch (error) {
    onFault(error);
  }
}

/** Closes a socket whose listeners throw. */
export function guardSocket(socket: Socket, onFault: OnFault): void {
  guardEmits(socket, ({ error }) => {
    onFault(error);
    socket.destroy();
  });
}

/** For `createServer`: closes requests and responses whose listeners throw, with their connection. */
export function guardedMessages(onFault: OnFault): {
  IncomingMessage: typeof IncomingMessage;
  ServerResponse: typeof ServerResponse;
} {
  class GuardedRequest extends IncomingMessage {}
  class GuardedAnswer<R extends IncomingMessage = IncomingMessage> extends ServerResponse<R> {}
  guardEmits(GuardedRequest.prototype, ({ error, emitter }) => {
    onFault(error);
    emitter.socket.destroy();
  });
  guardEmits(GuardedAnswer.prototype, ({ error, emitter }) => {
    onFault(error);
    emitter.req.socket.destroy();
  });
  return { IncomingMessage: GuardedRequest, ServerResponse: GuardedAnswer };
}

/** Protects the server's own events, and the connections that it accepts. */
export function guardServer(server: Server, onFault: OnFault): void {
  guardEmits(server, ({ error, args }) => {
    onFault(error);
    // A request and its response, or a bare connection: destroying either closes the connection.
    for (const arg of args) if (isDestroyable(arg)) arg.destroy();
  });
  server.on("connection", (socket: Socket) => guardSocket(socket, onFault));
}

const isDestroyable = (value: unknown): value is { destroy(): unknown } =>
  typeof value === "object" && value !== null && "destroy" in value && typeof value.destroy === "function";
