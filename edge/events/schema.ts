import { createHash } from "node:crypto";
import * as z from "zod";
import type { TakenEvents, UsageEvent } from "./contract.ts";

/*
 * Gates write the events, and a gate may be compromised or of another version. So the ingester validates each event with a schema; an event
 * that does not match is skipped.
 */

const Text = z.string().max(4096);
const Count = z.number().min(0).max(Number.MAX_SAFE_INTEGER);
/** Id of limited length, because a database index stores it. */
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
  appId: Text.optional(),
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

/** Parses an event from the stream of `workspaceId`. Returns `undefined` if the text is not a valid event of this workspace. */
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

/** Stored lines of events. Each iteration parses them again. */
export class EventLines implements TakenEvents {
  readonly workspaceId: string;
  readonly lines: string;

  constructor(workspaceId: string, lines: string) {
    this.workspaceId = workspaceId;
    this.lines = lines;
  }

  /** Hash of the content. Entry ids are not part of it, because they may repeat after a stream was deleted. */
  get batchId(): string {
    return createHash("sha256").update(`${this.workspaceId}\n${this.lines}`).digest("hex").slice(0, 32);
  }

  *[Symbol.iterator](): Iterator<UsageEvent> {
    for (const line of this.lines.split("\n")) {
      const event = readEvent(line, this.workspaceId);
      if (event !== undefined) yield event;
    }
  }
}
