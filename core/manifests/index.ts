import type * as z from "zod";
import { ApiKeySpec, ApiKeyStatus } from "./api-key.ts";
import { ApiKeyPolicySpec, ApiKeyPolicyStatus } from "./api-key-policy.ts";
import { RatelimitNamespaceSpec, RatelimitNamespaceStatus } from "./ratelimit-namespace.ts";
import { RatelimitOverrideSpec, RatelimitOverrideStatus } from "./ratelimit-override.ts";
import { RoleSpec, RoleStatus } from "./role.ts";

export { API_VERSION, GROUP, VERSION } from "./fields.ts";

/** An entry of a CRD's `additionalPrinterColumns`. */
export interface PrinterColumn {
  readonly name: string;
  readonly type: "string" | "integer" | "date";
  readonly jsonPath: string;
  /** Priority of the column; 1 shows it only with `-o wide`. */
  readonly priority?: number;
}

/**
 * Source of a generated CRD. The schemas' metadata contains the CEL rules and list types, named like their `x-kubernetes-…` extensions. So
 * each rule is next to the equivalent check in code.
 */
export interface KindDefinition {
  readonly kind: string;
  readonly plural: string;
  readonly singular: string;
  readonly shortNames: readonly string[];
  readonly description: string;
  readonly specSchema: z.ZodType;
  readonly statusSchema: z.ZodType;
  readonly printerColumns: readonly PrinterColumn[];
  /** Paths that `kubectl get --field-selector` accepts. */
  readonly selectableFields: readonly string[];
}

const ofCondition = (name: string, type: string, member: "status" | "reason" | "message"): PrinterColumn => ({
  name,
  type: "string",
  jsonPath: `.status.conditions[?(@.type=="${type}")].${member}`,
});

/** Columns of every kind. Their names contain no blanks, so that `awk` and `--sort-by` work. */
const READY: readonly PrinterColumn[] = [
  ofCondition("Ready", "Ready", "status"),
  ofCondition("Reason", "Ready", "reason"),
];
const MESSAGE: PrinterColumn = { ...ofCondition("Message", "Ready", "message"), priority: 1 };
const AGE: PrinterColumn = { name: "Age", type: "date", jsonPath: ".metadata.creationTimestamp" };

/** CRD category: `kubectl get postern` lists all kinds together. */
export const CATEGORY = "postern";

export const KINDS = [
  {
    kind: "ApiKey",
    plural: "apikeys",
    singular: "apikey",
    shortNames: ["ak"],
    description: "API key for an app, stored in a Secret and rotated there.",
    specSchema: ApiKeySpec,
    statusSchema: ApiKeyStatus,
    printerColumns: [
      ...READY,
      { name: "Secret", type: "string", jsonPath: ".spec.secretRef.name" },
      { name: "Owner", type: "string", jsonPath: ".spec.owner" },
      // The column shows a time in the future. The type `date` would show it as an age, so the type is `string`.
      { name: "Rotation", type: "string", jsonPath: ".status.nextRotation", priority: 1 },
      { name: "Expires", type: "string", jsonPath: ".status.expiresAt", priority: 1 },
      { name: "Key", type: "string", jsonPath: ".status.keyId", priority: 1 },
      { name: "API", type: "string", jsonPath: ".status.apiId", priority: 1 },
      MESSAGE,
      AGE,
    ],
    selectableFields: [".spec.policyRef.name", ".spec.owner", ".spec.secretRef.name"],
  },
  {
    kind: "ApiKeyPolicy",
    plural: "apikeypolicies",
    singular: "apikeypolicy",
    shortNames: ["akp"],
    description: "Which API keys an app accepts, and what each request requires.",
    specSchema: ApiKeyPolicySpec,
    statusSchema: ApiKeyPolicyStatus,
    printerColumns: [
      ...READY,
      ofCondition("Enforced", "Enforced", "status"),
      { ...ofCondition("Stale", "Stale", "status"), priority: 1 },
      {
        name: "Over-Admitted-Percent",
        type: "integer",
        jsonPath: ".status.dataPlane.overAdmittedPercent",
        priority: 1,
      },
      { name: "Mode", type: "string", jsonPath: ".spec.mode" },
      { name: "Pods", type: "integer", jsonPath: ".status.dataPlane.pods" },
      { name: "Updated", type: "integer", jsonPath: ".status.dataPlane.updated" },
      { name: "API", type: "string", jsonPath: ".status.apiId", priority: 1 },
      { name: "Policy", type: "string", jsonPath: ".status.policyId", priority: 1 },
      AGE,
      MESSAGE,
    ],
    selectableFields: [".spec.api.name", ".spec.api.id"],
  },
  {
    kind: "RatelimitNamespace",
    plural: "ratelimitnamespaces",
    singular: "ratelimitnamespace",
    shortNames: ["rlns"],
    description: "Rate-limit namespace: policies and calls that name it share its limits and overrides.",
    specSchema: RatelimitNamespaceSpec,
    statusSchema: RatelimitNamespaceStatus,
    printerColumns: [
      ...READY,
      { name: "Stored-As", type: "string", jsonPath: ".spec.name" },
      { name: "Id", type: "string", jsonPath: ".status.namespaceId", priority: 1 },
      AGE,
      MESSAGE,
    ],
    selectableFields: [".spec.name"],
  },
  {
    kind: "RatelimitOverride",
    plural: "ratelimitoverrides",
    singular: "ratelimitoverride",
    shortNames: ["rlo"],
    description: "Different limit for some identifiers of a rate-limit namespace.",
    specSchema: RatelimitOverrideSpec,
    statusSchema: RatelimitOverrideStatus,
    printerColumns: [
      ...READY,
      { name: "Namespace", type: "string", jsonPath: ".spec.namespaceRef.name" },
      { name: "Identifier", type: "string", jsonPath: ".spec.identifier" },
      { name: "Limit", type: "integer", jsonPath: ".spec.limit" },
      { name: "Id", type: "string", jsonPath: ".status.overrideId", priority: 1 },
      AGE,
      MESSAGE,
    ],
    selectableFields: [".spec.namespaceRef.name"],
  },
  {
    kind: "Role",
    plural: "roles",
    singular: "role",
    // Without an API group, kubectl interprets `role` and `roles` as the RBAC kind of Kubernetes.
    shortNames: ["keyrole", "keyroles"],
    description: "Named set of permissions for keys.",
    specSchema: RoleSpec,
    statusSchema: RoleStatus,
    printerColumns: [
      ...READY,
      { name: "Stored-As", type: "string", jsonPath: ".spec.name" },
      { name: "Id", type: "string", jsonPath: ".status.roleId", priority: 1 },
      AGE,
      MESSAGE,
    ],
    selectableFields: [".spec.name"],
  },
] as const satisfies readonly KindDefinition[];

export type Kind = (typeof KINDS)[number]["kind"];
