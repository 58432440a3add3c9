import { parse } from "yaml";
import * as z from "zod";

/*
 * Format of the file of `--tenancy-file`, which assigns Kubernetes namespaces to workspaces and grants names. Only the administrator of the
 * operator can change the file; no object in a cluster can.
 */

/**
 * Name of a workspace. It must be a valid label value, because the labels of Namespaces contain it. It is also a file name in
 * `--root-keys-dir`.
 */
export const WorkspaceName = z.string().regex(/^[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?$/, {
  error: "expected the name of a workspace, at most 63 letters",
});

const NamespacePattern = z
  .string()
  .max(63)
  .regex(/^(\*|[a-z0-9][a-z0-9-]*\*?)$/, { error: "expected a namespace, or a prefix followed by *" });

const NAMED_KINDS = ["Role", "RatelimitNamespace"] as const;
export type NamedKind = (typeof NAMED_KINDS)[number];

const WorkspaceRule = z.strictObject({
  workspace: WorkspaceName.describe("Name of the workspace, which is a file name in --root-keys-dir."),
  namespaces: z
    .array(NamespacePattern)
    .min(1)
    .max(1000)
    .describe("Kubernetes namespaces of this workspace. `team-a-*` selects all names that begin with `team-a-`."),
});

const NameGrant = z.strictObject({
  names: z
    .array(z.string().min(1).max(512))
    .min(1)
    .max(1000)
    .describe(
      "Values of `spec.name`. `orders.*` means all that begin with `orders.`. Role names are compared ignoring case.",
    ),
  namespaces: z
    .array(NamespacePattern)
    .max(1000)
    .describe("The only Kubernetes namespaces whose objects may use these names. An empty list means none."),
  kinds: z
    .array(z.enum(NAMED_KINDS))
    .min(1)
    .default([...NAMED_KINDS])
    .describe("Kinds of objects to whose names the grant applies. Default: both."),
  workspace: WorkspaceName.optional().describe("Workspace in which the grant applies. Default: all workspaces."),
});
export type NameGrant = z.output<typeof NameGrant>;

export const TenancySettings = z
  .strictObject({
    namespaceLabels: z
      .enum(["Follow", "Ignore"])
      .default("Follow")
      .describe(
        "Follow: the label postern.dev/workspace of a Namespace names its workspace, which needs the right to get, list and watch Namespaces. Ignore: only `workspaces` below does.",
      ),
    workspaces: z
      .array(WorkspaceRule)
      .max(1000)
      .default([])
      .describe(
        "Workspaces of Kubernetes namespaces. The first rule that lists a namespace applies, and overrides the label of the Namespace.",
      ),
    nameGrants: z
      .array(NameGrant)
      .max(1000)
      .default([])
      .describe(
        "Restricts names within a workspace. A name that no grant lists may be used by every namespace of the workspace.",
      ),
  })
  .describe(
    "Settings of `postern operator --tenancy-file`, which assign Kubernetes namespaces to workspaces and grant names.",
  );
export type TenancySettings = z.output<typeof TenancySettings>;

export const NO_SETTINGS: TenancySettings = TenancySettings.parse({});

/** Parses the settings from YAML or JSON. An empty file selects the defaults. Throws an Error that lists each problem with its position. */
export function parseSettings(text: string): TenancySettings {
  const parsed = TenancySettings.safeParse(parse(text) ?? {});
  if (parsed.success) return parsed.data;
  const problems = parsed.error.issues.map(({ path, message }) => `${path.join(".") || "file"}: ${message}`);
  throw new Error(problems.join("; "));
}

/** Returns whether a pattern of the settings matches a name: by prefix if the pattern ends with `*`, otherwise exactly. */
export const matches = (pattern: string, name: string): boolean =>
  pattern.endsWith("*") ? name.startsWith(pattern.slice(0, -1)) : name === pattern;
