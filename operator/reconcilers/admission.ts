import { FINALIZER, type ManifestObject, storeFinalizersOf, WORKSPACE_FINALIZER } from "../source/contract.ts";
import type { NamedKind } from "../tenancy/settings.ts";
import type { Workspace } from "../tenancy/workspaces.ts";
import type { Context, OperatorContext } from "./context.ts";
import { progressing, stalled, type Verdict } from "./plan.ts";
import { namespaceNameIn, roleNameIn, rolesIn } from "./raw-spec.ts";

/*
 * Before anything is read or done for an object: the workspace it acts in, and whether it may. The boundary between teams is
 * drawn here, once for all kinds: the steps of a kind get the API of one workspace, and a source that has no objects of another
 * one. So an object cannot change, read or block what another workspace has, whatever a kind's own code does.
 */

export type Admission =
  | { readonly workspace: Workspace; readonly inWorkspace: Context; readonly verdict?: never }
  | { readonly workspace?: never; readonly inWorkspace?: never; readonly verdict: Verdict };

export function admit(object: ManifestObject, ctx: OperatorContext): Admission {
  const { workspaces, ...shared } = ctx;
  const place = workspaces.placeOf(object.metadata.namespace);
  if (place.workspace === undefined) {
    const { reason, message } = place;
    const verdict = reason === "unknown" ? progressing("DependencyNotReady", message) : stalled("NoWorkspace", message);
    return { verdict };
  }
  const { workspace } = place;
  const former = formerWorkspaceOf(object, workspace);
  if (former !== undefined) return { verdict: moved(former, workspace) };
  // What the object has may always be cleaned up.
  if (object.metadata.deletionTimestamp === undefined && !mayUseItsName(object, workspace, ctx)) {
    return { verdict: notGranted(object) };
  }
  return { workspace, inWorkspace: { ...shared, source: sourceIn(workspace, ctx), api: workspace.api } };
}

/** The finalizer of an object that has something in this workspace. */
export const finalizerOf = ({ name }: Workspace): string =>
  name === undefined ? FINALIZER : `${WORKSPACE_FINALIZER}${name}`;

/**
 * Returns the name of another workspace in which the object has something; undefined when it has nothing elsewhere. Its finalizer
 * says so. Someone who forges one stalls their own object: nothing is ever done in the workspace that it names.
 */
function formerWorkspaceOf(object: ManifestObject, workspace: Workspace): string | undefined {
  const foreign = storeFinalizersOf(object).find(
    (finalizer) =>
      finalizer !== finalizerOf(workspace) &&
      // From before workspaces had names.
      !(finalizer === FINALIZER && workspace.isDefault),
  );
  if (foreign === undefined) return undefined;
  return foreign === FINALIZER ? "the default" : foreign.slice(WORKSPACE_FINALIZER.length);
}

const moved = (former: string, { name = "the default" }: Workspace): Verdict =>
  stalled(
    "WorkspaceChanged",
    `The namespace belongs to the workspace ${name} now, but what this object made is in the workspace ${former}, and stays in force there. Let the namespace belong to ${former} again, or delete this object while it does.`,
  );

const NAME_OF: Readonly<Record<NamedKind, (object: ManifestObject) => string | undefined>> = {
  Role: roleNameIn,
  RatelimitNamespace: namespaceNameIn,
};
const isNamed = (kind: string): kind is NamedKind => kind in NAME_OF;

function mayUseItsName(
  object: ManifestObject,
  workspace: Workspace,
  { workspaces }: Pick<OperatorContext, "workspaces">,
): boolean {
  const { kind, metadata } = object;
  const may = (named: NamedKind, name: string): boolean =>
    workspaces.mayUseName({ kind: named, name, namespace: metadata.namespace, workspace: workspace.name });
  // Who may not have a role of that name may not give it to a key either.
  if (kind === "ApiKey") return rolesIn(object).every((role) => may("Role", role));
  const name = isNamed(kind) ? NAME_OF[kind](object) : undefined;
  return !isNamed(kind) || name === undefined || may(kind, name);
}

const notGranted = ({ kind, metadata: { namespace } }: ManifestObject): Verdict =>
  stalled(
    "NotAllowed",
    `${kind === "ApiKey" ? "spec.roles" : "spec.name"}: objects of the namespace ${namespace} may not use ${kind === "ApiKey" ? "all of these names" : "this name"}. Choose another one, or ask the operator's administrator for a grant. What was in force before stays in force.`,
  );

/** The source as it looks from within a workspace. An object that may not have what it claims blocks no other one. */
function sourceIn(workspace: Workspace, ctx: OperatorContext): Context["source"] {
  const { source, workspaces } = ctx;
  const isHere = (namespace: string): boolean => {
    const { workspace: its } = workspaces.placeOf(namespace);
    return its !== undefined && its.name === workspace.name;
  };
  return {
    secrets: source.secrets,
    recordEvent: source.recordEvent,
    get: (kind, key) => (isHere(key.namespace) ? source.get(kind, key) : undefined),
    having: (kind, index, value) =>
      source
        .having(kind, index, value)
        .filter(
          (object) =>
            isHere(object.metadata.namespace) &&
            formerWorkspaceOf(object, workspace) === undefined &&
            mayUseItsName(object, workspace, ctx),
        ),
  };
}
