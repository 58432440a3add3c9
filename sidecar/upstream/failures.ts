import type { ServerExchange } from "../../http/http1/server-exchange.ts";
import { answerProblem, type ResponseDeps } from "../http/responding.ts";
import type { Problem } from "../http/responses.ts";
import type { Additions } from "./response-head.ts";
import type { UpstreamFailure } from "./upstream.ts";

/* Problems that the gate sends to a client if the app does not respond. */

/** Reason for a failure; `stalled` means that the client did not send the rest of its body. */
export type Failure = UpstreamFailure | "stalled";

export interface Failed {
  readonly failure: Failure;
  /** Reason to log. It never contains text that was received from the app. */
  readonly why: string;
}

export interface FailureDeps {
  readonly answering: ResponseDeps;
  /** Number of requests without a response from the app, by reason; excludes requests that the gate aborted. */
  readonly counts: Record<Exclude<Failure, "aborted">, number>;
  /** Logs why a response from the app cannot be forwarded. */
  readonly onUnusableResponse: (why: string, requestId: string) => void;
}

const PROBLEMS: Readonly<Record<Failure, Problem>> = {
  unreachable: { kind: "upstream_unreachable", detail: "The app behind the gate cannot be reached." },
  aborted: { kind: "upstream_unreachable", detail: "The app behind the gate cannot be reached." },
  unusable: {
    kind: "upstream_invalid_response",
    detail: "The response of the app behind the gate cannot be forwarded.",
  },
  timeout: { kind: "upstream_timeout", detail: "The app behind the gate did not respond in time." },
  busy: { kind: "upstream_busy", detail: "The app behind the gate had no free capacity in time.", retryAfterS: 1 },
  stalled: { kind: "request_timeout", detail: "The rest of the body did not arrive in time.", location: "body" },
};

/** Responds to the client in place of the app, and counts the failure. `close` closes the connection afterwards. */
export function answerFailure(
  { answering, counts, onUnusableResponse }: FailureDeps,
  client: ServerExchange,
  { failure, why }: Failed,
  { requestId = `req_${answering.nextId()}`, shown, close = false }: Additions & { close?: boolean },
): void {
  if (failure !== "aborted") counts[failure] += 1;
  if (failure === "unusable") onUnusableResponse(why, requestId);
  answerProblem(answering, client, PROBLEMS[failure], { requestId, shown, close: close || failure === "stalled" });
}
