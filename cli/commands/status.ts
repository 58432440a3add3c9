import { existsSync } from "node:fs";
import { join } from "node:path";
import { z } from "zod";
import { KINDS } from "../../core/manifests/index.ts";
import type { KubeClient } from "../../operator/runtime/kube-client.ts";
import { openCluster } from "../../operator/source/cluster.ts";
import { defineCommand, type Io } from "../command.ts";
import { type Fields, listShape } from "../fields.ts";
import { json, limit } from "../options.ts";
import { printList } from "../output.ts";
import { parseLimit } from "../values.ts";

/** The members of a policy that the command reads. An operator of another version may omit some of them. */
const Policy = z.object({
  metadata: z.object({ namespace: z.string(), name: z.string(), generation: z.number().optional() }),
  status: z
    .object({
      conditions: z
        .array(
          z.object({
            type: z.string(),
            status: z.string(),
            reason: z.string().optional(),
            message: z.string().optional(),
            observedGeneration: z.number().optional(),
          }),
        )
        .optional(),
      dataPlane: z
        .object({
          pods: z.number().optional(),
          updated: z.number().optional(),
          unguarded: z.number().optional(),
          maxStalenessMs: z.number().optional(),
        })
        .optional(),
    })
    .optional(),
});
type Policy = z.infer<typeof Policy>;

const Page = z.object({
  metadata: z.object({ continue: z.string().optional() }),
  items: z.array(Policy),
});

/** Returns the status of a condition; `Unknown` if the condition is missing or older than the current spec. */
function conditionOf({ metadata, status }: Policy, type: string): string {
  const found = status?.conditions?.find((condition) => condition.type === type);
  return found === undefined || found.observedGeneration !== metadata.generation ? "Unknown" : found.status;
}

/** Returns whether the policy is healthy. A policy without pods, such as one that was applied before its app, only has to be Ready. */
function isFine(policy: Policy): boolean {
  const enforced = policy.status?.conditions?.find(({ type }) => type === "Enforced");
  if (enforced?.reason === "NoPods") return conditionOf(policy, "Ready") === "True";
  return conditionOf(policy, "Enforced") === "True";
}

/** Returns the reason why the policy is not enforced or not Ready; `null` if it is enforced and Ready. */
function reasonOf(policy: Policy): string | null {
  const wrong = ["Ready", "Enforced"].find((type) => conditionOf(policy, type) !== "True");
  return policy.status?.conditions?.find(({ type }) => type === wrong)?.message ?? null;
}

const dataPlane = ({ status }: Policy) => status?.dataPlane ?? {};

export const statusFields: Fields<Policy> = [
  { name: "namespace", title: "namespace", value: ({ metadata }) => metadata.namespace },
  { name: "name", title: "name", value: ({ metadata }) => metadata.name },
  { name: "ready", title: "ready", value: (policy) => conditionOf(policy, "Ready") },
  { name: "enforced", title: "enforced", value: (policy) => conditionOf(policy, "Enforced") },
  { name: "stale", title: "stale", value: (policy) => conditionOf(policy, "Stale") },
  { name: "pods", title: "pods", value: (policy) => dataPlane(policy).pods ?? null },
  { name: "updated", title: "updated", value: (policy) => dataPlane(policy).updated ?? null },
  { name: "unguarded", title: "unguarded", value: (policy) => dataPlane(policy).unguarded ?? null },
  { name: "maxStalenessMs", value: (policy) => dataPlane(policy).maxStalenessMs ?? null },
  { name: "message", title: "message", value: reasonOf, shrinks: true },
];

export const status = defineCommand({
  name: "status",
  description:
    "Lists the ApiKeyPolicies by namespace and name. `Unknown`: the operator has not reported yet. Exit code 1 if a policy is not enforced or, without pods, not Ready.",
  options: {
    namespace: { type: "string", placeholder: "NAME", short: "n", help: "namespace filter" },
    kubeconfig: {
      type: "string",
      placeholder: "FILE",
      help: "kubeconfig file (default: ~/.kube/config, or in-cluster)",
      env: "KUBECONFIG",
    },
    limit,
    json,
  },
  response: listShape("policies", statusFields),
  run: async (options, io) => {
    const max = parseLimit(options.limit);
    const { client } = await openCluster(options.kubeconfig ?? defaultKubeconfig(io.env), io.env);
    const policies = await listPolicies(client, options.namespace);
    printList(io, options, { resources: "policies", fields: statusFields, rows: policies, max });
    return policies.every(isFine) ? 0 : 1;
  },
});

/** Returns the path of kubectl's default kubeconfig; `undefined` in a pod, or if the file does not exist. */
function defaultKubeconfig({ HOME: home, KUBERNETES_SERVICE_HOST: host }: Io["env"]): string | undefined {
  const file = join(home ?? "", ".kube", "config");
  return home !== undefined && host === undefined && existsSync(file) ? file : undefined;
}

const PAGE = "500";
const KIND = KINDS.find(({ kind }) => kind === "ApiKeyPolicy");

async function listPolicies(client: KubeClient, namespace: string | undefined): Promise<Policy[]> {
  const scope = namespace === undefined ? "" : `namespaces/${encodeURIComponent(namespace)}/`;
  const path = `/apis/postern.dev/v1alpha1/${scope}${KIND?.plural}`;
  const policies: Policy[] = [];
  let next: string | undefined;
  do {
    const page = Page.parse(
      await client.send<unknown>({ method: "GET", path, query: { limit: PAGE, continue: next } }),
    );
    policies.push(...page.items);
    next = page.metadata.continue || undefined;
  } while (next !== undefined);
  const placeOf = ({ metadata }: Policy) => `${metadata.namespace}/${metadata.name}`;
  return policies.sort((a, b) => (placeOf(a) < placeOf(b) ? -1 : 1));
}
