import * as z from "zod";
import type { OverrideRow } from "../../db/overrides.ts";
import { DurationOut, unixMs } from "../schemas.ts";

/* Shared fields of ratelimit.* (api-v2.md section 15). */

export const Namespace = z
  .string()
  .min(1)
  .max(512)
  .describe("Id or name of the namespace; an id takes precedence over an equal name.")
  .meta({ examples: ["email.outbound"] });

export const Identifier = z
  .string()
  .min(1)
  .max(512)
  .describe("Identifier of the limited caller: a user id, an address, or another string that distinguishes callers.")
  .meta({ examples: ["user_123"] });

const THIRTY_DAYS_MS = 2_592_000_000;

/** Fields of a limit in a request. */
export const LimitFields = {
  namespace: Namespace,
  identifier: Identifier,
  limit: z
    .int()
    .min(1)
    .describe("Units per window, unless an override applies.")
    .meta({ examples: [10] }),
  duration: z
    .int()
    .min(1000)
    .max(THIRTY_DAYS_MS)
    .describe("Window length in ms.")
    .meta({ examples: [60_000] }),
  cost: z
    .int()
    .min(0)
    .default(1)
    .describe("Units to consume; 0 checks the limit without consuming.")
    .meta({ examples: [1] }),
};

export const AppliedLimitOut = z
  .int()
  .describe("Limit that was applied, in units per window.")
  .meta({ examples: [10] });
export const RemainingOut = z
  .int()
  .describe("Remaining units of this window.")
  .meta({ examples: [9] });
export const WindowEndOut = unixMs("When the window ends, Unix milliseconds.");
export const AppliedOverrideOut = z
  .string()
  .describe("Id of the override that was applied, if any.")
  .meta({ examples: ["rlor_3mNp5Qr7St9Uv2Wx"] });

export const OverrideIdentifier = z
  .string()
  .min(1)
  .max(512)
  .describe("Identifier to which the override applies. Each `*` matches any number of characters.")
  .meta({ examples: ["premium_*"] });

export const OverrideOut = z.strictObject({
  overrideId: z
    .string()
    .describe("Id of the override.")
    .meta({ examples: ["rlor_3mNp5Qr7St9Uv2Wx"] }),
  identifier: z
    .string()
    .describe("Identifier to which the override applies, as it was set.")
    .meta({ examples: ["premium_*"] }),
  limit: z
    .int()
    .describe("Units per window; 0 rejects every request.")
    .meta({ examples: [1000] }),
  duration: DurationOut,
});
export type OverrideOut = z.output<typeof OverrideOut>;

export const toOverrideOut = ({ id, identifier, max_count, duration_ms }: OverrideRow): OverrideOut => ({
  overrideId: id,
  identifier,
  limit: max_count,
  duration: duration_ms,
});

export const NamespaceOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the namespace.")
    .meta({ examples: ["rlns_6yZa8Bc1De3Fg5Hj"] }),
  name: z
    .string()
    .describe("Name of the namespace.")
    .meta({ examples: ["email.outbound"] }),
  createdAt: unixMs("When the namespace was created, Unix milliseconds."),
});
export type NamespaceOut = z.output<typeof NamespaceOut>;

export const toNamespaceOut = (row: { id: string; name: string; created_at: number }): NamespaceOut => ({
  id: row.id,
  name: row.name,
  createdAt: row.created_at,
});
