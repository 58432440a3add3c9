import { createHash } from "node:crypto";
import { ID_PREFIXES } from "../ids.ts";

/*
 * The id of a policy that a manifest manages follows from the workspace and the manager's name. So a caller that knows these two finds the
 * policy, also before it exists: a gate can be told which policy to wait for when its pod is created.
 */

const DIGITS = 32;

/** The kind in a manager's name of what makes policies of manifests. */
const KIND = "ApiKeyPolicy";

/** `<cluster>/<namespace>/<name>` of an ApiKeyPolicy. */
export interface NamedPolicy {
  readonly cluster: string;
  readonly namespace: string;
  readonly name: string;
}

/**
 * `pol_` and 32 hexadecimal digits. Migration 0025 computes the same in SQL. No workspace id and no manager's name has a line feed, so
 * that two different pairs never make one text.
 */
export function policyIdOf({ workspaceId, manager }: { workspaceId: string; manager: string }): string {
  const digest = createHash("sha256").update(`${workspaceId}\n${manager}`).digest("hex");
  return `${ID_PREFIXES.policy}_${digest.slice(0, DIGITS)}`;
}

/** The manager's name of an ApiKeyPolicy. */
export const managerOfPolicy = ({ cluster, namespace, name }: NamedPolicy): string =>
  `${cluster}/${KIND}/${namespace}/${name}`;

/** Reads `<cluster>/<namespace>/<name>`; undefined when the text is of another form, such as an id. */
export function parseNamedPolicy(text: string): NamedPolicy | undefined {
  const [, cluster, namespace, name] = NAMED.exec(text) ?? [];
  return cluster === undefined || namespace === undefined || name === undefined
    ? undefined
    : { cluster, namespace, name };
}

const PART = "([a-zA-Z0-9._-]{1,253})";
const NAMED = new RegExp(`^${PART}/${PART}/${PART}$`);
