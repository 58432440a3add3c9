import type { Logger } from "pino";
import { API_VERSION } from "../../core/manifests/index.ts";
import { followObjects } from "../runtime/follow-objects.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import type { ManifestObject } from "../source/contract.ts";
import { FIELD_MANAGER } from "../source/kubernetes.ts";
import { MANAGED_LABEL, type NetworkPolicy, type NetworkPolicySpec, toNetworkPolicy } from "./network-policy.ts";

/** NetworkPolicies of the cluster, including those that manifests own. */
export interface NetworkPolicies {
  /** Returns the NetworkPolicies of a namespace; `undefined` until the first list has completed. */
  in(namespace: string): readonly NetworkPolicy[] | undefined;
  /**
   * Writes the owner's NetworkPolicy by server-side apply. `found` is the owner's existing NetworkPolicy; without it, a new one is created.
   * Throws if another object has the name.
   */
  apply(
    owner: ManifestObject,
    desired: { readonly name: string; readonly spec: NetworkPolicySpec },
    found?: NetworkPolicy,
  ): Promise<void>;
  /** Makes these pods the owners of the NetworkPolicy, so that Kubernetes deletes it with the last of them. */
  orphan(found: NetworkPolicy, pods: ReadonlyArray<{ readonly name: string; readonly uid: string }>): Promise<void>;
  /** Returns the spec that this process last wrote for the owner; `undefined` if it wrote none or has deleted it. */
  lastWritten(owner: ManifestObject): NetworkPolicySpec | undefined;
  /** Deletes the NetworkPolicy, unless another one has its name by now. */
  remove(found: NetworkPolicy): Promise<void>;
  close(): Promise<void>;
}

export interface FollowNetworkPoliciesOptions {
  readonly client: KubeClient;
  /** Namespaces to watch. Default: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called with the namespace of each NetworkPolicy that was added, removed or changed; without one when the first list has completed. */
  readonly onChange: (namespace?: string) => void;
  readonly log: Logger;
}

/** Maximum owner references, because a Kubernetes object is limited to 1.5 MB. */
const OWNERS_MAX = 5_000;

const GROUP_PATH = "/apis/networking.k8s.io/v1";

/** Watches NetworkPolicies. Needs the rights to list, watch, create, patch and delete them. */
export function followNetworkPolicies({
  client,
  namespaces,
  onChange,
  log,
}: FollowNetworkPoliciesOptions): NetworkPolicies {
  // Specs by the uid of the owner.
  const written = new Map<string, NetworkPolicySpec>();
  const policies = followObjects({
    ...{ client, namespaces, log, groupPath: GROUP_PATH, plural: "networkpolicies" },
    // A NetworkPolicy that waits for a finalizer is still enforced.
    ...{ trim: withoutWriters, toSeen: toNetworkPolicy },
    onChange: ([version]) => onChange(version?.namespace),
    onListed: () => onChange(),
  });
  const pathOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) =>
    `${GROUP_PATH}/namespaces/${namespace}/networkpolicies/${name}`;

  const write = async (
    { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string | undefined },
    spec: NetworkPolicySpec,
    ownerReferences: readonly object[],
  ) => {
    const response = await client.send<KubeObject>({
      method: "PATCH",
      path: pathOf({ namespace, name }),
      // A new object has no fields of other managers. The uid prevents a write to another object of the same name.
      query: { fieldManager: FIELD_MANAGER, force: String(uid !== undefined) },
      contentType: "application/apply-patch+yaml",
      body: {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name, namespace, ...(uid === undefined ? {} : { uid }), labels: MANAGED_LABEL, ownerReferences },
        spec,
      },
    });
    // Visible immediately, so that the next reconcile does not write again.
    policies.put(response);
  };

  return {
    in: policies.in,

    apply: async (owner, { name, spec }, found) => {
      await write({ namespace: owner.metadata.namespace, name, uid: found?.uid }, spec, [ownerReference(owner)]);
      written.set(owner.metadata.uid, spec);
    },

    orphan: async (found, pods) => {
      const owners = pods.slice(0, OWNERS_MAX).map(({ name, uid }) => ({ apiVersion: "v1", kind: "Pod", name, uid }));
      await write(found, found.spec, owners);
      if (found.controllerUid !== undefined) written.delete(found.controllerUid);
    },

    lastWritten: ({ metadata }) => written.get(metadata.uid),

    remove: async (found) => {
      try {
        await client.send({
          method: "DELETE",
          path: pathOf(found),
          body: { apiVersion: "v1", kind: "DeleteOptions", preconditions: { uid: found.uid } },
        });
      } catch (error) {
        // 409: another NetworkPolicy has the name by now.
        if (!isKubeError(error, 404) && !isKubeError(error, 409)) throw error;
      }
      if (policies.in(found.namespace)?.some(({ uid }) => uid === found.uid)) policies.forget(found);
      if (found.controllerUid !== undefined) written.delete(found.controllerUid);
    },

    close: policies.close,
  };
}

const ownerReference = ({ kind, metadata: { name, uid } }: ManifestObject) => ({
  ...{ apiVersion: API_VERSION, kind, name, uid },
  ...{ controller: true, blockOwnerDeletion: false },
});

/** Removes `managedFields` and annotations, which are most of such an object. */
function withoutWriters({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const {
    managedFields: _,
    annotations: __,
    ...kept
  } = metadata as KubeObject["metadata"] & { managedFields?: unknown };
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata: kept, spec };
}
