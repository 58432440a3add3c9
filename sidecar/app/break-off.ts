import type { ServerResponse } from "node:http";

/**
 * Closes the connection of a response that has begun and will not be complete. The client notices by the framing, except with HTTP/1.0,
 * where the end of the connection ends the response: there only a reset shows the failure.
 */
export function breakOff(res: ServerResponse): void {
  if (res.req.httpVersion === "1.0") res.socket?.resetAndDestroy();
  res.destroy();
}
