import type { ManifestObject } from "../source/contract.ts";

/*
 * Readers of a status may have access only to its namespace. Therefore a message in a status names objects of other namespaces only if the
 * spec itself names them.
 */

/** Returns the label of an object, such as `Role shop/editor`, for logs and for readers of the object's namespace. */
export const labelOf = ({ kind, metadata }: ManifestObject): string => `${kind} ${metadata.namespace}/${metadata.name}`;

/** Returns the label of another object, for the beginning of a sentence. Readers of the namespace `to` may see it. */
export const labelFor = (object: ManifestObject, to: string): string =>
  object.metadata.namespace === to ? labelOf(object) : `${capital(aKind(object.kind))} of another namespace`;

/**
 * Returns the label of another manager (`<cluster>/<kind>/<namespace>/<name>`), for use within a sentence. Readers of the namespace of the
 * manager `own` may see it.
 */
export function managerFor(manager: string, own: string): string {
  const [cluster, kind, namespace] = manager.split("/");
  const [ownCluster, , ownNamespace] = own.split("/");
  if (cluster !== ownCluster) return `${aKind(kind)} of the cluster ${cluster}`;
  return namespace === ownNamespace ? manager : `${aKind(kind)} of another namespace`;
}

const aKind = (kind = "manifest"): string => (/^[AEIOU]/.test(kind) ? `an ${kind}` : `a ${kind}`);
const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

const MANAGER = /[a-zA-Z0-9._-]+\/[A-Z][a-zA-Z]+\/[a-zA-Z0-9._-]+\/[a-zA-Z0-9._-]*[a-zA-Z0-9_-]/g;

/** Removes the full names of other managers from a message of the API. */
export const withoutForeignManagers = (text: string, own: string): string =>
  text.replaceAll(MANAGER, (manager) => managerFor(manager, own));
