import type { ManifestObject } from "../source/contract.ts";

/*
 * Who reads the status of an object may be allowed to see its namespace alone. So no message in a status names an object of another
 * namespace, unless the spec itself names it.
 */

/** `Role shop/editor`. For logs, and for messages to readers of that namespace. */
export const labelOf = ({ kind, metadata }: ManifestObject): string => `${kind} ${metadata.namespace}/${metadata.name}`;

/** Another object, in a message to readers of the namespace `to`. Begins a sentence. */
export const labelFor = (object: ManifestObject, to: string): string =>
  object.metadata.namespace === to ? labelOf(object) : `${capital(aKind(object.kind))} of another namespace`;

/**
 * Another manager (`<cluster>/<kind>/<namespace>/<name>`), in a message to readers of the namespace of the manager `own`. Does not
 * begin a sentence.
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

/** A text of the API, which names managers whole. */
export const withoutForeignManagers = (text: string, own: string): string =>
  text.replaceAll(MANAGER, (manager) => managerFor(manager, own));
