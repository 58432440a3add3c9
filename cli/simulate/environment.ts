import { createHash } from "node:crypto";
import { hashKey } from "../../core/keys/key-string.ts";
import { type Manifest, parseManifest } from "../../core/manifests/check.ts";
import { compilePolicy, namespacesOf } from "../../core/manifests/compile-policy.ts";
import { parseDuration } from "../../core/manifests/duration.ts";
import { API_VERSION } from "../../core/manifests/index.ts";
import type { KeyRecord, OverrideRecord, RatelimitRecord } from "../../core/records.ts";
import type { RecordWrite } from "../../edge/projection/contract.ts";
import { overrideRecordId, type RecordRef } from "../../edge/records.ts";
import type { Desired } from "../../operator/source/directory/documents.ts";
import { type ActivePolicy, readPolicy } from "../../sidecar/policy/active-policy.ts";
import type { CheckedYaml, FileProblem } from "../checked-yaml.ts";
import type { Fixtures } from "./fixtures.ts";

/* Creates the records and policies of a gate from manifests and fixtures. Ids are derived from names, so that they are reproducible. */

export const WORKSPACE = "ws_decide";

export interface DecidedKey {
  readonly name: string;
  /** Secret of the key, derived from its name. */
  readonly secret: string;
  readonly keyId: string;
  readonly credits: number | undefined;
}

/** An object from a manifest, and its position in the file. */
export interface LocatedObject {
  readonly desired: Desired;
  readonly file: string;
  readonly line: number;
}

export interface World {
  /** Policies by `namespace/name`. */
  readonly policies: ReadonlyMap<string, ActivePolicy>;
  readonly keys: readonly DecidedKey[];
  readonly writes: readonly RecordWrite[];
}

const idOf = (prefix: string, name: string): string => `${prefix}_${name}`;

/** Returns the secret of a key. It has only letters and digits, so that every header and query can carry it. */
const secretOf = (name: string): string => `decide_${createHash("sha256").update(name).digest("hex").slice(0, 32)}`;

type Of<Kind extends Manifest["kind"]> = Extract<Manifest, { kind: Kind }>;

/** Returns the environment, or all problems of the input. */
export function makeWorld(
  objects: readonly LocatedObject[],
  fixtures: CheckedYaml<Fixtures>,
): { readonly world: World } | { readonly problems: FileProblem[] } {
  const problems: FileProblem[] = [];
  const { value } = fixtures;
  const report = (path: readonly (string | number)[], message: string): void =>
    void problems.push(fixtures.problemAt(path, message));
  const placed = new Map(objects.flatMap((object) => readAgain(object.desired).map((manifest) => [manifest, object])));
  const ofKind = <Kind extends Manifest["kind"]>(kind: Kind) =>
    [...placed.keys()].filter((manifest): manifest is Of<Kind> => manifest.kind === kind);
  const problemOf = (manifest: Manifest) => (location: string, message: string) => {
    const { file = "", line = 1 } = placed.get(manifest) ?? {};
    problems.push({ file, line, location: `spec.${location}`, message });
  };

  const policies = new Map(ofKind("ApiKeyPolicy").map((policy) => [placeOf(policy), policy]));
  const roles = new Map([...ofKind("Role").map(({ spec }) => spec), ...value.roles].map((role) => [role.name, role]));
  const writes: RecordWrite[] = [write("workspace", WORKSPACE, { id: WORKSPACE, enabled: true })];
  for (const { name, permissions } of roles.values()) {
    const id = idOf("role", name);
    writes.push(write("role", id, { id, name, permissions }));
  }
  const named = [...policies.values()].flatMap(({ spec }) => namespacesOf(spec));
  for (const name of new Set([...named, ...ofKind("RatelimitNamespace").map(({ spec }) => spec.name)])) {
    const id = namespaceIdOf(name);
    writes.push(write("namespace", id, { id, name, deleted: false }));
  }
  writes.push(...overridesOf(ofKind("RatelimitNamespace"), ofKind("RatelimitOverride"), problemOf));

  const allowLists = new Map<string, readonly string[]>();
  for (const [i, { policy, ipAllowList }] of value.apis.entries()) {
    const found = findPolicy(policies, policy);
    if (typeof found === "string") report(["apis", i, "policy"], found);
    else allowLists.set(apiIdOf(found), ipAllowList);
  }
  for (const policy of policies.values()) {
    const id = apiIdOf(policy);
    const ipAllowList = allowLists.get(id);
    const record = { id, name: policy.spec.api.name ?? id, ...(ipAllowList === undefined ? {} : { ipAllowList }) };
    writes.push(write("api", id, record));
  }

  const apiIds = new Set([...policies.values()].map(apiIdOf));
  for (const { spec } of ofKind("ApiKey")) {
    const id = spec.apiRef?.id;
    if (id !== undefined && !apiIds.has(id)) writes.push(write("api", id, { id, name: id }));
  }

  const asked: RequestedKey[] = [
    ...ofKind("ApiKey").map((manifest) => askedOf(manifest, problemOf(manifest))),
    ...value.keys.map((key, i) => ({
      ...key,
      apiId: undefined,
      fault: (location: string, message: string) => report(["keys", i, location], message),
    })),
  ];
  const owners = new Map(value.identities.map((identity) => [identity.externalId, identity.ratelimits]));
  for (const { owner } of asked) if (owner !== undefined && !owners.has(owner)) owners.set(owner, []);
  for (const [externalId, ratelimits] of owners) {
    const id = idOf("id", externalId);
    writes.push(write("identity", id, { id, externalId, ratelimits: ratelimits.map(limitOf(id)) }));
  }

  const keys = new Map<string, DecidedKey>();
  for (const one of asked) {
    const { name, roles: names, credits, fault } = one;
    for (const role of names) {
      if (!roles.has(role)) fault("roles", `neither a manifest nor the fixtures have the role ${role}`);
    }
    const found = one.apiId ?? findPolicy(policies, one.policy);
    if (typeof found === "string" && one.apiId === undefined) fault("policy", found);
    if (keys.has(name)) fault("name", `another key has the name ${name}`);
    const secret = secretOf(name);
    const keyId = idOf("key", name);
    keys.set(name, { name, secret, keyId, credits });
    writes.push(
      write("key", hashKey(secret), recordOf(one, keyId, typeof found === "string" ? found : apiIdOf(found))),
    );
  }
  if (problems.length > 0) return { problems };
  const active = [...policies].map(([place, policy]) => [place, enforce(place, policy)] as const);
  return { world: { policies: new Map(active), keys: [...keys.values()], writes } };
}

interface RequestedKey {
  readonly name: string;
  readonly fault: (location: string, message: string) => void;
  readonly apiId: string | undefined;
  readonly policy?: string | undefined;
  readonly owner?: string | undefined;
  readonly roles: readonly string[];
  readonly permissions: readonly string[];
  readonly ratelimits: Fixtures["keys"][number]["ratelimits"];
  readonly credits?: number | undefined;
  readonly enabled: boolean;
  readonly expires?: number | undefined;
}

function askedOf({ metadata, spec }: Of<"ApiKey">, fault: RequestedKey["fault"]): RequestedKey {
  const { policyRef, apiRef, expires } = spec;
  const namespace = policyRef?.namespace ?? metadata.namespace ?? DEFAULT_NAMESPACE;
  return {
    name: metadata.name,
    fault,
    apiId: apiRef?.id,
    policy: policyRef === undefined ? undefined : `${namespace}/${policyRef.name}`,
    owner: spec.owner,
    roles: spec.roles,
    permissions: spec.permissions,
    ratelimits: spec.ratelimits,
    credits: spec.credits?.remaining,
    enabled: true,
    expires: expires === undefined ? undefined : Date.parse(expires),
  };
}

const recordOf = (
  { name, owner, roles, permissions, ratelimits, credits, enabled, expires }: RequestedKey,
  keyId: string,
  apiId: string,
): KeyRecord => ({
  keyId,
  workspaceId: WORKSPACE,
  apiId,
  keySpaceId: "ks_decide",
  enabled,
  name,
  ...(expires === undefined ? {} : { expiresMs: expires }),
  ...(owner === undefined ? {} : { identityId: idOf("id", owner) }),
  roleIds: roles.map((role) => idOf("role", role)),
  permissions: [...permissions],
  ratelimits: ratelimits.map(limitOf(keyId)),
  limited: credits !== undefined,
});

const limitOf =
  (ownerId: string) =>
  ({ name, limit, duration, autoApply }: Fixtures["keys"][number]["ratelimits"][number]): RatelimitRecord => ({
    id: idOf("rl", `${ownerId} ${name}`),
    name,
    limit,
    durationMs: parseDuration(duration),
    autoApply,
  });

const DEFAULT_NAMESPACE = "default";

const placeOf = ({ metadata: { namespace = DEFAULT_NAMESPACE, name } }: Manifest): string => `${namespace}/${name}`;

/** Returns the id of a policy's API. Policies that reference the same API share its keys. */
const apiIdOf = ({ spec: { api } }: Of<"ApiKeyPolicy">): string => api.id ?? idOf("api", api.name ?? "");

/** Returns the policy of this name, or the only policy if no name is given; otherwise the reason why no policy can be chosen. */
export function findPolicy<T>(policies: ReadonlyMap<string, T>, name: string | undefined): T | string {
  const places = [...policies.keys()];
  const fits = places.filter((place) => name === undefined || place === name || place.endsWith(`/${name}`));
  const [place] = fits;
  if (place === undefined) {
    return name === undefined
      ? "the manifests have no ApiKeyPolicy"
      : `there is no ApiKeyPolicy ${name}; the manifests define ${places.join(", ") || "none"}`;
  }
  if (fits.length > 1) return `several ApiKeyPolicies match; choose one of ${fits.join(", ")}`;
  return policies.get(place) as T;
}

/** Returns a valid manifest, with default values for omitted fields. */
function readAgain({ kind, namespace, name, spec }: Desired): Manifest[] {
  const parsed = parseManifest({ apiVersion: API_VERSION, kind, metadata: { name, namespace }, spec });
  return "manifest" in parsed ? [parsed.manifest] : [];
}

const write = (kind: RecordRef["kind"], id: string, data: unknown): RecordWrite => ({
  ref: { workspaceId: WORKSPACE, kind, id },
  data,
});

const namespaceIdOf = (name: string): string => idOf("rlns", name);

function overridesOf(
  namespaces: readonly Of<"RatelimitNamespace">[],
  overrides: readonly Of<"RatelimitOverride">[],
  problemOf: (manifest: Manifest) => RequestedKey["fault"],
): RecordWrite[] {
  const stored = new Map(namespaces.map((namespace) => [placeOf(namespace), namespaceIdOf(namespace.spec.name)]));
  const patterns = new Map<string, OverrideRecord[]>();
  const writes: RecordWrite[] = [];
  for (const override of overrides) {
    const { metadata, spec } = override;
    const place = `${spec.namespaceRef.namespace ?? metadata.namespace ?? DEFAULT_NAMESPACE}/${spec.namespaceRef.name}`;
    const namespaceId = stored.get(place);
    if (namespaceId === undefined) {
      problemOf(override)("namespaceRef", `the manifests have no RatelimitNamespace ${place}`);
      continue;
    }
    const { identifier, limit, duration, async } = spec;
    const id = idOf("rlor", `${namespaceId} ${identifier}`);
    const record: OverrideRecord = { id, identifier, limit, durationMs: parseDuration(duration), async };
    writes.push(write("override", overrideRecordId(namespaceId, identifier), record));
    if (identifier.includes("*")) patterns.set(namespaceId, [...(patterns.get(namespaceId) ?? []), record]);
  }
  for (const [namespaceId, ofIt] of patterns) writes.push(write("overridePatterns", namespaceId, { patterns: ofIt }));
  return writes;
}

function enforce(place: string, manifest: Of<"ApiKeyPolicy">): ActivePolicy {
  const apiId = apiIdOf(manifest);
  const namespaceIds = new Map(namespacesOf(manifest.spec).map((name) => [name, namespaceIdOf(name)]));
  const policy = compilePolicy(manifest.spec, { apiId, namespaceIds });
  if (Array.isArray(policy)) throw new Error(`${place} was checked, and does not compile`);
  const id = idOf("pol", place);
  const active = readPolicy({ policyId: id, name: place, apiId, uid: id, generation: 1, version: 1, policy });
  if ("problem" in active) throw new Error(`${place}: ${active.problem}`);
  return active;
}
