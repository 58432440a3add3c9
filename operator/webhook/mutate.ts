import { randomBytes } from "node:crypto";
import type { InjectionConfig } from "../injection/config.ts";
import { injectGate } from "../injection/inject.ts";
import { patchOf } from "../injection/json-patch.ts";
import { Pod } from "../injection/pod.ts";
import { policyOfPod } from "../injection/policy-of-pod.ts";
import type { ManifestObject } from "../source/contract.ts";
import { CONTROLLER_CLASS_LABEL, isOfClass } from "../source/kubernetes.ts";
import type { Admission, AdmissionRequest } from "./review.ts";
import type { WorkspaceIds } from "./workspace-ids.ts";

export interface MutateParts {
  readonly config: InjectionConfig;
  readonly cluster: string;
  /** Controller class of the operator; `undefined` if the operator has no class. */
  readonly controllerClass: string | undefined;
  /** Returns the policies of one Kubernetes namespace. */
  readonly policiesOf: (namespace: string) => readonly ManifestObject[];
  readonly workspaceOf: WorkspaceIds["of"];
}

/**
 * Injects a gate into a pod that is being created, or explains why the pod is rejected. Receives only guarded pods: the webhook
 * configuration selects them by their own label or by their namespace's label (configurations.ts).
 */
export async function mutatePod(request: AdmissionRequest, deps: MutateParts): Promise<Admission> {
  const { namespace } = request;
  const parsed = Pod.safeParse(request.object);
  if (request.kind.kind !== "Pod" || namespace === undefined || !parsed.success) {
    return { allowed: false, message: "The object is not a valid Pod, so no gate can be injected into it." };
  }
  const { config, cluster, controllerClass } = deps;
  if (!isOfClass(parsed.data.metadata.labels, controllerClass)) {
    return refuse(
      `its label ${CONTROLLER_CLASS_LABEL} names another operator than the called one, ${controllerClass === undefined ? "which has no class" : `which has the class ${controllerClass}`}. Correct the label, or configure the webhook of the other operator (docs/multi-tenancy.md).`,
    );
  }
  const policy = policyOfPod(parsed.data, namespace, deps.policiesOf(namespace));
  if ("refused" in policy) return refuse(policy.refused);
  const workspace = await deps.workspaceOf(namespace);
  if (workspace.refused !== undefined) return refuse(workspace.refused);
  const { workspaceId } = workspace;
  const hookToken = randomBytes(18).toString("base64url");
  const snapshotKey = randomBytes(32).toString("base64url");
  const drawn = { hookToken, snapshotKey };
  const injected = injectGate(parsed.data, { config, cluster, namespace, workspaceId, policy, ...drawn });
  if (injected.refused !== undefined) return refuse(injected.refused);
  return { allowed: true, patch: patchOf(request.object, injected.pod), warnings: injected.warnings };
}

/** The API server puts the name of the webhook and `denied the request` before this message. */
const refuse = (why: string): Admission => ({ allowed: false, message: `The pod is guarded: ${why}` });
