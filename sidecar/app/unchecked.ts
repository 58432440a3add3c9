import { compileHeadReader } from "../http/head.ts";
import type { Begin } from "../http/turns.ts";
import { type ForwardParts, forward } from "./forward.ts";

const readAnyHead = compileHeadReader([]);
const EXTRAS = { requestId: undefined, shown: undefined, admission: undefined };

/** Forwards everything directly: the baseline for the benchmark of the checks. */
export const forwardUnchecked =
  (parts: ForwardParts): Begin =>
  (req, res) => {
    const head = readAnyHead(req.rawHeaders, req.httpVersion);
    const request = { method: req.method ?? "", target: req.url ?? "", address: "", head };
    forward(parts, req, res, request, EXTRAS, performance.now());
  };
