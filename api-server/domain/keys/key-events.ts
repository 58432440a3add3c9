import type { AuditEvent } from "../../db/audit.ts";

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

interface Importing {
  readonly apiId: string;
  /** Migration id from the request. */
  readonly migrationId: string;
}

const targetsOf = ({ apiId, migrationId }: Importing): AuditEvent["targets"] => [
  { type: "api", id: apiId },
  { type: "migration", id: migrationId },
];

/** Returns the event for keys that were accepted and that the key queue will create. */
export const keysEnqueued = (count: number, importing: Importing): AuditEvent => ({
  event: "key.enqueue",
  description: `Accepted ${count} keys for API ${importing.apiId}`,
  targets: targetsOf(importing),
});

/** Returns the event for a queued key that was not created. `reason` is the kind of the key's last error. */
export const queuedKeyGivenUp = (keyId: string, reason: string, importing: Importing): AuditEvent => ({
  event: "key.give_up",
  description: `Did not create the accepted key ${keyId} in API ${importing.apiId}: ${reason}`,
  targets: [{ type: "key", id: keyId }, ...targetsOf(importing)],
});

/** Returns the event for giving a permission (identified by its slug) or a role (by its name) to a key. */
export const connectedToKey = (keyId: string, part: { type: "permission" | "role" } & Named): AuditEvent => ({
  event: `authorization.connect_${part.type}_and_key`,
  description: `Connected ${part.type} ${part.id} and key ${keyId}`,
  targets: [{ type: "key", id: keyId }, part],
});

/** Returns the event for removing a permission or role from a key. */
export const disconnectedFromKey = (keyId: string, part: { type: "permission" | "role" } & Named): AuditEvent => ({
  event: `authorization.disconnect_${part.type}_and_key`,
  description: `Disconnected ${part.type} ${part.id} and key ${keyId}`,
  targets: [{ type: "key", id: keyId }, part],
});
