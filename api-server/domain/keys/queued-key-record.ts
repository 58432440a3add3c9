import * as z from "zod";
import type { AuditedCall } from "../../db/audit.ts";
import type { Json } from "../../db/identities.ts";
import { UNMANAGED } from "../managed/rules.ts";
import type { KeyDefinition } from "./import-full-keys.ts";

/*
 * JSON part of a queued key's row. An api-server of another release may have written it, so unknown members are ignored and missing ones
 * get defaults.
 */

/** Makes a member optional in the input, but always present in the output. `optional()` would omit a missing member from the output. */
const orUndefined = <Schema extends z.ZodType>(schema: Schema) => schema.optional().transform((value) => value);

const Definition = z.object({
  start: z.string().default(""),
  name: orUndefined(z.string()),
  externalId: orUndefined(z.string()),
  environment: orUndefined(z.string()),
  // Keeps `meta` unchanged, because a record schema would omit members with certain names.
  meta: orUndefined(z.custom<Json>((value) => typeof value === "object" && value !== null)),
  roles: z.array(z.string()).default([]),
  permissions: z.array(z.string()).default([]),
  expires: orUndefined(z.number()),
  enabled: z.boolean().default(true),
  credits: orUndefined(
    z.object({
      remaining: z.number().nullable(),
      refill: z
        .object({
          interval: z.enum(["daily", "monthly"]),
          amount: z.number(),
          refillDay: z.number().optional(),
        })
        .optional(),
    }),
  ),
  ratelimits: z
    .array(z.object({ name: z.string(), limit: z.number(), duration: z.number(), autoApply: z.boolean() }))
    .default([]),
});

/** Parses the definition of a queued key. Throws if it is unreadable. */
export const readDefinition = (record: unknown): KeyDefinition => Definition.parse(record);

export const writeDefinition = ({
  start,
  name,
  externalId,
  environment,
  meta,
  roles,
  permissions,
  expires,
  enabled,
  credits,
  ratelimits,
}: KeyDefinition): Json => ({
  start,
  name,
  externalId,
  environment,
  meta,
  roles,
  permissions,
  expires,
  enabled,
  credits,
  ratelimits,
});

/** The caller that requested a key, and its request; the audit log records both when the key is created. */
type QueuedCall = Omit<AuditedCall, "deps">;

const RequestedRecord = z.object({
  rootKeyId: z.string(),
  rootKeyName: orUndefined(z.string()),
  requestId: z.string().default(""),
  clientIp: z.string().default(""),
  userAgent: orUndefined(z.string()),
});

/** Parses the call that requested a key. Throws if it is unreadable. */
export function readAsked(workspaceId: string, record: unknown): QueuedCall {
  const { rootKeyId, rootKeyName = "root key", ...origin } = RequestedRecord.parse(record);
  const actor = { type: "rootkey", id: rootKeyId, name: rootKeyName } as const;
  return { caller: { workspaceId, actor }, management: UNMANAGED, origin };
}

/** Returns the request id for the log; `undefined` if the record is unreadable. */
export const requestIdOf = (record: unknown): string | undefined => RequestedRecord.safeParse(record).data?.requestId;

/** Serializes the call that requested a key. Only v1 queues keys, and only root keys call v1. */
export function writeAsked({ caller: { actor }, origin }: QueuedCall): Json {
  const { requestId, clientIp, userAgent } = origin;
  return { rootKeyId: actor.id, rootKeyName: actor.name, requestId, clientIp, userAgent };
}
