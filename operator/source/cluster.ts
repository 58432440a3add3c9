import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { backoffMs } from "../../core/backoff.ts";
import type { Environment } from "../runtime/cluster-access.ts";
import {
  createKubeClient,
  type KubeClient,
  KubeError,
  type KubeExchange,
  type KubeObject,
  type OpenKubeClient,
} from "../runtime/kube-client.ts";
import { readKubeconfig } from "../runtime/kubeconfig.ts";
import { podAccess } from "../runtime/pod-access.ts";

export interface OpenCluster {
  readonly client: OpenKubeClient;
  /** Namespace of the kubeconfig's context, or of the pod that runs this process. */
  readonly namespace: string;
}

/** Connects to a cluster. Uses a kubeconfig file if one is given, otherwise the credentials of the pod in which this process runs. */
export async function openCluster(
  kubeconfig: string | undefined,
  env: Environment,
  observe?: (exchange: KubeExchange) => void,
): Promise<OpenCluster> {
  const { access, namespace } = await (kubeconfig === undefined ? podAccess(env) : readKubeconfig(kubeconfig, env));
  return { client: createKubeClient(access, { observe }), namespace };
}

const RETRY = { firstMs: 500, maxMs: 10_000, random: Math.random };
const PATH = "/api/v1/namespaces/kube-system";

/**
 * Returns the UID of the Namespace `kube-system`, which identifies the cluster for its lifetime. Waits while the API server does not
 * respond. Throws if the operator has no permission to read the Namespace: with a substitute for the UID, the manager of every object would
 * change.
 */
export async function findClusterName({
  client,
  log,
}: {
  readonly client: Pick<KubeClient, "send">;
  readonly log: Logger;
}): Promise<string> {
  for (let failures = 1; ; failures++) {
    try {
      return (await client.send<KubeObject>({ method: "GET", path: PATH })).metadata.uid;
    } catch (error) {
      if (error instanceof KubeError && error.status < 500 && error.status !== 429) {
        throw new Error(
          "the name of the cluster is unknown: set --cluster, or grant permission to get the Namespace kube-system",
          {
            cause: error,
          },
        );
      }
      log.warn({ err: error, failures }, "cluster name cannot be read; retrying");
      await sleep(backoffMs(failures, RETRY));
    }
  }
}
