import { createHash } from "node:crypto";
import { ID_PREFIXES } from "../ids.ts";

/*
 * The id of a policy that a manifest manages is derived from the workspace and the manager's name. So the id is known before the policy
 * exists, and a gate can get the id when its pod is created.
 */

const DIGITS = 32;

/** Parts of the name of an ApiKeyPolicy, `<cluster>/<namespace>/<name>`. */
export interface NamedPolicy {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * Returns `pol_` and 32 hexadecimal digits of a hash over the workspace id and the manager's name, joined by a line feed. Neither can
 * contain a line feed, so different pairs never hash the same text.
 */
export function policyIdOf({ workspaceId, manager }: { workspaceId: string; manager: string }): string {
  const digest = createHash("sha256").update(`${workspaceId}\n${manager}`).digest("hex");
  return `${ID_PREFIXES.policy}_${digest.slice(0, DIGITS)}`;
}

/** Parses `<cluster>/<namespace>/<name>`; returns `undefined` for any other form, such as an id. */
export function parseNamedPolicy(text: string): NamedPolicy | undefined {
  const [, cluster, namespace, name] = NAMED.exec(text) ?? [];
  return cluster === undefined || namespace === undefined || name === undefined
    ? undefined
    : { cluster, namespace, name };
}

const PART = "([a-zA-Z0-9._-]{1,253})";
const NAMED = new RegExp(`^${PART}/${PART}/${PART}$`);
