import type { Logger } from "pino";
import { API_VERSION } from "../../core/manifests/index.ts";
import { followObjects } from "../runtime/follow-objects.ts";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import type { ManifestObject } from "../source/contract.ts";
import { FIELD_MANAGER } from "../source/kubernetes.ts";
import { MANAGED_LABEL, type NetworkPolicy, type NetworkPolicySpec, toNetworkPolicy } from "./network-policy.ts";

/** The NetworkPolicies of a cluster, and those of them that manifests own. */
export interface NetworkPolicies {
  /** Those of a namespace; undefined until all were listed once. */
  in(namespace: string): readonly NetworkPolicy[] | undefined;
  /**
   * Writes the owner's NetworkPolicy by server-side apply. `found` is the one that is there, and the owner's; a new one is made when it is
   * left out. Throws when another one has the name by now.
   */
  apply(
    owner: ManifestObject,
    desired: { readonly name: string; readonly spec: NetworkPolicySpec },
    found?: NetworkPolicy,
  ): Promise<void>;
  /** Leaves it to pods, whose names and uids are given: Kubernetes deletes it when the last of them is gone. */
  orphan(found: NetworkPolicy, pods: ReadonlyArray<{ readonly name: string; readonly uid: string }>): Promise<void>;
  /** The spec that this process wrote last for the owner; undefined when it wrote none, or deleted it since. */
  lastWritten(owner: ManifestObject): NetworkPolicySpec | undefined;
  /** Deletes it, and no other one that has its name by now. */
  remove(found: NetworkPolicy): Promise<void>;
  close(): Promise<void>;
}

export interface FollowNetworkPoliciesOptions {
  readonly client: KubeClient;
  /** Only these; all when left out. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called with the namespace of each that came, went or changed; with none when all were listed. */
  readonly onChange: (namespace?: string) => void;
  readonly log: Logger;
}

/** An object has at most 1.5 MB. */
const OWNERS_MAX = 5_000;

const GROUP_PATH = "/apis/networking.k8s.io/v1";

/** Follows them. Needs the rights to list, watch, create, patch and delete them. */
export function followNetworkPolicies({
  client,
  namespaces,
  onChange,
  log,
}: FollowNetworkPoliciesOptions): NetworkPolicies {
  // By the owner's uid.
  const written = new Map<string, NetworkPolicySpec>();
  const policies = followObjects({
    ...{ client, namespaces, log, groupPath: GROUP_PATH, plural: "networkpolicies" },
    // One that waits for a finalizer is in force until it is gone.
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
      // Of one that is not there no field is another's. With the uid nothing is written to one that came in its place.
      query: { fieldManager: FIELD_MANAGER, force: String(uid !== undefined) },
      contentType: "application/apply-patch+yaml",
      body: {
        apiVersion: "networking.k8s.io/v1",
        kind: "NetworkPolicy",
        metadata: { name, namespace, ...(uid === undefined ? {} : { uid }), labels: MANAGED_LABEL, ownerReferences },
        spec,
      },
    });
    // Visible at once, so that the next look does not write again.
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
        // 409: another one has the name by now.
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

/** Without `managedFields` and annotations, which are most of such an object. */
function withoutWriters({ apiVersion, kind, metadata, spec }: KubeObject): KubeObject {
  const {
    managedFields: _,
    annotations: __,
    ...kept
  } = metadata as KubeObject["metadata"] & { managedFields?: unknown };
  return { ...(apiVersion && { apiVersion }), ...(kind && { kind }), metadata: kept, spec };
}
