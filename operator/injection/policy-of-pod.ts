import * as z from "zod";
import { ObjectName } from "../../core/manifests/fields.ts";
import { choosePolicy } from "../reconcilers/api-key-policy/choose-policy.ts";
import type { ManifestObject } from "../source/contract.ts";
import { POLICY_ANNOTATION, PORT_ANNOTATION } from "./names.ts";
import type { Pod, PortRef } from "./pod.ts";

/** Fields of a policy that injection uses. The webhook does not read the rules, so that invalid rules do not keep pods from starting. */
const Injected = z.object({
  target: z.object({ port: z.union([z.string(), z.int()]), protocol: z.enum(["http1", "h2c"]).default("http1") }),
  interception: z.enum(["Port", "Redirect", "None"]).default("Port"),
});

export interface PolicyOfPod {
  readonly name: string;
  readonly port: PortRef;
  /** Protocol between the gate and the app. */
  readonly protocol: "http1" | "h2c";
  readonly interception: "Port" | "Redirect" | "None";
  /** Younger policies that also select the pod. */
  readonly overridden: readonly string[];
}

export type FoundPolicy = PolicyOfPod | { readonly refused: string };

/** Returns the policy of a pod that is being created. `policies` are the policies of its namespace. */
export function policyOfPod(pod: Pod, namespace: string, policies: readonly ManifestObject[]): FoundPolicy {
  const { labels = {}, annotations = {} } = pod.metadata;
  const named = annotations[POLICY_ANNOTATION];
  if (named !== undefined && !ObjectName.safeParse(named).success) {
    return { refused: `the annotation ${POLICY_ANNOTATION} is not the name of an ApiKeyPolicy.` };
  }
  const choice = choosePolicy({ namespace, labels, policy: named }, policies);
  if (choice === undefined) {
    return {
      refused: `no ApiKeyPolicy selects this pod. Create one whose spec.selector matches the labels of the pod, or name a future one in the annotation ${POLICY_ANNOTATION}.`,
    };
  }
  const { policy, name, overridden } = choice;
  return policy === undefined
    ? expected(name, pod)
    : read(
        policy,
        overridden.map(({ metadata }) => metadata.name),
      );
}

function read({ metadata: { name }, spec }: ManifestObject, overridden: readonly string[]): FoundPolicy {
  const parsed = Injected.safeParse(spec);
  if (!parsed.success)
    return { refused: `the ApiKeyPolicy ${name} has no valid port or protocol in spec.target: correct it.` };
  const { target, interception } = parsed.data;
  return { name, ...target, interception, overridden };
}

/**
 * Returns the settings for a policy that does not exist yet. The app is assumed to use HTTP/1.1. The pod must name the guarded port, unless
 * it has only one port.
 */
function expected(name: string, { metadata: { annotations = {} }, spec }: Pod): FoundPolicy {
  const given = annotations[PORT_ANNOTATION];
  if (given !== undefined) {
    return { name, ...UNTIL_IT_EXISTS, port: /^\d+$/.test(given) ? Number(given) : given };
  }
  const [only, another] = spec.containers.flatMap(({ ports = [] }) => ports);
  if (only === undefined || another !== undefined) {
    return {
      refused: `the ApiKeyPolicy ${name} does not exist yet, and the pod does not have exactly one container port: set the annotation ${PORT_ANNOTATION} to the port to guard.`,
    };
  }
  return { name, ...UNTIL_IT_EXISTS, port: only.name ?? only.containerPort };
}

const UNTIL_IT_EXISTS = { protocol: "http1", interception: "Port", overridden: [] } as const;
