import type { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { NetworkPolicy } from "../../network/network-policy.ts";
import type { ServiceSummary } from "../../network/service.ts";
import type { PodSummary } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import type { ResolvedNamespace } from "../plan.ts";
import type { ParsedSpec } from "../spec.ts";
import type { Selected } from "./selection.ts";

export interface StoredApi {
  readonly apiId: string;
  readonly name: string;
  readonly manager: string | undefined;
  /** Last manager of an API that has none now. */
  readonly lastManager?: string | undefined;
}

export interface DataPlane {
  readonly pods: number;
  readonly updated: number;
  /** Names under which the pods report; `undefined` if there are none or too many, or if an older api-server omits them. */
  readonly podIds?: readonly string[] | undefined;
  readonly maxStalenessMs: number;
  /** Ports to which the pods forward; `undefined` if none reports one, for example with an older api-server. */
  readonly upstreamPorts?: ReadonlyArray<{ readonly port: number; readonly pods: number }> | undefined;
  /** Sidecars of an older version that cannot enforce the stored policy. */
  readonly unsupported?: { readonly pods: number; readonly reason: string } | undefined;
  /**
   * Amount by which limits were exceeded while the shared counters were unavailable; `undefined` if none were, or with an older api-server.
   */
  readonly overAdmitted?: { readonly units: number; readonly percent: number; readonly lastAgoMs: number } | undefined;
}

/** Lag that the API returns for a sidecar before its first heartbeat, because JSON has no infinity. */
export const NEVER_HEARD_MS = Number.MAX_SAFE_INTEGER;

export interface StoredPolicy {
  readonly policyId: string;
  readonly workspaceId: string;
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  /** `undefined` if a newer version stored it in a format that the API cannot read. */
  readonly policy: CompiledPolicy | undefined;
  readonly manager: string | undefined;
  /** `undefined` while the Redis that holds the sidecar reports is unreachable. */
  readonly dataPlane: DataPlane | undefined;
}

export interface ObservedPolicy {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<ApiKeyPolicySpec>;
  readonly manager: string;
  /** `<cluster>/<namespace>/<name>` */
  readonly policyName: string;
  /**
   * The API that this object created, orphaned or uses for its policy, according to the database; otherwise the API that the spec names by
   * id.
   */
  readonly api: StoredApi | undefined;
  /** The object of this source that created the API, if it is another object. */
  readonly apiOwner: ManifestObject | undefined;
  readonly stored: StoredPolicy | undefined;
  /** Rate-limit namespaces of the rules, by their stored names. */
  readonly namespaces: ReadonlyMap<string, ResolvedNamespace>;
  /** ApiKeyPolicy objects of the same Kubernetes namespace that create an API of the same name, including this one. */
  readonly claimants: readonly ManifestObject[];
  /** Whether the API has keys; read only when a deletion depends on it. */
  readonly hasKeys: boolean;
  /** Pods of `spec.selector`; "unknown" until the pods of the cluster are listed, `undefined` without a selector or a cluster. */
  readonly selected: Selected | "unknown" | undefined;
  /**
   * Pods in any state into which the webhook injected a gate for a policy without a selector (for example, a removed one); "unknown" until
   * the pods of the cluster are listed, `undefined` with a selector or without a cluster.
   */
  readonly formerPods?: readonly PodSummary[] | "unknown" | undefined;
  /** Names under which gates report that were injected for a policy without a selector; empty for a policy with one. */
  readonly named: readonly string[];
  /** Time of the last report of each gate that this operator has seen, Unix ms, by reporting name. */
  readonly heard: ReadonlyMap<string, number>;
  /** Services of its Kubernetes namespace; "unknown" until they are listed, `undefined` without a cluster. */
  readonly services: readonly ServiceSummary[] | "unknown" | undefined;
  /** NetworkPolicies of its Kubernetes namespace; "unknown" until they are listed, `undefined` without a cluster. */
  readonly network: readonly NetworkPolicy[] | "unknown" | undefined;
  /** Conditions of the current status. */
  readonly previous: readonly Condition[];
  readonly nowMs: number;
  /** Time of the full read from the database; the sidecar reports may be newer. */
  readonly seenAtMs: number;
  /** Number of the full read that produced this (policy-cache.ts). */
  readonly pollId: number;
}
