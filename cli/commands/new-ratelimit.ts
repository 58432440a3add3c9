import type { Schema } from "../../core/api/procedures.ts";
import { formatDuration } from "../../core/manifests/from-store/format-duration.ts";
import { invalidValue, parseDurationOption } from "../values.ts";

/* Option for the rate limits of keys and identities, such as `requests=100/1m`. */

export const ratelimit = {
  type: "string",
  placeholder: "NAME=LIMIT/DURATION",
  help: "limit charged by each verification, such as requests=100/1m; with the suffix `,named`, only by requests that name it",
  repeats: true,
} as const;

const SPEC = /^([^=]{1,128})=(\d{1,15})\/(\w{1,32})(,named)?$/;

/** Parses a rate limit. Throws `UsageError` if it is invalid. */
export function parseRatelimit(text: string): Schema<"NewRatelimit"> {
  const [, name, limit, duration, named] = SPEC.exec(text) ?? [];
  if (name === undefined || limit === undefined || duration === undefined) {
    throw invalidValue("ratelimit", text, "NAME=LIMIT/DURATION such as requests=100/1m");
  }
  return {
    name,
    limit: Number(limit),
    duration: parseDurationOption("ratelimit", duration, { minMs: 1 }),
    autoApply: named === undefined,
  };
}

/** Returns the rate limit in the format of the option, such as `requests=100/1m`. */
export const ratelimitText = ({ name, limit, duration, autoApply }: Required<Schema<"NewRatelimit">>): string =>
  `${name}=${limit}/${formatDuration(duration)}${autoApply ? "" : ",named"}`;
