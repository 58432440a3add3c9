import { API_VERSION, KINDS } from "../../core/manifests/index.ts";
import { NETWORK_POLICIES } from "../../operator/network/network-policy.ts";
import { createKubeClient, isKubeError, type KubeList, type KubeObject } from "../../operator/runtime/kube-client.ts";
import { readKubeconfig } from "../../operator/runtime/kubeconfig.ts";
import { type WaitOptions, waitFor } from "./wait.ts";

/* Objects of a Kubernetes API through one connection, because a kubectl process takes a tenth of a second of CPU time. */

export interface ObjectName {
  /** Default: that of the Postern kinds. */
  readonly apiVersion?: string;
  readonly kind: string;
  readonly metadata: { readonly name: string; readonly namespace?: string };
}

const PLURALS: ReadonlyMap<string, string> = new Map([
  ...KINDS.map(({ kind, plural }) => [kind, plural] as const),
  ["NetworkPolicy", NETWORK_POLICIES.plural],
]);

/** Path of the objects of a kind in the Kubernetes API, in a namespace or of the cluster. */
export function collectionOf(
  { apiVersion = API_VERSION, kind }: Pick<ObjectName, "apiVersion" | "kind">,
  namespace?: string,
) {
  const plural = PLURALS.get(kind) ?? `${kind.toLowerCase()}s`;
  const root = apiVersion.includes("/") ? `/apis/${apiVersion}` : `/api/${apiVersion}`;
  return namespace === undefined ? `${root}/${plural}` : `${root}/namespaces/${namespace}/${plural}`;
}

export const pathOf = (one: ObjectName): string => `${collectionOf(one, one.metadata.namespace)}/${one.metadata.name}`;

export type KubernetesObjects = Awaited<ReturnType<typeof openObjects>>;

/** Opens a connection as the user of the kubeconfig, or as a user whom the administrator impersonates. */
export async function openObjects({ kubeconfigPath }: { readonly kubeconfigPath: string }, user?: string) {
  const { access } = await readKubeconfig(kubeconfigPath, {});
  const signIn = async () => {
    const { headers, tls } = await access.signIn();
    return { tls, headers: user === undefined ? headers : { ...headers, "impersonate-user": user } };
  };
  const client = createKubeClient({ ...access, signIn });
  const get = async (one: ObjectName): Promise<KubeObject | undefined> => {
    try {
      return await client.send<KubeObject>({ method: "GET", path: pathOf(one) });
    } catch (error) {
      if (isKubeError(error, 404)) return undefined;
      throw error;
    }
  };
  const remove = async (one: ObjectName, query?: Record<string, string>): Promise<void> => {
    await client.send({ method: "DELETE", path: pathOf(one), ...(query === undefined ? {} : { query }) });
  };
  return {
    client,
    get,
    list: async (of: Pick<ObjectName, "apiVersion" | "kind">, namespace?: string): Promise<readonly KubeObject[]> =>
      (await client.send<KubeList>({ method: "GET", path: collectionOf(of, namespace) })).items,
    /** Like `kubectl create`: rejects unknown fields. */
    create: <T extends ObjectName>({ apiVersion = API_VERSION, ...one }: T): Promise<KubeObject> =>
      client.send<KubeObject>({
        method: "POST",
        path: collectionOf({ apiVersion, ...one }, one.metadata.namespace),
        query: { fieldValidation: "Strict" },
        body: { apiVersion, ...one },
      }),
    /** Like `kubectl apply --server-side`: rejects unknown fields. */
    apply: <T extends ObjectName>({ apiVersion = API_VERSION, ...one }: T): Promise<KubeObject> =>
      client.send<KubeObject>({
        method: "PATCH",
        path: pathOf({ apiVersion, ...one }),
        query: { fieldManager: "test", force: "true", fieldValidation: "Strict" },
        contentType: "application/apply-patch+yaml",
        body: { apiVersion, ...one },
      }),
    /** Merges `changes` into the object or its subresource. */
    patch: (one: ObjectName, changes: object, subresource?: "status"): Promise<KubeObject> =>
      client.send<KubeObject>({
        method: "PATCH",
        path: subresource === undefined ? pathOf(one) : `${pathOf(one)}/${subresource}`,
        contentType: "application/merge-patch+json",
        body: changes,
      }),
    /** Starts the deletion. */
    remove,
    /** Deletes the object and waits until it is deleted. */
    removeAndWait: async (one: ObjectName, options: WaitOptions = { deadlineMs: 30_000 }): Promise<void> => {
      await remove(one);
      const { kind, metadata } = one;
      await waitFor(`${kind} ${metadata.name} to be deleted`, async () => (await get(one)) === undefined, options);
    },
    close: () => client.close(),
  };
}
