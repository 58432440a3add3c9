import { OPERATOR_PERMISSIONS } from "../../../core/permissions/operator.ts";
import { grantsOfPerson } from "../../../core/permissions/person-roles.ts";
import { ALL_GRANTS } from "../../../core/permissions/root-key.ts";

/* Root key permissions as people select and read them. The functions are pure. */

export const RESOURCES = [
  { type: "api", label: "APIs and their keys", one: "API" },
  { type: "ratelimit", label: "Rate limits", one: "namespace" },
  { type: "rbac", label: "Roles and permissions" },
  { type: "identity", label: "Identities" },
  { type: "workspace", label: "This workspace" },
  { type: "installation", label: "All workspaces" },
] as const satisfies readonly { type: string; label: string; one?: string }[];
export type ResourceType = (typeof RESOURCES)[number]["type"];

/** Actions that never apply to a single object. */
const ABOUT_ALL: ReadonlySet<string> = new Set([
  "api.create_api",
  "ratelimit.create_namespace",
  "ratelimit.update_namespace",
  "ratelimit.list_overrides",
]);

/** Returns the actions of a resource; with an id, only the actions that can apply to a single object. */
export const actionsOf = (type: ResourceType, id: string): readonly string[] =>
  ALL_GRANTS.map((tuple) => tuple.split("."))
    .filter(([of, , action]) => of === type && (id === "*" || !ABOUT_ALL.has(`${of}.${action}`)))
    .map(([, , action]) => action ?? "");

export interface Preset {
  readonly label: string;
  /** Whether the permission applies to a single API. */
  readonly ofApi: boolean;
  readonly tuples: (apiId: string) => readonly string[];
}

const ofApi = (id: string, actions: readonly string[]): string[] => actions.map((action) => `api.${id}.${action}`);

export const PRESETS: readonly Preset[] = [
  { label: "Verify keys of one API", ofApi: true, tuples: (id) => ofApi(id, ["verify_key"]) },
  {
    label: "Manage the keys of one API",
    ofApi: true,
    tuples: (id) => ofApi(id, ["read_api", "create_key", "read_key", "update_key", "delete_key"]),
  },
  { label: "Operator (Kubernetes)", ofApi: false, tuples: () => OPERATOR_PERMISSIONS },
  { label: "Read only", ofApi: false, tuples: () => grantsOfPerson("viewer") },
];

/** Summarizes permissions: "verify key on all APIs; 5 actions on the API api_1". */
export function inWords(permissions: readonly string[]): string {
  if (permissions.length === 0) return "nothing";
  const held = new Set(permissions);
  if (ALL_GRANTS.every((tuple) => held.has(tuple))) return "all permissions in all workspaces";
  const groups = Map.groupBy(permissions, (tuple) => tuple.slice(0, tuple.lastIndexOf(".")));
  return [...groups].map(([group, tuples]) => `${actionsText(tuples)} on ${objectText(group)}`).join("; ");
}

/** Maximum number of actions that the summary lists by name. If there are more, it has only their number. */
const NAMED = 2;

function actionsText(tuples: readonly string[]): string {
  if (tuples.length > NAMED) return `${tuples.length} actions`;
  return tuples.map((tuple) => tuple.slice(tuple.lastIndexOf(".") + 1).replaceAll("_", " ")).join(", ");
}

function objectText(group: string): string {
  const [type = "", id = ""] = group.split(".");
  const resource = RESOURCES.find((one) => one.type === type);
  const label =
    resource === undefined ? type : resource.label.replace(/^[A-Z](?![A-Z])/, (letter) => letter.toLowerCase());
  if (id === "*") return type === "api" || type === "ratelimit" ? `all ${label}` : label;
  return `the ${resource !== undefined && "one" in resource ? resource.one : type} ${id}`;
}

/** Returns warnings that a person should read before granting these permissions. */
export function warningsOf(permissions: readonly string[]): readonly string[] {
  const warnings: string[] = [];
  const forAll = permissions.filter((tuple) => /^(?:api|ratelimit)\.\*\./.test(tuple) && !isAboutAll(tuple));
  if (forAll.length > 0) {
    warnings.push(
      `${forAll.length === 1 ? "One permission applies" : `${forAll.length} permissions apply`} to all APIs or namespaces, including those created later. Choose a single one if that is sufficient.`,
    );
  }
  if (permissions.includes("workspace.*.create_root_key") || permissions.includes("workspace.*.update_root_key")) {
    warnings.push("It can create or change root keys: its holder can keep access after this root key is revoked.");
  }
  if (permissions.some((tuple) => tuple.endsWith(".decrypt_key"))) {
    warnings.push("It can read the secrets of recoverable keys.");
  }
  if (permissions.some((tuple) => tuple.startsWith("installation."))) {
    warnings.push("It applies to other workspaces, too.");
  }
  return warnings;
}

function isAboutAll(tuple: string): boolean {
  const [type, , action] = tuple.split(".");
  return ABOUT_ALL.has(`${type}.${action}`);
}

/** Returns the added and the removed permissions, each sorted. */
export const differenceOf = (before: readonly string[], after: readonly string[]) => ({
  goes: before.filter((tuple) => !after.includes(tuple)).toSorted(),
  comes: after.filter((tuple) => !before.includes(tuple)).toSorted(),
});
