import { type AuditRow, listAudit } from "../../api-server/db/audit.ts";
import { withWorkspace } from "../administration.ts";
import { defineCommand } from "../command.ts";
import { type Fields, instantText, listShape } from "../fields.ts";
import { database, json, limit, workspace } from "../options.ts";
import { printList } from "../output.ts";
import { parseInstant, parseLimit } from "../values.ts";

const auditFields: Fields<AuditRow> = [
  { name: "id", value: (row) => row.id },
  { name: "time", title: "time", value: (row) => row.time, text: (row) => instantText(row.time) },
  { name: "event", title: "event", value: (row) => row.event },
  { name: "actor", title: "actor", value: (row) => row.actor, text: actorText, shrinks: true },
  { name: "targets", title: "targets", value: (row) => row.targets, text: targetsText, shrinks: true },
  { name: "description", title: "description", value: (row) => row.description, shrinks: true },
  { name: "remoteIp", value: (row) => row.remote_ip },
  { name: "userAgent", value: (row) => row.user_agent },
  { name: "correlationId", value: (row) => row.correlation_id },
  { name: "requestId", value: (row) => row.request_id },
  { name: "before", value: (row) => row.before },
  { name: "after", value: (row) => row.after },
];

/** Returns the actor of a change, with the manifest that caused the change, if any. */
function actorText({ actor: { type, id, name, meta } }: AuditRow): string {
  const who = type === "rootkey" ? `${name} (${id})` : type === "cli" ? `cli: ${name}` : name;
  return meta?.manager === undefined ? who : `${who} for ${meta.manager}`;
}

function targetsText({ targets }: AuditRow): string {
  return targets.map(({ id }) => id).join(", ");
}

export const audit = defineCommand({
  name: "audit",
  options: {
    workspace,
    event: { type: "string", placeholder: "EVENT", help: "event filter, such as key.update" },
    target: { type: "string", placeholder: "ID", help: "id filter: changes of this object" },
    since: {
      type: "string",
      placeholder: "TIME",
      help: "start time: 2026-12-31, 2026-12-31T18:00:00Z, 24h",
    },
    limit,
    ...database,
    json,
  },
  response: listShape("events", auditFields),
  run: async (options, io) => {
    const { since, event, target } = options;
    const max = parseLimit(options.limit);
    const sinceMs = since === undefined ? 0 : parseInstant("since", since, { nowMs: Date.now(), spans: "back" });
    const rows = await withWorkspace(options, ({ db }, { id: workspaceId }) =>
      listAudit(db, { workspaceId, sinceMs, event, targetId: target, rowsMax: max + 1 }),
    );
    printList(io, options, { resources: "events", fields: auditFields, rows, max });
    return 0;
  },
});
