import { Agent, request } from "undici";

/** A response, or why there is none. `unsent`: the connection was refused, so the request cannot have had an effect. */
export type Result = {
  readonly sentMs: number;
  readonly answeredMs: number;
} & (
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: Readonly<Record<string, string | string[] | undefined>>;
      readonly text: string;
    }
  | { readonly kind: "unsent"; readonly why: string }
  | { readonly kind: "lost"; readonly why: string }
);

export interface Send {
  readonly method: "GET" | "POST";
  readonly url: string;
  readonly headers?: Record<string, string>;
  readonly body?: string;
  readonly timeoutMs: number;
}

const NOT_CONNECTED: ReadonlySet<unknown> = new Set(["ECONNREFUSED", "UND_ERR_CONNECT_TIMEOUT"]);

/** Keeps connections open, and never repeats a request. */
export class Http {
  readonly #agent = new Agent({ connections: 24, pipelining: 1, keepAliveTimeout: 4_000, connect: { timeout: 2_000 } });

  async send({ method, url, headers = {}, body, timeoutMs }: Send): Promise<Result> {
    const sentMs = Date.now();
    try {
      const response = await request(url, {
        dispatcher: this.#agent,
        method,
        headers,
        ...(body === undefined ? {} : { body }),
        headersTimeout: timeoutMs,
        bodyTimeout: timeoutMs,
      });
      const text = await response.body.text();
      const { statusCode: status } = response;
      return { kind: "answered", sentMs, answeredMs: Date.now(), status, headers: response.headers, text };
    } catch (error) {
      const { code, message } = error as { code?: string; message: string };
      const kind = NOT_CONNECTED.has(code) ? "unsent" : "lost";
      return { kind, sentMs, answeredMs: Date.now(), why: code ?? message };
    }
  }

  async close(): Promise<void> {
    await this.#agent.destroy();
  }
}

/** Parses JSON of a shape that the caller knows; undefined when it is not JSON. */
export function readJson<T>(text: string): T | undefined {
  try {
    return JSON.parse(text) as T;
  } catch {
    return undefined;
  }
}
