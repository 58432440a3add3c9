import type { ApiKeyPolicySpec } from "../../../core/manifests/api-key-policy.ts";
import type { Condition } from "../../../core/manifests/conditions.ts";
import type { CompiledPolicy } from "../../../core/policies/policy.ts";
import type { NetworkPolicy } from "../../network/network-policy.ts";
import type { SeenService } from "../../network/service.ts";
import type { ManifestObject } from "../../source/contract.ts";
import type { ResolvedNamespace } from "../plan.ts";
import type { ParsedSpec } from "../spec.ts";
import type { Selected } from "./selection.ts";

export interface StoredApi {
  readonly apiId: string;
  readonly name: string;
  readonly manager: string | undefined;
  /** Of an API without a manager: who left it in the store. */
  readonly lastManager?: string | undefined;
}

export interface DataPlane {
  readonly pods: number;
  readonly current: number;
  /** The names by which they report; undefined for none, when they are too many, or when the api-server is of an older release. */
  readonly podIds?: readonly string[] | undefined;
  readonly oldestLagMs: number;
  /** The ports to which they forward; undefined when none reports one, as from an older api-server. */
  readonly upstreamPorts?: ReadonlyArray<{ readonly port: number; readonly pods: number }> | undefined;
  /** Sidecars of an older release, which cannot enforce the stored policy. */
  readonly refused?: { readonly pods: number; readonly reason: string } | undefined;
  /** How far limits were exceeded while the shared counters were away; undefined for none, as from an older api-server. */
  readonly overshot?: { readonly units: number; readonly percent: number; readonly lastAgoMs: number } | undefined;
}

export interface StoredPolicy {
  readonly policyId: string;
  readonly workspaceId: string;
  readonly uid: string;
  readonly generation: number;
  readonly version: number;
  /** undefined when a later release set it, in a format that the API does not know. */
  readonly policy: CompiledPolicy | undefined;
  readonly manager: string | undefined;
  /** undefined while the store with the sidecars' reports is unreachable. */
  readonly dataPlane: DataPlane | undefined;
}

export interface ObservedPolicy {
  readonly object: ManifestObject;
  readonly parsed: ParsedSpec<ApiKeyPolicySpec>;
  readonly manager: string;
  /** `<cluster>/<namespace>/<name>` */
  readonly policyName: string;
  /** The API that this object made, left or has its policy in, according to the store; otherwise the one that the spec names by its id. */
  readonly api: StoredApi | undefined;
  /** The object of this source that made the API, if it is another object. */
  readonly apiOwner: ManifestObject | undefined;
  readonly stored: StoredPolicy | undefined;
  /** The rate-limit namespaces of the rules, by their name in the store. */
  readonly namespaces: ReadonlyMap<string, ResolvedNamespace>;
  /** ApiKeyPolicy objects of the same Kubernetes namespace that make an API of the same name, this one too. */
  readonly claimants: readonly ManifestObject[];
  /** Whether the API has keys; read only when a deletion depends on it. */
  readonly hasKeys: boolean;
  /** The pods of `spec.selector`: "unknown" until the cluster's were listed; undefined without a selector or a cluster. */
  readonly selected: Selected | "unknown" | undefined;
  /** The names by which gates report that were injected for a policy without a selector; empty for one with a selector. */
  readonly named: readonly string[];
  /** When each gate last reported, as far as this operator has seen; Unix ms, by the name by which it reports. */
  readonly heard: ReadonlyMap<string, number>;
  /** The Services of its Kubernetes namespace: "unknown" until the cluster's were listed; undefined without a cluster. */
  readonly services: readonly SeenService[] | "unknown" | undefined;
  /** The NetworkPolicies of its Kubernetes namespace: "unknown" until the cluster's were listed; undefined without a cluster. */
  readonly network: readonly NetworkPolicy[] | "unknown" | undefined;
  /** The conditions of the status so far. */
  readonly previous: readonly Condition[];
  readonly nowMs: number;
  /** When all of this was read from the store; the reports of the sidecars may be newer. */
  readonly seenAtMs: number;
  /** The number of the whole look that read it (looks.ts). */
  readonly lookId: number;
}
