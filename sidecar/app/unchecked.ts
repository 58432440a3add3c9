import { compileHeadReader } from "../http/head.ts";
import type { Begin } from "../http/listener.ts";
import { type ForwardParts, forward } from "./forward.ts";

const readAnyHead = compileHeadReader([]);
const EXTRAS = { requestId: undefined, shown: undefined, admission: undefined };

/** Forwards everything directly: the baseline for the benchmark of the checks. */
export const forwardUnchecked =
  (parts: ForwardParts): Begin =>
  (client) => {
    const head = readAnyHead(client.rawHeaders, client.httpVersion);
    const request = { method: client.method, target: client.url, address: "", head };
    forward(parts, client, request, EXTRAS, performance.now());
  };
