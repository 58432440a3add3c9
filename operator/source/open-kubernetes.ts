import type { HttpMethod } from "@kubernetes/client-node";
import { createKubeClient, type KubeClient } from "../runtime/kube-client.ts";

export interface Cluster {
  readonly client: KubeClient;
  /** The namespace of the kubeconfig's context, or of the pod in which this runs. */
  readonly namespace: string;
}

/**
 * Signs in with a kubeconfig file, or as the pod in which this runs. @kubernetes/client-node is loaded only here: it
 * takes most of a second and 60 MB, which an operator of a directory does not need.
 */
export async function openCluster(kubeconfig: string | undefined): Promise<Cluster> {
  const { KubeConfig, RequestContext } = await import("@kubernetes/client-node");
  const config = new KubeConfig();
  if (kubeconfig === undefined) config.loadFromCluster();
  else config.loadFromFile(kubeconfig);
  const namespace = config.getContextObject(config.getCurrentContext())?.namespace ?? "default";
  return {
    client: createKubeClient(config, (url, method) => new RequestContext(url, method as HttpMethod)),
    namespace,
  };
}
