import * as z from "zod";
import { ERROR_KINDS, type ErrorKind } from "../../core/errors.ts";
import { StoredPolicy } from "../../core/policies/stored-policy.ts";
import { Code } from "../../core/verification/codes.ts";
import { SESSION_COOKIE } from "../sessions/cookies.ts";
import { RootKeyDetails, RootKeyOut } from "../v2/admin/root-key-schemas.ts";
import { WorkspaceOut } from "../v2/admin/workspace-schemas.ts";
import { PermissionOut, RoleOut } from "../v2/permissions/schemas.ts";
import { DataPlane, PolicyHead } from "../v2/policies/schemas.ts";
import { NamespaceOut, OverrideOut } from "../v2/ratelimit/schemas.ts";
import { Credits, CreditsOut, IdentityOut, KeyOut, RatelimitIn, RatelimitOut, Refill } from "../v2/schemas.ts";
import type { JsonSchema } from "./json-schema.ts";
import { Pagination, ResponseMeta } from "./serve-v2.ts";

/* Shared components of the OpenAPI document: named schemas, headers, and the failures of every procedure. */

export const ErrorResponse = z
  .strictObject({
    meta: ResponseMeta,
    error: z
      .strictObject({
        title: z
          .string()
          .describe("Short title, the same for every error of this kind.")
          .meta({ examples: ["Not Found"] }),
        detail: z
          .string()
          .describe("Human-readable description of the error.")
          .meta({ examples: ["There is no key key_4fGh7Jk2LmN8pQrS."] }),
        status: z
          .int()
          .describe("HTTP status of the response.")
          .meta({ examples: [404] }),
        type: z
          .string()
          .describe(
            "`https://postern.dev/errors/<kind>`, or another URL that the installation configures. Its last segment is the kind.",
          )
          .meta({ examples: ["https://postern.example/errors/key_not_found"] }),
        errors: z
          .array(
            z.strictObject({
              location: z
                .string()
                .describe("Location of the invalid value.")
                .meta({ examples: ["body.ratelimits[2].limit"] }),
              message: z
                .string()
                .describe("Expected value, and the value in the request.")
                .meta({ examples: ["expected at least 1, got 0"] }),
              fix: z
                .string()
                .optional()
                .describe("Suggestion for a valid value.")
                .meta({ examples: ["Give the limit as a positive integer."] }),
            }),
          )
          .max(50)
          .optional()
          .describe(
            "With status 400, 408 and 413: the invalid values, possibly none. With other statuses: the rejected field of a manifest.",
          ),
      })
      .describe("Details of the error."),
  })
  .describe("Every error has this form.");

/**
 * Authentication of a procedure: either a root key, or both the session cookie and the dashboard header of a dashboard user (api-v2.md
 * section 3).
 */
export const SECURITY: readonly JsonSchema[] = [{ rootKey: [] }, { session: [], dashboard: [] }];

export const SECURITY_SCHEMES: JsonSchema = {
  rootKey: { type: "http", scheme: "bearer", description: "A root key of the workspace that the call is about." },
  session: {
    type: "apiKey",
    in: "cookie",
    name: SESSION_COOKIE,
    description:
      "Session of a dashboard user. It is used only if there is no `Authorization` header. The header `Postern-Workspace` contains the id or the name of the workspace in which the call acts.",
  },
  dashboard: {
    type: "apiKey",
    in: "header",
    name: "Postern-Dashboard",
    description:
      "Not a secret: its value is `1`. A page of another site cannot send it, so it shows that the call comes from the dashboard itself. The call also requires the dashboard's own `Origin` or, without an `Origin`, `Sec-Fetch-Site: same-origin`.",
  },
};

/** Names of schemas. They become type names in generated clients. */
export const SCHEMA_NAMES: ReadonlyMap<z.ZodType, string> = new Map<z.ZodType, string>([
  [Credits, "NewCredits"],
  [CreditsOut, "Credits"],
  [DataPlane, "DataPlane"],
  [ErrorResponse, "ErrorResponse"],
  [IdentityOut, "Identity"],
  [KeyOut, "Key"],
  [NamespaceOut, "RatelimitNamespace"],
  [OverrideOut, "RatelimitOverride"],
  [Pagination, "Pagination"],
  [PermissionOut, "Permission"],
  [PolicyHead, "PolicyHead"],
  [RatelimitIn, "NewRatelimit"],
  [RatelimitOut, "Ratelimit"],
  [Refill, "Refill"],
  [ResponseMeta, "ResponseMeta"],
  [RoleOut, "Role"],
  [RootKeyOut, "RootKey"],
  [WorkspaceOut, "Workspace"],
  [RootKeyDetails, "RootKeyDetails"],
  [StoredPolicy, "StoredPolicy"],
  [Code, "VerificationCode"],
]);

const seconds = (description: string): JsonSchema => ({
  description,
  schema: { type: "integer", minimum: 0, examples: [42] },
});

export const HEADERS: Readonly<Record<string, JsonSchema>> = {
  RateLimitLimit: seconds("Quota of the workspace in requests per minute. Present only if the workspace has a quota."),
  RateLimitRemaining: seconds("Requests that remain to the workspace. Present only if the workspace has a quota."),
  RateLimitReset: seconds("Seconds until the window of the quota ends. Present only if the workspace has a quota."),
  RetryAfter: seconds("Seconds to wait before the next attempt."),
  Propagation: {
    description:
      "Present while changes reach the pods later than promised. The change is stored, but takes effect later.",
    schema: { type: "string", const: "delayed" },
  },
};

const headerReference = (name: string): JsonSchema => ({ $ref: `#/components/headers/${name}` });

/** Headers of every response to a request that was counted against the workspace's quota. */
export const QUOTA_HEADERS: JsonSchema = {
  "RateLimit-Limit": headerReference("RateLimitLimit"),
  "RateLimit-Remaining": headerReference("RateLimitRemaining"),
  "RateLimit-Reset": headerReference("RateLimitReset"),
};

export const PROPAGATION_HEADER: JsonSchema = { "Postern-Propagation": headerReference("Propagation") };

const RETRY_HEADER: JsonSchema = { "Retry-After": headerReference("RetryAfter") };

const flag = (name: string, description: string): JsonSchema => ({
  name,
  in: "header",
  description,
  schema: { type: "string", enum: ["true", "false"], default: "false" },
});

/** Headers by which a client declares that it manages the objects that it changes. */
export const MANAGEMENT_PARAMETERS: Readonly<Record<string, JsonSchema>> = {
  Manager: {
    name: "Postern-Manager",
    in: "header",
    description:
      "The manifest on whose behalf the object is created or changed: `<cluster>/<kind>/<namespace>/<name>`. If the object has another manager, it is not changed: 409 `managed_by_manifest`.",
    schema: {
      type: "string",
      pattern: "^[a-zA-Z0-9._-]{1,253}(/[a-zA-Z0-9._-]{1,253}){3}$",
      examples: ["main/ApiKeyPolicy/shop/orders"],
    },
  },
  Adopt: flag("Postern-Adopt", "`true`: the caller becomes the manager of an unmanaged object."),
  Release: flag("Postern-Release", "`true`: the object remains, but no longer has a manager."),
};

const SERVICES: Readonly<Record<string, string>> = {
  admin: "Root keys, workspaces, the audit log and the state of the installation, as shown in the dashboard.",
  analytics: "SQL queries over verifications and rate-limit decisions.",
  apis: "Named groups of keys.",
  identities: "The owners of keys, and the limits that their keys share.",
  keys: "Create, change, delete and verify keys.",
  liveness: "Whether the server is alive.",
  managed: "Which manifest manages an object.",
  migrations: "Import keys of another system.",
  permissions: "Permissions and roles that keys hold.",
  policies: "Policies that the gates in front of apps enforce.",
  ratelimits: "Rate limits that do not belong to a key, and overrides of them.",
  ratelimit: "Rate limits that do not belong to a key, and overrides of them.",
  workspaces: "What a root key acts in.",
};

/** Returns the tags of the named services. Throws if a service has no description. */
export const describeServices = (names: ReadonlySet<string>): JsonSchema[] =>
  [...names].sort().map((name) => {
    const description = SERVICES[name];
    if (description === undefined) throw new Error(`the service ${name} has no description for the OpenAPI document`);
    return { name, description };
  });

/** Returns an example of `error` as the server would send it. In an actual error, the invalid field or name depends on the call. */
export function errorExample(kind: ErrorKind): JsonSchema {
  const { status, title, explanation } = ERROR_KINDS[kind];
  const detail = explanation.replace(/\. .*$/s, ".");
  const entries = kind === "invalid_input" ? [{ location: "body.name", message: "is required" }] : [];
  const type = `https://postern.example/errors/${kind}`;
  return {
    summary: kind,
    value: {
      meta: { requestId: "req_1aBc2DeF3gHi4JkL" },
      error: { title, detail, status, type, ...([400, 408, 413].includes(status) ? { errors: entries } : {}) },
    },
  };
}

/** Returns the response for one status, with the meaning and an example of each error kind. */
export function failure(status: number, kinds: readonly ErrorKind[]): JsonSchema {
  const examples = Object.fromEntries(kinds.map((kind) => [kind, { $ref: `#/components/examples/${kind}` }]));
  const content = { schema: { $ref: "#/components/schemas/ErrorResponse" }, examples };
  const headers = {
    // A request that is rejected before it is counted gets a response without quota headers.
    ...([401, 408, 413].includes(status) ? {} : QUOTA_HEADERS),
    ...(status === 429 || kinds.includes("server_busy") ? RETRY_HEADER : {}),
  };
  return {
    description: kinds.map((kind) => `\`${kind}\`: ${ERROR_KINDS[kind].explanation}`).join("\n\n"),
    ...(Object.keys(headers).length === 0 ? {} : { headers }),
    content: { "application/json": content, "application/problem+json": content },
  };
}
