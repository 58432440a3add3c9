import type { Timeouts } from "../../sidecar/config.ts";
import { parseWhole } from "../values.ts";

/* How long a gate waits for the app, and on connections that may be silent. */

const DAY_S = 86_400;

export const waitOptions = {
  "answer-wait": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long the app may take to begin an answer (long polling), before the client gets 504",
    default: "300",
    env: "POSTERN_ANSWER_WAIT",
  },
  "answer-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long an answer of the app may pause, before its connection is closed",
    default: "300",
    env: "POSTERN_ANSWER_IDLE",
  },
  "events-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "the same for a stream of server-sent events",
    default: "3600",
    env: "POSTERN_EVENTS_IDLE",
  },
  "websocket-idle": {
    type: "string",
    placeholder: "SECONDS",
    help: "how long a WebSocket may be silent in both directions; 0 for no limit",
    default: "0",
    env: "POSTERN_WEBSOCKET_IDLE",
  },
} as const;

/** Throws UsageError for what is no whole number of seconds within a day. */
export function parseWaits(
  options: Readonly<Record<keyof typeof waitOptions, string>>,
): Pick<Timeouts, "headersMs" | "bodyIdleMs" | "eventsIdleMs" | "tunnelIdleMs"> {
  const ms = (name: keyof typeof waitOptions, min = 1): number =>
    1000 * parseWhole(name, options[name], { min, max: DAY_S });
  return {
    headersMs: ms("answer-wait"),
    bodyIdleMs: ms("answer-idle"),
    eventsIdleMs: ms("events-idle"),
    tunnelIdleMs: ms("websocket-idle", 0),
  };
}
