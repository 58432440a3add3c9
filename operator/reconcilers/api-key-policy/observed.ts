import type { Data } from "../../../core/api/procedures.ts";
import type { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { NetworkPolicy } from "../../network/network-policy.ts";
import type { ServiceSummary } from "../../network/service.ts";
import type { PodSummary } from "../../pods/pod.ts";
import type { ManifestObject } from "../../source/contract.ts";
import type { ParsedSpec } from "../spec.ts";
import type { Selected } from "./selection.ts";

export interface DataPlane {
  readonly pods: number;
  readonly updated: number;
  /** Names under which the pods report; `undefined` if there are none or too many, or if the api-server is too old to return them. */
  readonly podIds?: readonly string[] | undefined;
  readonly maxStalenessMs: number;
  /** Ports to which the pods forward; `undefined` if no pod reports one, for example because an older api-server omits the ports. */
  readonly upstreamPorts?: ReadonlyArray<{ readonly port: number; readonly pods: number }> | undefined;
  /** Sidecars of an older version that cannot enforce the stored policy. */
  readonly unsupported?: { readonly pods: number; readonly reason: string } | undefined;
  /**
   * Amount by which limits were exceeded while the shared counters were unavailable; `undefined` if no limit was exceeded, or if the
   * api-server is too old to report the amount.
   */
  readonly overAdmitted?: { readonly units: number; readonly percent: number; readonly lastAgoMs: number } | undefined;
}

/** Lag that the API returns for a sidecar before its first heartbeat, because JSON has no infinity. */
export const NEVER_HEARD_MS = Number.MAX_SAFE_INTEGER;

/** Stored policy of a manifest. The policy's API is included only if the policy was just stored or listed. */
export type StoredPolicy = Omit<Data<"policies.listStatus">[number], "dataPlane"> & {
  /** Reports of the sidecars; `undefined` while the Redis that stores them is unreachable. */
  readonly dataPlane?: DataPlane | undefined;
  /** `undefined` if a newer version stored the policy in a format that the API cannot read. */
  readonly onStale?: CompiledPolicy["onStale"] | undefined;
};

export interface ObservedPolicy {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<ApiKeyPolicySpec>;
  /** Policy that this manifest manages in the database; `undefined` if there is none or it was not read. */
  readonly stored: StoredPolicy | undefined;
  /**
   * Pods that `spec.selector` selects; "unknown" until the pods of the cluster are listed, `undefined` if there is no selector or no
   * cluster.
   */
  readonly selected: Selected | "unknown" | undefined;
  /**
   * Pods, in any state, into which the webhook injected a gate for the policy. Set only for a policy without a selector, for example after
   * the selector was removed. "unknown" until the pods of the cluster are listed; `undefined` if there is a selector or no cluster.
   */
  readonly formerPods?: readonly PodSummary[] | "unknown" | undefined;
  /** For a policy without a selector: names under which the gates that the webhook injected report. Otherwise empty. */
  readonly named: readonly string[];
  /** Time of the last report of each gate, as far as this operator has seen it, Unix ms, by the name under which the gate reports. */
  readonly heard: ReadonlyMap<string, number>;
  /** Services of the policy's Kubernetes namespace; "unknown" until they are listed, `undefined` if there is no cluster. */
  readonly services: readonly ServiceSummary[] | "unknown" | undefined;
  /** NetworkPolicies of the policy's Kubernetes namespace; "unknown" until they are listed, `undefined` if there is no cluster. */
  readonly network: readonly NetworkPolicy[] | "unknown" | undefined;
  /** Conditions of the current status. */
  readonly previous: readonly Condition[];
  readonly nowMs: number;
  /** Time at which the database was read. The sidecar reports may be newer. */
  readonly seenAtMs: number;
  /** Number of the read that produced this state (policy-cache.ts). */
  readonly pollId: number;
}
