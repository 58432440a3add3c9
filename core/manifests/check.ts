import * as z from "zod";
import { policyWarnings } from "../policies/policy-warnings.ts";
import { ApiKeySpec } from "./api-key.ts";
import { ApiKeyPolicySpec } from "./api-key-policy.ts";
import { compilePolicy, type ManifestProblem, namespacesOf } from "./compile-policy.ts";
import { API_VERSION, NamespaceName, ObjectAnnotations, ObjectLabels, ObjectName } from "./fields.ts";
import { RatelimitNamespaceSpec } from "./ratelimit-namespace.ts";
import { RatelimitOverrideSpec } from "./ratelimit-override.ts";
import { RoleSpec } from "./role.ts";

export type { ManifestProblem } from "./compile-policy.ts";

/** Schema of the metadata. Kubernetes validates metadata, so other members are accepted. The namespace defaults to `default`. */
const Metadata = z.object({
  name: ObjectName,
  namespace: NamespaceName.optional(),
  labels: ObjectLabels.optional(),
  annotations: ObjectAnnotations.optional(),
});

const envelope = <K extends string, S extends z.ZodType>(kind: K, spec: S) =>
  z.strictObject({
    apiVersion: z.literal(API_VERSION),
    kind: z.literal(kind),
    metadata: Metadata,
    spec,
    status: z.unknown().optional(),
  });

const ENVELOPES = {
  ApiKey: envelope("ApiKey", ApiKeySpec),
  ApiKeyPolicy: envelope("ApiKeyPolicy", ApiKeyPolicySpec),
  RatelimitNamespace: envelope("RatelimitNamespace", RatelimitNamespaceSpec),
  RatelimitOverride: envelope("RatelimitOverride", RatelimitOverrideSpec),
  Role: envelope("Role", RoleSpec),
};

/** A manifest of any Postern kind, with its defaults filled in. */
export type Manifest = { [K in keyof typeof ENVELOPES]: z.output<(typeof ENVELOPES)[K]> }[keyof typeof ENVELOPES];

/** Parses a manifest. An unknown field is a problem, reported with its location. Never throws. */
export function parseManifest(value: unknown): { manifest: Manifest } | { problems: ManifestProblem[] } {
  const head = z.looseObject({ apiVersion: z.string(), kind: z.string() }).safeParse(value, { error: sayRequired });
  if (!head.success) return { problems: problemsOf(head.error) };
  const { apiVersion, kind } = head.data;
  if (apiVersion !== API_VERSION) return oneProblem("apiVersion", `expected ${API_VERSION}, got ${quote(apiVersion)}`);
  if (!isKind(kind)) {
    return oneProblem("kind", `expected one of ${Object.keys(ENVELOPES).join(", ")}, got ${quote(kind)}`);
  }
  const parsed = ENVELOPES[kind].safeParse(value, { error: sayRequired });
  return parsed.success ? { manifest: parsed.data } : { problems: problemsOf(parsed.error) };
}

/**
 * Returns all problems of a manifest that are detectable offline: schema violations and, for a policy, invalid queries and paths. The list
 * is empty if the manifest is valid. Does not look at other manifests: the operator decides whether another one claims the same name
 * (reconcilers/claims.ts).
 */
export const checkManifest = (value: unknown): ManifestProblem[] => inspectManifest(value).problems;

/** Returns the problems of a manifest and, if it has none, warnings about rules that are probably not what their author meant. */
export function inspectManifest(value: unknown): { problems: ManifestProblem[]; warnings: ManifestProblem[] } {
  const parsed = parseManifest(value);
  if ("problems" in parsed) return { ...parsed, warnings: [] };
  if (parsed.manifest.kind !== "ApiKeyPolicy") return { problems: [], warnings: [] };
  const { spec } = parsed.manifest;
  const namespaceIds = new Map(namespacesOf(spec).map((name) => [name, name]));
  const compiled = compilePolicy(spec, { apiId: "unknown", namespaceIds });
  if (Array.isArray(compiled)) return { problems: compiled, warnings: [] };
  const warnings = policyWarnings(compiled).map(({ rule, message }) => ({ location: `spec.rules[${rule}]`, message }));
  return { problems: [], warnings };
}

const sayRequired = (issue: { code: string; input?: unknown }): string | undefined =>
  issue.code === "invalid_type" && issue.input === undefined ? "is required" : undefined;

/** Converts zod issues into problems, one per unknown field, with locations such as `spec.rules[0].match.path`. */
export function problemsOf(error: Pick<z.ZodError, "issues">): ManifestProblem[] {
  return error.issues.flatMap((issue): ManifestProblem[] => {
    if (issue.code === "unrecognized_keys") {
      return issue.keys.map((key) => ({ location: locationOf([...issue.path, key]), message: "is not a known field" }));
    }
    return [{ location: locationOf(issue.path), message: issue.message }];
  });
}

function locationOf(path: readonly PropertyKey[]): string {
  let location = "";
  for (const part of path) {
    if (typeof part === "number") location += `[${part}]`;
    else if (/^[\w-]+$/.test(String(part))) location += location === "" ? String(part) : `.${String(part)}`;
    else location += `[${quote(String(part))}]`;
  }
  return location === "" ? "manifest" : location;
}

const isKind = (kind: string): kind is keyof typeof ENVELOPES => Object.hasOwn(ENVELOPES, kind);
const quote = (text: string): string => JSON.stringify(text.length > 64 ? `${text.slice(0, 64)}…` : text);
const oneProblem = (location: string, message: string) => ({ problems: [{ location, message }] });
