import type { Environment } from "../runtime/cluster-access.ts";
import { createKubeClient, type KubeExchange, type OpenKubeClient } from "../runtime/kube-client.ts";
import { readKubeconfig } from "../runtime/kubeconfig.ts";
import { podAccess } from "../runtime/pod-access.ts";

export interface OpenCluster {
  readonly client: OpenKubeClient;
  /** The namespace of the kubeconfig's context, or of the pod in which this runs. */
  readonly namespace: string;
}

/** Signs in with a kubeconfig file. Default: as the pod in which this process runs. */
export async function openCluster(
  kubeconfig: string | undefined,
  env: Environment,
  observe?: (exchange: KubeExchange) => void,
): Promise<OpenCluster> {
  const { access, namespace } = await (kubeconfig === undefined ? podAccess(env) : readKubeconfig(kubeconfig, env));
  return { client: createKubeClient(access, { observe }), namespace };
}
