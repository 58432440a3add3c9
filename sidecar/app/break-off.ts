import type { ServerResponse } from "node:http";

/**
 * Closes the connection of an answer that was begun and will not be whole. The client tells by its framing, but for HTTP/1.0,
 * where the end of the connection is the end of the answer: there only a reset says that it is not.
 */
export function breakOff(res: ServerResponse): void {
  if (res.req.httpVersion === "1.0") res.socket?.resetAndDestroy();
  res.destroy();
}
