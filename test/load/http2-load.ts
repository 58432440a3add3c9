import { type ClientHttp2Session, connect } from "node:http2";
import type { LoadResult, Work } from "./generator.ts";
import { percentile } from "./measure.ts";

/** GETs over HTTP/2 by prior knowledge, so many at once on one connection, as gateways send them. Throws when a response is not a success. */
export function http2Load(
  url: string,
  headers: Readonly<Record<string, string>>,
  { streams, durationMs }: { readonly streams: number; readonly durationMs: number },
): Work {
  return async (): Promise<LoadResult> => {
    const { origin, pathname } = new URL(url);
    const session = connect(origin);
    const failed = new Promise<never>((_, reject) => session.once("error", reject));
    try {
      const startedMs = performance.now();
      const untilMs = startedMs + durationMs;
      const tookMs: number[] = [];
      const worker = async (): Promise<void> => {
        while (performance.now() < untilMs) {
          const sentMs = performance.now();
          await get(session, pathname, headers);
          tookMs.push(performance.now() - sentMs);
        }
      };
      await Promise.race([Promise.all(Array.from({ length: streams }, worker)), failed]);
      const requests = tookMs.length;
      const requestsPerSecond = (1000 * requests) / (performance.now() - startedMs);
      return { requests, requestsPerSecond, p99Ms: percentile(tookMs, 99) };
    } finally {
      session.destroy();
    }
  };
}

const get = (session: ClientHttp2Session, path: string, headers: Readonly<Record<string, string>>): Promise<void> =>
  new Promise((resolve, reject) => {
    const stream = session.request({ ":path": path, ...headers });
    let status: number | undefined;
    stream.on("response", (head) => {
      status = head[":status"];
    });
    stream.on("error", reject);
    stream.once("close", () => (status === 200 ? resolve() : reject(new Error(`${path}: ${status}`))));
    stream.resume();
  });
