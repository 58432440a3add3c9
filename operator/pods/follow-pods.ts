import type { Logger } from "pino";
import { followObjects } from "../runtime/follow-objects.ts";
import type { KubeClient } from "../runtime/kube-client.ts";
import { type PodSummary, toPod, trimPod } from "./pod.ts";

export interface Pods {
  /** The pods of a namespace; undefined until all were listed once. */
  in(namespace: string): readonly PodSummary[] | undefined;
  close(): Promise<void>;
}

export interface FollowPodsOptions {
  readonly client: KubeClient;
  /** Only these; all when left out. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called for each pod that came, went, or changed in what is kept of it: as it was, and as it is. */
  readonly onChange: (versions: readonly PodSummary[]) => void;
  readonly log: Logger;
}

/** Follows the pods of a cluster. Needs the right to list and watch them. */
export const followPods = (options: FollowPodsOptions): Pods =>
  followObjects({
    ...options,
    ...{ groupPath: "/api/v1", plural: "pods", namespaces: options.namespaces },
    ...{ trim: trimPod, toSeen: toPod, onListed: options.onChange },
  });
