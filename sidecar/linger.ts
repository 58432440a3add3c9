import type { IncomingMessage } from "node:http";

const LINGER_MS = 2_000;

/**
 * For an answer after which Node closes the connection, given before the request's body is there: the connection is closed only
 * when the body has come, or two seconds later. Bytes that meet a closed socket reset it, and the client may then never see
 * the answer. The body has to be read meanwhile.
 */
export function lingerForBody(request: IncomingMessage): void {
  const { socket } = request;
  const destroySoon = socket.destroySoon;
  const closeNow = (): void => {
    if (!socket.destroyed) destroySoon.call(socket);
  };
  socket.destroySoon = () => {
    socket.destroySoon = destroySoon;
    if (request.complete) {
      closeNow();
      return;
    }
    socket.end();
    request.once("end", closeNow);
    setTimeout(() => socket.destroy(), LINGER_MS).unref();
  };
}
