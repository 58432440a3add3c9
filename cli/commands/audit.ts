import type { Data } from "../../core/api/procedures.ts";
import { withApi } from "../api/connection.ts";
import { pagesOf, readPaging } from "../api/pages.ts";
import { defineCommand } from "../command.ts";
import { type Fields, instantText, pagedShape } from "../fields.ts";
import { connection, json, paging } from "../options.ts";
import { printPages } from "../output.ts";
import { parseInstant } from "../values.ts";

type AuditRow = Data<"admin.listAudit">[number];

const auditFields: Fields<AuditRow> = [
  { name: "id", value: (row) => row.id },
  { name: "time", title: "time", value: (row) => row.time, text: (row) => instantText(row.time) },
  { name: "event", title: "event", value: (row) => row.event },
  { name: "actor", title: "actor", value: (row) => row.actor, text: actorText, shrinks: true },
  { name: "targets", title: "targets", value: (row) => row.targets, text: targetsText, shrinks: true },
  { name: "description", title: "description", value: (row) => row.description, shrinks: true },
  { name: "remoteIp", value: (row) => row.remoteIp ?? null },
  { name: "userAgent", value: (row) => row.userAgent ?? null },
  { name: "correlationId", value: (row) => row.correlationId ?? null },
  { name: "requestId", value: (row) => row.requestId ?? null },
  { name: "before", value: (row) => row.before ?? null },
  { name: "after", value: (row) => row.after ?? null },
];

/** Returns the actor of a change, with the manifest that caused the change, if any. */
function actorText({ actor: { type, id, name, manager } }: AuditRow): string {
  const who = type === "rootkey" ? `${name} (${id})` : type === "cli" ? `cli: ${name}` : name;
  return manager === undefined ? who : `${who} for ${manager}`;
}

function targetsText({ targets }: AuditRow): string {
  return targets.map(({ id }) => id).join(", ");
}

export const audit = defineCommand({
  name: "audit",
  description: "Requires workspace.*.read_audit.",
  options: {
    event: { type: "string", placeholder: "EVENT", help: "event filter, such as key.update" },
    target: { type: "string", placeholder: "ID", help: "id of the changed object" },
    since: {
      type: "string",
      placeholder: "TIME",
      help: "start time, such as 2026-12-31 or 24h",
    },
    ...paging,
    ...connection,
    json,
  },
  response: pagedShape("events", auditFields),
  run: async (options, io) => {
    const { since, event, target: targetId } = options;
    const body = {
      ...(event === undefined ? {} : { event }),
      ...(targetId === undefined ? {} : { targetId }),
      ...(since === undefined ? {} : { since: parseInstant("since", since, { nowMs: Date.now(), spans: "back" }) }),
    };
    const paged = readPaging(options);
    await withApi(options, io, (api) => {
      const pages = pagesOf(api, "admin.listAudit", body, paged);
      return printPages(io, options, { resources: "events", fields: auditFields, pages });
    });
    return 0;
  },
});
