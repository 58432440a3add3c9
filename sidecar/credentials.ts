import { readFileSync } from "node:fs";
import { request as httpRequest, type IncomingMessage } from "node:http";
import { request as httpsRequest } from "node:https";
import type { Logger } from "pino";
import { readRetryAfterMs } from "../core/api/retry.ts";
import { backoffMs, jitterMs } from "../core/backoff.ts";
import { CREDENTIALS_PATH, CredentialsReply, type CredentialsRequest } from "../core/gates/credentials.ts";

/*
 * Maintains the Redis credentials of the gate, which an api-server issues for the ServiceAccount token of the pod.
 *
 *   none ──issued──► held ──a sixth of its lifetime is over, or Redis rejected it──► requesting (and held) ──issued──► held
 *     │ failed                                                                  │ failed
 *     ▼                                                                         ▼
 *   retries with backoff or `Retry-After`                              retries, and keeps its credentials
 *
 * The gate uses its credentials until Redis rejects them, because api-servers may be unreachable for hours.
 */

export interface CredentialsOptions {
  /** URL of an api-server. */
  readonly apiUrl: string;
  /** Returns the CA bundle (PEM) that verifies the server certificate; `undefined` selects the system's authorities. */
  readonly ca: (() => string) | undefined;
  /** File with the ServiceAccount token, which Kubernetes replaces before the token expires. */
  readonly tokenFile: string;
  readonly asked: CredentialsRequest;
  readonly logger: Pick<Logger, "info" | "warn">;
}

export interface Credentials {
  /** Current credentials; `undefined` until the first ones are issued. */
  readonly current: { readonly username: string; readonly password: string } | undefined;
  /**
   * Called when Redis has rejected the credentials, or when there are none. Requests new credentials immediately, unless the last ones were
   * issued less than `REFUSED_PAUSE_MS` ago.
   */
  refused(): void;
  close(): void;
}

const RENEWED_AFTER_SHARE = 1 / 6;
const RETRY = { firstMs: 500, maxMs: 30_000, random: Math.random };
/** Delay after a rejection by Redis: a Redis user that was just created on one node may still be missing on another. */
const REFUSED_PAUSE_MS = 1_000;
/** Bounds to which `Retry-After` is clamped, because a value outside them is probably a mistake. */
const RETRY_AFTER_MS = { min: 1_000, max: 60_000 } as const;
const RESPONSE_MS_MAX = 10_000;
const RESPONSE_BYTES_MAX = 64 * 1024;

/** Requests credentials immediately, and again before they expire. Returns without waiting for the first response. */
export function keepCredentials(options: CredentialsOptions): Credentials {
  const { logger } = options;
  let current: Credentials["current"];
  let timer: NodeJS.Timeout | undefined;
  let isAsking = false;
  let isClosed = false;
  let failures = 0;
  let gotAtMs = Number.NEGATIVE_INFINITY;
  let problem: string | undefined;

  const askIn = (ms: number): void => {
    clearTimeout(timer);
    if (isClosed) return;
    timer = setTimeout(() => void ask(), ms);
    timer.unref();
  };

  async function ask(): Promise<void> {
    if (isAsking) return;
    isAsking = true;
    try {
      const { username, password, validMs } = await fetchCredentials(options);
      current = { username, password };
      gotAtMs = performance.now();
      if (failures > 0) logger.info({ failures }, "Redis credentials received");
      failures = 0;
      problem = undefined;
      askIn(jitterMs(validMs * RENEWED_AFTER_SHARE, 0.2, Math.random));
    } catch (error) {
      failures += 1;
      const reason = error instanceof Error ? error.message : String(error);
      // Logs the warning only when the reason changes.
      if (reason !== problem)
        logger.warn({ reason, held: current !== undefined }, "Redis credentials cannot be requested; retrying");
      problem = reason;
      const reportedMs = error instanceof NotNow ? error.retryAfterMs : undefined;
      const { min, max } = RETRY_AFTER_MS;
      // Adds a random delay to `Retry-After`, so that gates that were rejected at the same time do not retry at the same time.
      askIn(
        reportedMs === undefined
          ? backoffMs(failures, RETRY)
          : jitterMs(Math.min(max, Math.max(min, reportedMs)) * 1.5, 1 / 3, Math.random),
      );
    } finally {
      isAsking = false;
    }
  }

  void ask();
  return {
    get current() {
      return current;
    },
    refused() {
      // After a failed request, a retry is already scheduled.
      if (failures > 0 || isAsking || performance.now() - gotAtMs < REFUSED_PAUSE_MS) return;
      void ask();
    },
    close() {
      isClosed = true;
      clearTimeout(timer);
    },
  };
}

async function fetchCredentials({ apiUrl, ca, tokenFile, asked }: CredentialsOptions): Promise<CredentialsReply> {
  const token = readFileSync(tokenFile, "utf8").trim();
  const url = new URL(CREDENTIALS_PATH, apiUrl);
  const body = JSON.stringify(asked);
  const headers = {
    Authorization: `Bearer ${token}`,
    "Content-Type": "application/json",
    "Content-Length": Buffer.byteLength(body),
  };
  const common = { method: "POST", headers, agent: false, signal: AbortSignal.timeout(RESPONSE_MS_MAX) } as const;
  const { status, retryAfter, text } = await new Promise<ApiResponse>((resolve, reject) => {
    const onResponse = (response: IncomingMessage): void => {
      const { statusCode = 0, headers: got } = response;
      readText(response).then(
        (answer) => resolve({ status: statusCode, retryAfter: got["retry-after"], text: answer }),
        reject,
      );
    };
    const sent =
      url.protocol === "https:"
        ? httpsRequest(url, ca === undefined ? common : { ...common, ca: ca() }, onResponse)
        : httpRequest(url, common, onResponse);
    sent.on("error", reject);
    sent.end(body);
  });
  if (status !== 200) {
    throw new NotNow(`the api-server answered ${status}: ${detailOf(text)}`, readRetryAfterMs(retryAfter));
  }
  return CredentialsReply.parse(JSON.parse(text));
}

interface ApiResponse {
  readonly status: number;
  readonly retryAfter: string | undefined;
  readonly text: string;
}

class NotNow extends Error {
  /** `Retry-After` of the response; `undefined` if the server sent none. */
  readonly retryAfterMs: number | undefined;

  constructor(message: string, retryAfterMs: number | undefined) {
    super(message);
    this.retryAfterMs = retryAfterMs;
  }
}

async function readText(response: IncomingMessage): Promise<string> {
  let text = "";
  for await (const chunk of response.setEncoding("utf8")) {
    text += chunk;
    if (text.length > RESPONSE_BYTES_MAX) throw new Error("the api-server's answer is too long");
  }
  return text;
}

/** Returns the `detail` of an error body, or an empty string for any other body. */
function detailOf(text: string): string {
  try {
    return String(JSON.parse(text).error.detail).slice(0, 300);
  } catch {
    return "no error body";
  }
}
