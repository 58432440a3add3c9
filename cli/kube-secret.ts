import type { KubeClient } from "../operator/runtime/kube-client.ts";

/* One value of a Secret in a cluster. The Secret exists already, so that reading and changing this one is all that is needed. */

export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
  /** Which of its values. */
  readonly key: string;
}

export interface SecretValue {
  /** undefined: the Secret does not have the value. */
  readonly text: string | undefined;
  /** For `writeSecretValue`: it writes only onto what was read. */
  readonly resourceVersion: string;
}

interface Secret {
  readonly metadata: { readonly resourceVersion: string };
  readonly data?: Readonly<Record<string, string>>;
}

const pathOf = ({ namespace, name }: SecretRef) => `/api/v1/namespaces/${namespace}/secrets/${name}`;

/** Throws `KubeError` 404 when there is no such Secret. */
export async function readSecretValue(client: KubeClient, ref: SecretRef): Promise<SecretValue> {
  const { data, metadata } = await client.send<Secret>({ method: "GET", path: pathOf(ref) });
  const encoded = data?.[ref.key];
  return {
    text: encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8"),
    resourceVersion: metadata.resourceVersion,
  };
}

/** Leaves the other values alone. Throws `KubeError` 409 when the Secret changed since it was read. */
export async function writeSecretValue(
  client: KubeClient,
  ref: SecretRef,
  { text, resourceVersion }: { text: string; resourceVersion: string },
): Promise<void> {
  await client.send({
    method: "PATCH",
    path: pathOf(ref),
    contentType: "application/merge-patch+json",
    body: { metadata: { resourceVersion }, data: { [ref.key]: Buffer.from(text).toString("base64") } },
  });
}
