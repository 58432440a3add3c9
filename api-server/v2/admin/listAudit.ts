import * as z from "zod";
import { type AuditRow, listAudit as listAuditRows } from "../../db/audit.ts";
import { readBriefly } from "../../domain/lists/pages.ts";
import { onWorkspace } from "../../domain/permissions/required-permissions.ts";
import { type Call, defineListProcedure, type Page } from "../../procedure.ts";
import { Cursor, PageLimit, unixMs } from "../schemas.ts";

const Instant = z
  .int()
  .min(0)
  .meta({ examples: [1_767_225_600_000] });
const AnyId = z.string().min(1).max(255);

const Body = z.strictObject({
  since: Instant.optional().describe("Returns only changes at this time or later, Unix ms."),
  until: Instant.optional().describe("Returns only changes at this time or earlier, Unix ms."),
  event: z
    .string()
    .min(1)
    .max(100)
    .optional()
    .describe("Returns only changes with this event.")
    .meta({ examples: ["key.update"] }),
  actorId: AnyId.optional()
    .describe("Returns only changes by this root key or person.")
    .meta({ examples: ["rk_2yDf4Gh6Jk8Lm0Np"] }),
  targetId: AnyId.optional()
    .describe("Returns only changes to this object.")
    .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
  requestId: AnyId.optional()
    .describe("Returns only changes by this request.")
    .meta({ examples: ["req_9Tz5Bv2Nm7Qw4Xy1"] }),
  limit: PageLimit,
  cursor: Cursor.max(300).optional(),
});
type Body = z.output<typeof Body>;

const Changed = z
  .record(z.string(), z.unknown())
  .optional()
  .meta({ examples: [{ name: "Billing", enabled: true }] });

export const AuditRowOut = z.strictObject({
  id: z
    .string()
    .describe("Id of the audit row.")
    .meta({ examples: ["log_5Hj7Kl9Mn1Pq3Rs5"] }),
  time: unixMs("When the change was made, Unix ms."),
  event: z
    .string()
    .describe("Event of the change.")
    .meta({ examples: ["key.update"] }),
  description: z
    .string()
    .describe("Description of the change.")
    .meta({ examples: ["Updated key key_4fGh7Jk2LmN8pQrS"] }),
  actor: z
    .strictObject({
      type: z
        .string()
        .describe("Kind of the actor: `rootkey`, `user`, `cli` or `system`.")
        .meta({ examples: ["rootkey"] }),
      id: z
        .string()
        .describe("Id of the root key or person.")
        .meta({ examples: ["rk_2yDf4Gh6Jk8Lm0Np"] }),
      name: z
        .string()
        .describe("Name at the time of the change.")
        .meta({ examples: ["ci"] }),
      manager: z
        .string()
        .optional()
        .describe("Manager name of the manifest for which the change was made.")
        .meta({ examples: ["main/ApiKey/shop/orders"] }),
    })
    .describe("Actor that made the change."),
  targets: z
    .array(
      z.strictObject({
        type: z
          .string()
          .describe("Kind of the changed object.")
          .meta({ examples: ["key"] }),
        id: z
          .string()
          .describe("Id of the changed object.")
          .meta({ examples: ["key_4fGh7Jk2LmN8pQrS"] }),
        name: z
          .string()
          .optional()
          .describe("Name at the time of the change.")
          .meta({ examples: ["Billing"] }),
      }),
    )
    .describe("Objects that were changed."),
  before: Changed.describe(
    "The changed fields with their previous values. Long values are truncated, and only the size of `meta` is stored.",
  ),
  after: Changed.describe("Changed fields with their new values."),
  remoteIp: z
    .string()
    .optional()
    .describe("Client address.")
    .meta({ examples: ["10.0.0.1"] }),
  userAgent: z
    .string()
    .optional()
    .describe("`User-Agent` header of the client.")
    .meta({ examples: ["curl/8.5.0"] }),
  requestId: z
    .string()
    .optional()
    .describe("Id of the request that made the change.")
    .meta({ examples: ["req_9Tz5Bv2Nm7Qw4Xy1"] }),
  correlationId: z
    .string()
    .optional()
    .describe("Id shared by all audit rows of one call; omitted if the call wrote only one row.")
    .meta({ examples: ["cor_1Ab3Cd5Ef7Gh9Jk1"] }),
});
export type AuditRowOut = z.input<typeof AuditRowOut>;

const required = { readAudit: onWorkspace("read_audit") };

export const listAudit = defineListProcedure({
  path: "admin.listAudit",
  effect: "read",
  summary: "List the changes in the workspace and who made them",
  description:
    "Lists changes, newest first. All given filters must match. The installation configures how long the log is kept (default: 90 days).",
  permissions: required,
  errors: ["request_timeout"],
  addition: true,
  body: Body,
  item: AuditRowOut,
  paginated: true,
  handle,
});

async function handle(call: Call<Body, typeof required>): Promise<Page<AuditRowOut>> {
  const { body, caller, deps } = call;
  const { limit, cursor, since: sinceMs = 0, until: untilMs, ...filter } = body;
  call.require(required.readAudit);
  const { workspaceId } = caller;
  // Reads one extra row. If it exists, there is a next page, which starts with this row.
  const requested = { workspaceId, ...filter, sinceMs, untilMs, from: readCursor(cursor), rowsMax: limit + 1 };
  // Advice after a timeout. If two filters each match many rows but few rows match both, the database may have to read all rows of one
  // filter.
  const advice = "Use a shorter time range or fewer filters.";
  const rows = await readBriefly(deps, advice, (db) => listAuditRows(db, requested));
  const next = rows[limit];
  return { items: rows.slice(0, limit).map(toAuditRowOut), cursor: next && cursorOf(next) };
}

/**
 * Returns the cursor of a row. It contains the row's time, by which the list is sorted, so the list continues even if the row is removed.
 */
const cursorOf = ({ time, id }: AuditRow): string => `${time}_${id}`;

/** Parses a cursor. Any string is accepted; a malformed one starts at the newest row. */
function readCursor(cursor = ""): { timeMs: number; id: string } | undefined {
  const [, time, id] = /^(\d{1,15})_(.*)$/.exec(cursor) ?? [];
  return time === undefined || id === undefined ? undefined : { timeMs: Number(time), id };
}

export function toAuditRowOut(row: AuditRow): AuditRowOut {
  const { type, id, name, meta } = row.actor;
  return {
    id: row.id,
    time: row.time,
    event: row.event,
    description: row.description,
    actor: { type, id, name, ...(typeof meta?.manager === "string" ? { manager: meta.manager } : {}) },
    targets: row.targets.map((target) => ({
      type: target.type,
      id: target.id,
      ...(typeof target.name === "string" ? { name: target.name } : {}),
    })),
    before: row.before ?? undefined,
    after: row.after ?? undefined,
    remoteIp: row.remote_ip ?? undefined,
    userAgent: row.user_agent ?? undefined,
    requestId: row.request_id ?? undefined,
    correlationId: row.correlation_id ?? undefined,
  };
}
