/** Where an object is; together with its kind it is an object's identity as long as it lives. */
export interface ObjectKey {
  readonly namespace: string;
  readonly name: string;
}

export const formatKey = ({ namespace, name }: ObjectKey): string => `${namespace}/${name}`;

/** The inverse of `formatKey`. Neither part can hold a slash: both are DNS names. */
export function parseKey(text: string): ObjectKey {
  const slash = text.indexOf("/");
  return { namespace: text.slice(0, slash), name: text.slice(slash + 1) };
}
