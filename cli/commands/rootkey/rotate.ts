import { ROTATION_OVERLAP_MAX_MS, rotateRootKey } from "../../../api-server/domain/administration/root-keys.ts";
import { notFound, withWorkspace } from "../../administration.ts";
import { defineCommand, UsageError } from "../../command.ts";
import { instantText, objectShape } from "../../fields.ts";
import { database, json, workspace } from "../../options.ts";
import { printOne } from "../../output.ts";
import { parseFuture } from "../../values.ts";
import { id, madeRootKeyFields } from "./fields.ts";

export const rootkeyRotate = defineCommand({
  name: "rootkey rotate",
  description:
    "The successor has the same name, environment, permissions and lifetime. It is shown once. Both are valid until the old root key expires.",
  options: {
    id,
    until: {
      type: "string",
      placeholder: "TIME|now",
      help: "expiry of the old root key: 24h, 7d, 2026-12-31; up to 90 days ahead",
      default: "24h",
    },
    workspace,
    ...database,
    json,
  },
  response: objectShape(madeRootKeyFields),
  run: async (options, io) => {
    const { id: rootKeyId, until } = options;
    const nowMs = Date.now();
    const untilMs = until === "now" ? nowMs : parseFuture("until", until, { nowMs, or: "now" });
    const overlapMs = Math.max(0, untilMs - nowMs);
    if (overlapMs > ROTATION_OVERLAP_MAX_MS) throw new UsageError("--until is more than 90 days ahead");
    const { row, endsAt } = await withWorkspace(options, async (administrator, inWorkspace) => {
      const { id: workspaceId } = inWorkspace;
      const made = await rotateRootKey(administrator, { workspaceId, rootKeyId, overlapMs });
      if (made === "NOT_FOUND") throw notFound(`root key ${rootKeyId}`, inWorkspace, "rootkey list");
      if (made === "ROTATED") {
        throw new Error(`root key ${rootKeyId} already has a successor; rotate that one (\`postern rootkey list\`)`);
      }
      const { rootKeyId: successorId, rootKey, name, environment, permissions, expiresAt, endsAt } = made;
      const shown = { id: successorId, rootKey, workspace_id: workspaceId, name, environment, permissions };
      return { row: { ...shown, expires_at: expiresAt }, endsAt };
    });
    printOne(io, options, { fields: madeRootKeyFields, row });
    if (!options.json) io.note(`root key ${rootKeyId} expires: ${instantText(endsAt)}`);
    return 0;
  },
});
