import type { Logger } from "pino";
import { followObjects } from "../runtime/follow-objects.ts";
import type { KubeClient } from "../runtime/kube-client.ts";
import { type PodSummary, toPod, trimPod } from "./pod.ts";

export interface Pods {
  /** Returns the pods of a namespace; `undefined` until the first list has completed. */
  in(namespace: string): readonly PodSummary[] | undefined;
  close(): Promise<void>;
}

export interface FollowPodsOptions {
  readonly client: KubeClient;
  /** Namespaces to watch. Default: all. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called for each pod that was added, removed, or changed in its summary: with the old and the new version. */
  readonly onChange: (versions: readonly PodSummary[]) => void;
  readonly log: Logger;
}

/** Watches the pods of a cluster. Needs the right to list and watch them. */
export const followPods = (options: FollowPodsOptions): Pods =>
  followObjects({
    ...options,
    ...{ groupPath: "/api/v1", plural: "pods", namespaces: options.namespaces },
    ...{ trim: trimPod, toSeen: toPod, onListed: options.onChange },
  });
