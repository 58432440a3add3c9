import type { Timeouts } from "../../sidecar/config.ts";
import { duration } from "../accepts.ts";
import { parseDurationOption } from "../values.ts";

/* How long a gate waits for the app, and on connections that may be silent. */

const TIMEOUT = duration({ minMs: 1_000, maxMs: 86_400_000 });
const TIMEOUT_OR_NONE = duration({ ...TIMEOUT, minMs: 0 });

export const waitOptions = {
  "upstream-response-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "how long the app may take to begin an answer (long polling), before the client gets 504",
    default: "5m",
    env: "POSTERN_UPSTREAM_RESPONSE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "upstream-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "how long an answer of the app may pause, before its connection is closed",
    default: "5m",
    env: "POSTERN_UPSTREAM_IDLE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "stream-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "the same for a stream of server-sent events, and for calls of gRPC in either direction",
    default: "1h",
    env: "POSTERN_STREAM_IDLE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "websocket-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "how long a WebSocket may be silent in both directions; 0 for no limit",
    default: "0s",
    env: "POSTERN_WEBSOCKET_IDLE_TIMEOUT",
    accepts: TIMEOUT_OR_NONE,
  },
} as const;

/** Throws `UsageError` for a value that is not a duration of up to one day. */
export function parseWaits(
  options: Readonly<Record<keyof typeof waitOptions, string>>,
): Pick<Timeouts, "headersMs" | "bodyIdleMs" | "eventsIdleMs" | "tunnelIdleMs"> {
  const ms = (name: keyof typeof waitOptions): number =>
    parseDurationOption(name, options[name], waitOptions[name].accepts);
  return {
    headersMs: ms("upstream-response-timeout"),
    bodyIdleMs: ms("upstream-idle-timeout"),
    eventsIdleMs: ms("stream-idle-timeout"),
    tunnelIdleMs: ms("websocket-idle-timeout"),
  };
}
