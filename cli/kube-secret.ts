import type { KubeClient } from "../operator/runtime/kube-client.ts";

/*
 * Reads and writes one value of an existing Secret in a cluster. This module never creates or lists Secrets, so the permissions `get` and
 * `patch` on this Secret are enough.
 */

export interface SecretRef {
  readonly namespace: string;
  readonly name: string;
  /** Name of the value in the Secret's `data`. */
  readonly key: string;
}

export interface SecretValue {
  /** Decoded value; `undefined` if the Secret does not have it. */
  readonly text: string | undefined;
  /** Version of the Secret that was read. `writeSecretValue` fails if the Secret has another version by then. */
  readonly resourceVersion: string;
}

interface Secret {
  readonly metadata: { readonly resourceVersion: string };
  readonly data?: Readonly<Record<string, string>>;
}

const pathOf = ({ namespace, name }: SecretRef) => `/api/v1/namespaces/${namespace}/secrets/${name}`;

/** Returns a value of a Secret. Throws `KubeError` 404 if the Secret does not exist. */
export async function readSecretValue(client: KubeClient, ref: SecretRef): Promise<SecretValue> {
  const { data, metadata } = await client.send<Secret>({ method: "GET", path: pathOf(ref) });
  const encoded = data?.[ref.key];
  return {
    text: encoded === undefined ? undefined : Buffer.from(encoded, "base64").toString("utf8"),
    resourceVersion: metadata.resourceVersion,
  };
}

/** Writes one value and keeps the others. Throws `KubeError` 409 if the Secret has changed since it was read. */
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
