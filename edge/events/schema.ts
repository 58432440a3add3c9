import * as z from "zod";
import type { TakenEvents, UsageEvent } from "./contract.ts";

/*
 * Events are written by pods, which may be compromised or of another version, so the ingester reads them with a schema:
 * one that is not understood is skipped and must not stop the others.
 */

const Text = z.string().max(4096);
const Count = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
/** Part of an index, whose entries have a bound of their own. */
const Id = z.string().min(1).max(256);
const Common = { id: Id, requestId: Text, timeMs: z.int().min(0), workspaceId: Text, latencyMs: Count };

const VerificationSchema = z.object({
  type: z.literal("verification"),
  ...Common,
  keySpaceId: Text,
  apiId: Text,
  keyId: Text,
  identityId: Text.optional(),
  externalId: Text.optional(),
  outcome: Text,
  tags: z.array(Text).max(100),
  region: Text,
  source: z.enum(["api", "sidecar"]),
  spentCredits: Count,
});

const RatelimitSchema = z.object({
  type: z.literal("ratelimit"),
  ...Common,
  namespaceId: Text,
  identifier: Text,
  passed: z.boolean(),
  overrideId: Text.optional(),
  limit: Count,
  remaining: Count,
  resetMs: z.int().min(0),
  cost: Count,
});

const EventSchema = z.discriminatedUnion("type", [VerificationSchema, RatelimitSchema]);

/** Reads an event of the stream of `workspaceId`; undefined when it is none, or claims to be of another workspace. */
export function readEvent(text: string, workspaceId: string): UsageEvent | undefined {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    return undefined;
  }
  const read = EventSchema.safeParse(value);
  return read.success && read.data.workspaceId === workspaceId ? read.data : undefined;
}

/** Reads its lines anew each time it is iterated. */
export class EventLines implements TakenEvents {
  readonly workspaceId: string;
  readonly lines: string;

  constructor(workspaceId: string, lines: string) {
    this.workspaceId = workspaceId;
    this.lines = lines;
  }

  *[Symbol.iterator](): Iterator<UsageEvent> {
    for (const line of this.lines.split("\n")) {
      const event = readEvent(line, this.workspaceId);
      if (event !== undefined) yield event;
    }
  }
}
