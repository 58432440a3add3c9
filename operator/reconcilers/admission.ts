import { FINALIZER, type ManifestObject, storeFinalizersOf, WORKSPACE_FINALIZER } from "../source/contract.ts";
import type { NamedKind } from "../tenancy/settings.ts";
import type { Workspace } from "../tenancy/workspaces.ts";
import type { Context, OperatorContext } from "./context.ts";
import { progressing, stalled, type Verdict } from "./plan.ts";
import { namespaceNameIn, roleNameIn, rolesIn } from "./raw-spec.ts";

/*
 * Checks the workspace of an object, and whether the object may act in it, before the operator reads or changes anything. This is the only
 * boundary between teams, and it is the same for all kinds. The steps of a kind receive the API client of one workspace, and a source that
 * contains only the objects of this workspace. Therefore an object cannot change, read or block resources of another workspace, even if the
 * code of its kind has a bug.
 */

export type Admission =
  | { readonly workspace: Workspace; readonly inWorkspace: Context; readonly verdict?: never }
  | { readonly workspace?: never; readonly inWorkspace?: never; readonly verdict: Verdict };

export function admit(object: ManifestObject, ctx: OperatorContext): Admission {
  const { workspaces, term, ...shared } = ctx;
  const place = workspaces.resolve(object.metadata.namespace);
  if (place.workspace === undefined) {
    const { reason, message } = place;
    const verdict =
      reason === "unknown" ? progressing("DependencyNotReady", message) : stalled("WorkspaceNotFound", message);
    return { verdict };
  }
  const { workspace } = place;
  const former = formerWorkspaceOf(object, workspace);
  if (former !== undefined) return { verdict: moved(former, workspace) };
  // Always allows a deleted object to clean up.
  if (object.metadata.deletionTimestamp === undefined && !mayUseItsName(object, workspace, ctx)) {
    return { verdict: notGranted(object) };
  }
  return { workspace, inWorkspace: { ...shared, ...term(), source: sourceIn(workspace, ctx), api: workspace.api } };
}

/** Returns the finalizer of an object that owns a resource in this workspace. */
export const finalizerOf = ({ name }: Workspace): string =>
  name === undefined ? FINALIZER : `${WORKSPACE_FINALIZER}${name}`;

/**
 * Returns the name of another workspace in which the object owns a resource, according to its finalizer; `undefined` if there is none. The
 * operator never acts in that workspace, so a forged finalizer affects only its own object, which becomes Stalled.
 */
function formerWorkspaceOf(object: ManifestObject, workspace: Workspace): string | undefined {
  const foreign = storeFinalizersOf(object).find(
    (finalizer) =>
      finalizer !== finalizerOf(workspace) &&
      // `FINALIZER` contains no workspace name; it means the default workspace.
      !(finalizer === FINALIZER && workspace.isDefault),
  );
  if (foreign === undefined) return undefined;
  return foreign === FINALIZER ? "the default" : foreign.slice(WORKSPACE_FINALIZER.length);
}

const moved = (former: string, { name = "the default" }: Workspace): Verdict =>
  stalled(
    "WorkspaceChanged",
    `The namespace now belongs to the workspace ${name}, but the objects that this manifest created are in the workspace ${former} and remain active there. Assign the namespace to ${former} again, at least until this object is deleted.`,
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
  // The permission to use a role name is also required to assign the role. An ApiKey therefore must be allowed to use the names of all its
  // roles.
  if (kind === "ApiKey") return rolesIn(object).every((role) => may("Role", role));
  const name = isNamed(kind) ? NAME_OF[kind](object) : undefined;
  return !isNamed(kind) || name === undefined || may(kind, name);
}

const notGranted = ({ kind, metadata: { namespace } }: ManifestObject): Verdict =>
  stalled(
    "NotAllowed",
    `${kind === "ApiKey" ? "spec.roles" : "spec.name"}: objects of the namespace ${namespace} may not use ${kind === "ApiKey" ? "all of these names" : "this name"}. Choose another one, or ask the operator's administrator for a grant. The previous state stays active.`,
  );

/**
 * Returns a source that contains only the objects of one workspace. It omits objects that may not claim their name, so that they do not
 * block others.
 */
function sourceIn(workspace: Workspace, ctx: OperatorContext): Context["source"] {
  const { source, workspaces } = ctx;
  const isHere = (namespace: string): boolean => {
    const { workspace: its } = workspaces.resolve(namespace);
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
