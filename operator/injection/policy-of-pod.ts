import * as z from "zod";
import { olderRival } from "../reconcilers/claims.ts";
import type { ManifestObject } from "../source/contract.ts";
import { POLICY_ANNOTATION, PORT_ANNOTATION } from "./names.ts";
import type { Pod, PortRef } from "./pod.ts";

/*
 * Which ApiKeyPolicy a pod gets. The annotation `postern.dev/policy` names one, which need not exist yet; otherwise it is the one
 * whose selector matches, and of several the oldest, as for everything that two manifests claim.
 */

/** What injection needs of a policy. It is read tolerantly: a fault in a rule must not keep pods from starting. */
const Injected = z.object({
  selector: z.object({ matchLabels: z.record(z.string(), z.string()).default({}) }).optional(),
  target: z.object({ port: z.union([z.string(), z.int()]) }),
  interception: z.enum(["Port", "Redirect", "None"]).default("Port"),
});

export interface PolicyOfPod {
  readonly name: string;
  readonly port: PortRef;
  readonly interception: "Port" | "Redirect" | "None";
  /** Others that select the pod too, and are younger. */
  readonly outdone: readonly string[];
}

export type FoundPolicy = PolicyOfPod | { readonly refused: string };

/** `policies` are those of the pod's namespace. */
export function policyOfPod(pod: Pod, policies: readonly ManifestObject[]): FoundPolicy {
  const { annotations = {} } = pod.metadata;
  const named = annotations[POLICY_ANNOTATION];
  if (named !== undefined) {
    const policy = policies.find(({ metadata }) => metadata.name === named);
    return policy === undefined ? expected(named, pod) : read(policy, []);
  }
  const selecting = policies.filter((policy) => selects(policy, pod));
  const oldest = oldestOf(selecting);
  if (oldest === undefined) {
    return {
      refused: `no ApiKeyPolicy selects this pod. Make one whose spec.selector matches its labels, or name one that is to come by the annotation ${POLICY_ANNOTATION}.`,
    };
  }
  return read(
    oldest,
    selecting.filter((policy) => policy !== oldest).map(({ metadata }) => metadata.name),
  );
}

/** Whether the policy's selector matches the pod. One without a selector, or with an empty one, selects no pod. */
export function selects(policy: ManifestObject, { metadata: { labels = {} } }: Pick<Pod, "metadata">): boolean {
  if (policy.metadata.deletionTimestamp !== undefined) return false;
  const wanted = Object.entries(Injected.safeParse(policy.spec).data?.selector?.matchLabels ?? {});
  return wanted.length > 0 && wanted.every(([name, value]) => Object.hasOwn(labels, name) && labels[name] === value);
}

function oldestOf(policies: readonly ManifestObject[]): ManifestObject | undefined {
  return policies.find((policy) => olderRival(policy, policies) === undefined);
}

function read({ metadata: { name }, spec }: ManifestObject, outdone: readonly string[]): FoundPolicy {
  const parsed = Injected.safeParse(spec);
  if (!parsed.success) return { refused: `the ApiKeyPolicy ${name} does not say which port it guards: correct it.` };
  const { target, interception } = parsed.data;
  return { name, port: target.port, interception, outdone };
}

/** Of a policy that does not exist yet: the pod itself must say which port it is about, unless it has only one. */
function expected(name: string, { metadata: { annotations = {} }, spec }: Pod): FoundPolicy {
  const given = annotations[PORT_ANNOTATION];
  if (given !== undefined) {
    return { name, port: /^\d+$/.test(given) ? Number(given) : given, interception: "Port", outdone: [] };
  }
  const [only, another] = spec.containers.flatMap(({ ports = [] }) => ports);
  if (only === undefined || another !== undefined) {
    return {
      refused: `the ApiKeyPolicy ${name} does not exist yet, and the pod has not exactly one container port: say by the annotation ${PORT_ANNOTATION} which one is guarded.`,
    };
  }
  return { name, port: only.name ?? only.containerPort, interception: "Port", outdone: [] };
}
