/** Namespace and name of an object; with its kind, they identify it during its lifetime. */
export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

export const formatKey = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;

/** Inverse of `formatKey`. Neither part can contain a slash, because both are DNS names. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
