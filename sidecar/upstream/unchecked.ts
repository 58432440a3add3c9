import { compileHeadReader } from "../http/head.ts";
import type { Begin } from "../http/listener.ts";
import { type ForwardDeps, forward } from "./forward.ts";

const readAnyHead = compileHeadReader([]);
const EXTRAS = { requestId: undefined, shown: undefined, admission: undefined };

/** Forwards all requests without checks, as the baseline of the benchmark. */
export const forwardUnchecked =
  (deps: ForwardDeps): Begin =>
  (client) => {
    const head = readAnyHead(client.rawHeaders, client.httpVersion);
    const request = { method: client.method, target: client.url, address: "", head };
    forward(deps, client, request, EXTRAS, performance.now());
  };
