import type { AuditEvent } from "../../store/audit.ts";

interface Named {
  readonly id: string;
  readonly name?: string | undefined;
}

export const keyCreated = (key: Named, api: Named): AuditEvent => ({
  event: "key.create",
  description: `Created key ${key.id} in API ${api.id}`,
  targets: [
    { type: "key", ...key },
    { type: "api", ...api },
  ],
});

/** A permission (by its slug) or a role (by its name) was given to a key. */
export const connectedToKey = (keyId: string, part: { type: "permission" | "role" } & Named): AuditEvent => ({
  event: `authorization.connect_${part.type}_and_key`,
  description: `Connected ${part.type} ${part.id} and key ${keyId}`,
  targets: [{ type: "key", id: keyId }, part],
});

/** The same link was removed. */
export const disconnectedFromKey = (keyId: string, part: { type: "permission" | "role" } & Named): AuditEvent => ({
  event: `authorization.disconnect_${part.type}_and_key`,
  description: `Disconnected ${part.type} ${part.id} and key ${keyId}`,
  targets: [{ type: "key", id: keyId }, part],
});
