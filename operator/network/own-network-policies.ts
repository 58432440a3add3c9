import { API_VERSION } from "../../core/manifests/index.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import type { ManifestObject } from "../source/contract.ts";
import { FIELD_MANAGER } from "../source/kubernetes.ts";
import {
  MANAGED_LABEL,
  NETWORK_POLICIES,
  type NetworkPolicies,
  type NetworkPolicy,
  type NetworkPolicySpec,
} from "./network-policy.ts";

/** Reads all NetworkPolicies of the cluster, and writes and deletes those that manifests own. */
export interface OwnNetworkPolicies extends Pick<NetworkPolicies, "in"> {
  /**
   * Writes the owner's NetworkPolicy by server-side apply. Creates one if `found` is `undefined`. Throws if another object has the name.
   */
  apply(
    owner: ManifestObject,
    desired: { readonly name: string; readonly spec: NetworkPolicySpec },
    found?: NetworkPolicy,
  ): Promise<void>;
  /** Makes these pods the owners of the NetworkPolicy, so that Kubernetes deletes it with the last pod. */
  orphan(found: NetworkPolicy, pods: ReadonlyArray<{ readonly name: string; readonly uid: string }>): Promise<void>;
  /** Returns the spec that this process last wrote for the owner; `undefined` if it has written none, or has since deleted it. */
  lastWritten(owner: ManifestObject): NetworkPolicySpec | undefined;
  /** Deletes the NetworkPolicy unless another one now has its name. */
  remove(found: NetworkPolicy): Promise<void>;
}

/** Maximum number of owner references, so that the object stays within the size limit of Kubernetes, 1.5 MB. */
const OWNERS_MAX = 5_000;

/** Opens the store of NetworkPolicies. Requires permission to create, patch and delete NetworkPolicies. */
export function openOwnNetworkPolicies(client: KubeClient, policies: NetworkPolicies): OwnNetworkPolicies {
  // Last written specs, by the uid of the owner.
  const written = new Map<string, NetworkPolicySpec>();
  const pathOf = ({ namespace, name }: { readonly namespace: string; readonly name: string }) =>
    `${NETWORK_POLICIES.groupPath}/namespaces/${namespace}/${NETWORK_POLICIES.plural}/${name}`;

  const write = async (
    { namespace, name, uid }: { readonly namespace: string; readonly name: string; readonly uid: string | undefined },
    spec: NetworkPolicySpec,
    ownerReferences: readonly object[],
  ) => {
    const response = await client.send<KubeObject>({
      method: "PATCH",
      path: pathOf({ namespace, name }),
      // `force` is unnecessary for a new object, because no other manager has fields in it. For an existing object, the uid prevents a
      // write to another object of the same name.
      query: { fieldManager: FIELD_MANAGER, force: String(uid !== undefined) },
      contentType: "application/apply-patch+yaml",
      body: {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name, namespace, ...(uid === undefined ? {} : { uid }), labels: MANAGED_LABEL, ownerReferences },
        spec,
      },
    });
    // Caches the response immediately, so that the next reconcile does not write again.
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
        // Status 409 means that another NetworkPolicy now has the name.
        if (!isKubeError(error, 404) && !isKubeError(error, 409)) throw error;
      }
      if (policies.in(found.namespace)?.some(({ uid }) => uid === found.uid)) policies.forget(found);
      if (found.controllerUid !== undefined) written.delete(found.controllerUid);
    },
  };
}

const ownerReference = ({ kind, metadata: { name, uid } }: ManifestObject) => ({
  ...{ apiVersion: API_VERSION, kind, name, uid },
  ...{ controller: true, blockOwnerDeletion: false },
});
