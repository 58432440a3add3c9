import { findRootKey, type RootKeyRow } from "../../api-server/db/root-keys.ts";
import type { Administrator } from "../../api-server/domain/administration/administrator.ts";
import { changeRootKey, issueRootKey, revokeRootKey } from "../../api-server/domain/administration/root-keys.ts";
import { hashKey } from "../../core/keys/key-string.ts";
import { OPERATOR_PERMISSIONS } from "../../core/permissions/operator.ts";
import type { KubeClient } from "../../operator/runtime/kube-client.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { withWorkspace } from "../administration.ts";
import { defineCommand } from "../command.ts";
import { readSecretValue, type SecretRef, writeSecretValue } from "../kube-secret.ts";
import { database, WAIT_BOUNDS, wait, workspace } from "../options.ts";
import { invalidValue, parseDurationOption } from "../values.ts";

/** Minimum remaining lifetime of a root key; a root key that expires earlier is replaced. */
const REMAINING_MS_MIN = 3_600_000;
const NAME = "operator";

export const provision = defineCommand({
  name: "provision",
  description:
    "Creates a root key with exactly the permissions of the operator, and writes it to an existing Secret. Keeps a root key that is already there, and sets its permissions; replaces it if it is revoked, disabled, expires within an hour, or belongs to another workspace. Safe to repeat and to run concurrently.",
  options: {
    secret: { type: "string", placeholder: "NAMESPACE/NAME", help: "Secret that holds the root key", required: true },
    key: { type: "string", placeholder: "NAME", help: "entry of the Secret", default: "rootKey" },
    kubeconfig: { type: "string", placeholder: "FILE", help: "kubeconfig file", env: "KUBECONFIG" },
    wait,
    workspace,
    ...database,
  },
  run: async (options, io) => {
    const ref = parseSecret(options.secret, options.key);
    const waitMs = parseDurationOption("wait", options.wait, WAIT_BOUNDS);
    const { client } = await openCluster(options.kubeconfig, io.env);
    try {
      const done = await withWorkspace({ ...options, waitMs }, (administrator, { id: workspaceId }) =>
        keepRootKey({ administrator, client, ref, workspaceId }),
      );
      io.note(SAID[done]);
      return 0;
    } finally {
      await client.close();
    }
  },
});

const SAID = {
  kept: "the Secret already has a root key for the operator",
  made: "created a root key for the operator",
};

function parseSecret(text: string, key: string): SecretRef {
  const [namespace, name, more] = text.split("/");
  if (!namespace || !name || more !== undefined) throw invalidValue("secret", text, "NAMESPACE/NAME");
  return { namespace, name, key };
}

interface Place {
  readonly administrator: Administrator;
  readonly client: KubeClient;
  readonly ref: SecretRef;
  readonly workspaceId: string;
}

async function keepRootKey({ administrator, client, ref, workspaceId }: Place): Promise<keyof typeof SAID> {
  const { text, resourceVersion } = await readSecretValue(client, ref);
  const before = text === undefined ? undefined : await findRootKey(administrator.db, { hash: hashKey(text) });
  if (before !== undefined && isUsable(before, { workspaceId, nowMs: administrator.nowMs() })) {
    // Updates the root key in place, so that running pods keep it if a new version requires other permissions.
    await changeRootKey(administrator, { workspaceId, rootKeyId: before.id, permissions: OPERATOR_PERMISSIONS });
    return "kept";
  }

  const made = await issueRootKey(administrator, { workspaceId, permissions: OPERATOR_PERMISSIONS, name: NAME });
  try {
    await writeSecretValue(client, ref, { text: made.rootKey, resourceVersion });
  } catch (error) {
    // Revokes the new root key, because its secret could not be stored.
    await revokeRootKey(administrator, { workspaceId, rootKeyId: made.rootKeyId });
    throw error;
  }
  return "made";
}

/** Returns whether the operator can use the root key. */
function isUsable(row: RootKeyRow, { workspaceId, nowMs }: { workspaceId: string; nowMs: number }): boolean {
  const expiresAt = row.expires_at ?? Number.POSITIVE_INFINITY;
  return row.workspace_id === workspaceId && row.enabled && expiresAt > nowMs + REMAINING_MS_MIN;
}
