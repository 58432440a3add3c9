import { formatDuration } from "../../core/manifests/from-store/format-duration.ts";
import { DEFAULT_TIMEOUTS, type Timeouts } from "../../sidecar/config.ts";
import { duration } from "../accepts.ts";
import { parseDurationOption } from "../values.ts";

/* Timeout options of a gate: for the app's responses, and for idle connections. */

const TIMEOUT = duration({ minMs: 1_000, maxMs: 86_400_000 });
const TIMEOUT_OR_NONE = duration({ ...TIMEOUT, minMs: 0 });

export const waitOptions = {
  "upstream-response-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "maximum time until the app starts its response; the client then gets 504",
    default: formatDuration(DEFAULT_TIMEOUTS.headersMs),
    env: "POSTERN_UPSTREAM_RESPONSE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "upstream-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "maximum pause in the app's response; its connection is then closed",
    default: formatDuration(DEFAULT_TIMEOUTS.bodyIdleMs),
    env: "POSTERN_UPSTREAM_IDLE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "stream-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "maximum idle time of server-sent event streams, and of each direction of gRPC calls",
    default: formatDuration(DEFAULT_TIMEOUTS.eventsIdleMs),
    env: "POSTERN_STREAM_IDLE_TIMEOUT",
    accepts: TIMEOUT,
  },
  "websocket-idle-timeout": {
    type: "string",
    placeholder: "DURATION",
    help: "maximum time that a WebSocket may be idle in both directions; 0 disables the limit",
    default: formatDuration(DEFAULT_TIMEOUTS.tunnelIdleMs),
    env: "POSTERN_WEBSOCKET_IDLE_TIMEOUT",
    accepts: TIMEOUT_OR_NONE,
  },
} as const;

/** Parses the timeouts. Throws `UsageError` for a value that is not a duration of up to one day. */
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
