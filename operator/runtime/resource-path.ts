/** Resource of a Kubernetes API path. */
export interface ResourcePath {
  /** The plural, such as `roles`, with its subresource, such as `roles/status`. */
  readonly resource: string;
  /** `undefined` for a cluster-scoped resource and for a collection of all namespaces. */
  readonly namespace: string | undefined;
}

/** Parses `/api/v1/…` and `/apis/GROUP/VERSION/…`. */
export function readResourcePath(path: string): ResourcePath {
  const [, kind, ...rest] = path.split("/");
  const [first = "", second, ...more] = rest.slice(kind === "api" ? 1 : 2);
  // `/api/v1/namespaces/shop` is a Namespace; `/api/v1/namespaces/shop/pods` is a collection in it.
  const isInNamespace = first === "namespaces" && more.length > 0;
  const [plural = "", , subresource] = isInNamespace ? more : [first, second, ...more];
  return {
    resource: subresource === undefined ? plural : `${plural}/${subresource}`,
    namespace: isInNamespace ? second : undefined,
  };
}
