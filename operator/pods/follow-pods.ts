import type { Logger } from "pino";
import type { KubeClient, KubeObject } from "../runtime/kube-client.ts";
import { startListWatch } from "../runtime/list-watch.ts";
import { type SeenPod, toPod, trimPod } from "./pod.ts";

export interface Pods {
  /** The pods of a namespace; undefined until all were listed once. */
  in(namespace: string): readonly SeenPod[] | undefined;
  close(): Promise<void>;
}

export interface FollowPodsOptions {
  readonly client: KubeClient;
  /** Only these; all when left out. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called for each pod that came, went, or changed in what is kept of it: as it was, and as it is. */
  readonly onChange: (versions: readonly SeenPod[]) => void;
  readonly log: Logger;
}

/** Follows the pods of a cluster. Needs the right to list and watch them. */
export function followPods({ client, namespaces, onChange, log }: FollowPodsOptions): Pods {
  const byNamespace = new Map<string, Map<string, SeenPod>>();

  const keep = ({ before, after }: { readonly before?: KubeObject; readonly after?: KubeObject }) => {
    const [was, is] = [before && toPod(before), after && toPod(after)];
    const { namespace, name } = is ?? was ?? { namespace: "", name: "" };
    const pods = byNamespace.get(namespace) ?? new Map<string, SeenPod>();
    byNamespace.set(namespace, pods);
    if (is === undefined) pods.delete(name);
    else pods.set(name, is);
    if (pods.size === 0) byNamespace.delete(namespace);
    // Most changes of a pod are about what is not kept of it.
    if (JSON.stringify(was) !== JSON.stringify(is)) onChange([was, is].filter((pod) => pod !== undefined));
  };

  const watches = (namespaces ?? [undefined]).map((namespace) =>
    startListWatch({
      client,
      path: namespace === undefined ? "/api/v1/pods" : `/api/v1/namespaces/${namespace}/pods`,
      trim: trimPod,
      onChange: keep,
      log,
    }),
  );
  let isListed = false;
  void Promise.all(watches.map(({ listed }) => listed)).then(() => {
    isListed = true;
    onChange([...byNamespace.values()].flatMap((pods) => [...pods.values()]));
  });

  return {
    in: (namespace) => (isListed ? [...(byNamespace.get(namespace)?.values() ?? [])] : undefined),
    close: async () => {
      await Promise.all(watches.map((watch) => watch.close()));
    },
  };
}
