import * as z from "zod";
import { PathAllowance } from "../policies/policy.ts";
import { celMilliseconds, durationOf, findDuration } from "./duration.ts";
import {
  AllowedNamespaces,
  deletionPolicy,
  exactlyOneOf,
  LabelsToMatch,
  nameOf,
  repeated,
  setOf,
  statusFields,
  storeId,
  withRules,
} from "./fields.ts";
import { ManifestRule } from "./policy-rule.ts";
import { PATHS_THAT_MATCH } from "./rule-path.ts";
import { TrustedProxy } from "./trusted-proxy.ts";

const Selector = z
  .strictObject({
    matchLabels: LabelsToMatch.describe("Labels that a pod must all have; at least one."),
  })
  .describe("The pods that get the sidecar. Without it no pod does, and you run the sidecar yourself.");

const Api = withRules(
  z.strictObject({
    name: nameOf({ min: 3, max: 256 })
      .optional()
      .describe("An API with this name is made for the policy. Changing the name renames it; its keys stay."),
    id: z
      .string()
      .min(8)
      .max(255)
      .regex(/^[a-zA-Z0-9_]+$/)
      .optional()
      .describe("An API that exists already, by its id. It cannot be changed."),
  }),
  [
    exactlyOneOf("name", "id"),
    {
      rule: "has(self.id) == has(oldSelf.id) && (!has(self.id) || self.id == oldSelf.id)",
      message: "a policy cannot move to another API; make another policy",
    },
  ],
).describe("The API whose keys are accepted.");

const HeaderName = z
  .string()
  .min(1)
  .max(128)
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, { error: "expected the name of a header" });

const Credential = withRules(
  z.strictObject({
    header: z
      .strictObject({
        name: HeaderName.describe("The header's name, in any case."),
        scheme: z
          .string()
          .min(1)
          .max(32)
          .optional()
          .describe("The authentication scheme before the key, such as Bearer."),
      })
      .optional()
      .describe("A header that carries the key."),
    query: z
      .strictObject({ name: z.string().min(1).max(128).describe("The parameter's name.") })
      .optional()
      .describe(
        "A query parameter that carries the key. URLs are kept in logs and browser histories: prefer a header.",
      ),
  }),
  [exactlyOneOf("header", "query")],
).describe("A place where a request may carry its key.");

/** Names of headers and schemes are compared case-insensitively. Only ASCII has case here, as in CEL. */
const lowerAscii = (text: string): string => text.replace(/[A-Z]+/g, (capitals) => capitals.toLowerCase());

function placeOf({ header, query }: z.output<typeof Credential>): string {
  if (header === undefined) return JSON.stringify(["query", query?.name]);
  return JSON.stringify(["header", lowerAscii(header.name), lowerAscii(header.scheme ?? "")]);
}

/** The CEL equivalent. */
const celLocationOf = (credential: string): string => {
  const header = `${credential}.header`;
  return `[${[
    `(has(${header}) ? ${header}.name.lowerAscii() : '')`,
    `(has(${header}) && has(${header}.scheme) ? ${header}.scheme.lowerAscii() : '')`,
    `(has(${credential}.query) ? ${credential}.query.name : '')`,
  ].join(", ")}]`;
};

const Credentials = withRules(z.array(Credential).min(1).max(8), [
  {
    rule: `self.all(a, self.exists_one(b, ${celLocationOf("a")} == ${celLocationOf("b")}))`,
    message: "two of these are the same place",
    faults: (credentials) => repeated(credentials, placeOf, "is the same place as one above it"),
  },
]);

const DEFAULT_CREDENTIALS = [
  { header: { name: "Authorization", scheme: "Bearer" } },
  { header: { name: "X-API-Key" } },
];

const OnStale = withRules(
  z.strictObject({
    after: durationOf({ msMin: 1000 })
      .default("30s")
      .describe("How old the sidecar's data may be before `action` applies."),
    action: z
      .enum(["Serve", "Deny"])
      .default("Serve")
      .describe("Serve still accepts keys that are known, and reports it in metrics and status; Deny refuses."),
    denyAfter: durationOf({ msMin: 1000 })
      .default("15m")
      .describe("Age at which Serve refuses too; not less than `after`."),
  }),
  [
    {
      rule: `${celMilliseconds("self.denyAfter")} >= ${celMilliseconds("self.after")}`,
      message: "denyAfter must not be shorter than after",
      faults: ({ after, denyAfter }) => {
        const [afterMs, denyAfterMs] = [findDuration(after), findDuration(denyAfter)];
        const isShorter = afterMs !== undefined && denyAfterMs !== undefined && denyAfterMs < afterMs;
        return isShorter ? [{ path: ["denyAfter"], message: "must not be shorter than spec.onStale.after" }] : [];
      },
    },
  ],
).describe("What happens when changes of keys no longer reach the sidecar.");

const COUNTER_FAILURES = ["Local", "Deny", "Allow"] as const;
const EXPECTED_COUNTER_FAILURE =
  "expected Local, Deny or Allow, or an object such as { action: Local, budget: 1/pods }, whose budget is for Local only";

/** A word, or an object that contains it. Kubernetes requires one type per field or none, so the allowed values are listed. */
const OnCounterFailure = z
  .union(
    [
      z.enum(COUNTER_FAILURES),
      z.strictObject({ action: z.enum(COUNTER_FAILURES) }),
      z.strictObject({ action: z.literal("Local"), budget: z.literal("1/pods") }),
    ],
    { error: EXPECTED_COUNTER_FAILURE },
  )
  .meta({
    "x-kubernetes-preserve-unknown-fields": true,
    enum: [
      ...COUNTER_FAILURES,
      ...COUNTER_FAILURES.map((action) => ({ action })),
      { action: "Local", budget: "1/pods" },
    ],
  });

const ClientAddress = withRules(
  z.strictObject({
    from: z
      .enum(["Connection", "ForwardedFor"])
      .describe(
        "Connection uses the peer's address; ForwardedFor the last entry of X-Forwarded-For that is not a trusted proxy.",
      ),
    trustedProxies: z
      .array(TrustedProxy)
      .max(64)
      .optional()
      .describe("Addresses or CIDR blocks of the proxies in front, for ForwardedFor."),
  }),
  [
    {
      rule: "(self.from == 'ForwardedFor') == has(self.trustedProxies)",
      message: "trustedProxies is needed with ForwardedFor, and only with it",
      holds: ({ from, trustedProxies }) => (from === "ForwardedFor") === (trustedProxies !== undefined),
    },
  ],
).describe("How the client's address is found. Without it this gate does not check the API's IP allow-list.");

const EXPECTED_PORT = "expected a port: a number from 1 to 65535, or the name of a container port";
/** Groups of lower-case letters and digits, separated by hyphens, with at least one letter, like Kubernetes port names. */
const PORT_NAME = /^([0-9]+-)*[0-9]*[a-z][a-z0-9]*(-[a-z0-9]+)*$/;

/** Defines which keys an app accepts, and what each request requires. */
export const ApiKeyPolicySpec = withRules(
  z.strictObject({
    selector: Selector.optional(),
    api: Api,
    target: z
      .strictObject({
        port: z
          .union([z.string().min(1).max(15, { abort: true }), z.int().min(1).max(65_535)], { error: EXPECTED_PORT })
          .refine((port) => typeof port === "number" || PORT_NAME.test(port), { error: EXPECTED_PORT })
          .meta({
            "x-kubernetes-int-or-string": true,
            minimum: 1,
            maximum: 65_535,
            maxLength: 15,
            pattern: PORT_NAME.source,
          })
          .describe("The container port of the app, by name or number."),
        protocol: z
          .enum(["http1"], { error: "http1 is the only protocol that is supported for now" })
          .default("http1")
          .describe("What the app speaks. Only http1 is supported for now."),
      })
      .describe("The app behind the gate."),
    interception: z
      .enum(["Port", "Redirect", "None"])
      .default("Port")
      .describe(
        "Port: the sidecar takes over the port's name. Redirect: iptables send the port's traffic through it. None: neither.",
      ),
    credentials: Credentials.default(DEFAULT_CREDENTIALS).describe(
      "Where the key is looked for, in this order; the first that is present decides, and all are removed before the app.",
    ),
    rules: z
      .array(ManifestRule)
      .max(256)
      .default([])
      .describe("The first rule that matches decides; a request that none matches needs a valid key."),
    mode: z
      .enum(["Enforce", "Audit"])
      .default("Enforce")
      .describe("Audit decides and records, but lets every request through."),
    onStale: OnStale.default({ after: "30s", action: "Serve", denyAfter: "15m" }),
    onCounterFailure: OnCounterFailure.default("Local").describe(
      "Rate limits while the shared counters are away: Local counts in each pod from nothing, so that one window may admit (pods + 1) × limit; Deny refuses; Allow does not limit. { action: Local, budget: 1/pods } divides the limit by the pods that were last heard of, rounded down and at least 1, so that one window admits at most 2 × limit, or limit + pods where that is more. A sidecar of an earlier release refuses such a policy and keeps the one before.",
    ),
    onCreditFailure: z
      .enum(["Deny", "Allow"])
      .default("Deny")
      .describe("Keys with limited credits while the credits cannot be read."),
    clientAddress: ClientAddress.optional(),
    allowPaths: setOf(PathAllowance, PathAllowance.options.length)
      .default([])
      .describe(
        "Forms of paths that get 400 unless listed, because two servers may read them differently. Semicolon, ControlCharacters and InvalidUtf8 pass where no rule depends on the path. NearMatch: a path that differs from that of a rule with other requirements in letter case, in a slash, space or dot at an end, or by double encoding. Suffix: the path of such a rule with a format at its end, such as .json.",
      ),
    networkPolicy: z
      .enum(["Managed", "None"])
      .default("Managed")
      .describe(
        "Managed: with interception Port, a NetworkPolicy closes the app's port of the pods with a gate, so that the gate is the only way in. None: no NetworkPolicy is written.",
      ),
    allowedNamespaces: AllowedNamespaces,
    adopt: z
      .enum(["match", "override"])
      .optional()
      .describe(
        "With api.id: this policy manages the API from now on, if nothing manages it; both words mean the same here. An API that this policy made and left is taken over without it.",
      ),
    deletionPolicy: deletionPolicy("Orphan", "the API that was made for the policy or taken over by it"),
  }),
  [
    ...PATHS_THAT_MATCH,
    {
      rule: "!has(self.adopt) || has(self.api.id)",
      message: "adopt is for an API that api.id names",
      holds: ({ adopt, api }) => adopt === undefined || api.id !== undefined,
    },
  ],
).describe("What guards an app: which keys it accepts and what each request needs.");
export type ApiKeyPolicySpec = z.output<typeof ApiKeyPolicySpec>;

export const ApiKeyPolicyStatus = z.object({
  ...statusFields,
  workspaceId: storeId("the workspace"),
  apiId: storeId("the API"),
  policyId: storeId("the compiled policy"),
  policyVersion: z.int().min(0).optional().describe("The version of the compiled policy that is stored."),
  dataPlane: z
    .object({
      pods: z.int().min(0).describe("Sidecars that have reported recently."),
      current: z.int().min(0).describe("How many of them enforce this generation."),
      unguarded: z
        .int()
        .min(0)
        .optional()
        .describe("Running pods of spec.selector without a gate of this policy; their names are in an Event."),
      silent: z
        .int()
        .min(1)
        .optional()
        .describe("Running pods whose gate does not report; the message of Enforced names them."),
      oldestLagMs: z.int().min(0).optional().describe("The greatest staleness among them, in milliseconds."),
      refused: z
        .int()
        .min(0)
        .optional()
        .describe(
          "How many of them cannot enforce it, because their release is older; they keep the last policy that they could enforce.",
        ),
      overAdmittedUnits: z
        .int()
        .min(0)
        .optional()
        .describe(
          "Units that they admitted beyond limits while the shared counters were away, as found out since they started; those of limits with `async: true` are not included.",
        ),
      overAdmittedPercent: z
        .int()
        .min(0)
        .optional()
        .describe("By how much a limit was exceeded then at most, in percent of it."),
    })
    .optional()
    .describe("What the sidecars report."),
});
export type ApiKeyPolicyStatus = z.output<typeof ApiKeyPolicyStatus>;
