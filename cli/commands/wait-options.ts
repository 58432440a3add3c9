import type { Timeouts } from "../../sidecar/config.ts";
import { whole } from "../accepts.ts";
import { parseInteger } from "../values.ts";

/* How long a gate waits for the app, and on connections that may be silent. */

const SECONDS = whole({ min: 1, max: 86_400, unit: "seconds" });
const SECONDS_OR_NONE = whole({ ...SECONDS, min: 0 });

export const waitOptions = {
  "answer-wait": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long the app may take to begin an answer (long polling), before the client gets 504",
    default: "300",
    env: "POSTERN_ANSWER_WAIT",
    accepts: SECONDS,
  },
  "answer-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long an answer of the app may pause, before its connection is closed",
    default: "300",
    env: "POSTERN_ANSWER_IDLE",
    accepts: SECONDS,
  },
  "events-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "the same for a stream of server-sent events, and for calls of gRPC in either direction",
    default: "3600",
    env: "POSTERN_EVENTS_IDLE",
    accepts: SECONDS,
  },
  "websocket-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long a WebSocket may be silent in both directions; 0 for no limit",
    default: "0",
    env: "POSTERN_WEBSOCKET_IDLE",
    accepts: SECONDS_OR_NONE,
  },
} as const;

/** Throws UsageError for what is no whole number of seconds within a day. */
export function parseWaits(
  options: Readonly<Record<keyof typeof waitOptions, string>>,
): Pick<Timeouts, "headersMs" | "bodyIdleMs" | "eventsIdleMs" | "tunnelIdleMs"> {
  const ms = (name: keyof typeof waitOptions): number =>
    1000 * parseInteger(name, options[name], waitOptions[name].accepts);
  return {
    headersMs: ms("answer-wait"),
    bodyIdleMs: ms("answer-idle"),
    eventsIdleMs: ms("events-idle"),
    tunnelIdleMs: ms("websocket-idle"),
  };
}
