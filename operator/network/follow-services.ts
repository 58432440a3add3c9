import type { Logger } from "pino";
import type { KubeClient, KubeObject } from "../runtime/kube-client.ts";
import { startListWatch } from "../runtime/list-watch.ts";
import { type SeenService, toService, trimService } from "./service.ts";

export interface Services {
  /** Returns the Services of a namespace; `undefined` until all were listed once. */
  in(namespace: string): readonly SeenService[] | undefined;
  close(): Promise<void>;
}

export interface FollowServicesOptions {
  readonly client: KubeClient;
  /** Default: all namespaces. */
  readonly namespaces?: readonly string[] | undefined;
  /** Called with the namespace of each Service that was added, removed or changed; without one when all were listed. */
  readonly onChange: (namespace?: string) => void;
  readonly log: Logger;
}

/** Watches the Services of a cluster. Needs the right to list and watch them. */
export function followServices({ client, namespaces, onChange, log }: FollowServicesOptions): Services {
  const byNamespace = new Map<string, Map<string, SeenService>>();
  const keep = ({ before, after }: { readonly before?: KubeObject; readonly after?: KubeObject }) => {
    const [was, is] = [before && toService(before), after && toService(after)];
    const { namespace, name } = is ?? was ?? { namespace: "", name: "" };
    const services = byNamespace.get(namespace) ?? new Map<string, SeenService>();
    byNamespace.set(namespace, services);
    if (is === undefined) services.delete(name);
    else services.set(name, is);
    if (services.size === 0) byNamespace.delete(namespace);
    if (JSON.stringify(was) !== JSON.stringify(is)) onChange(namespace);
  };
  const watches = (namespaces ?? [undefined]).map((namespace) =>
    startListWatch({
      client,
      path: namespace === undefined ? "/api/v1/services" : `/api/v1/namespaces/${namespace}/services`,
      trim: trimService,
      onChange: keep,
      log,
    }),
  );
  let isListed = false;
  void Promise.all(watches.map(({ listed }) => listed)).then(() => {
    isListed = true;
    onChange();
  });
  return {
    in: (namespace) => (isListed ? [...(byNamespace.get(namespace)?.values() ?? [])] : undefined),
    close: async () => {
      await Promise.all(watches.map((watch) => watch.close()));
    },
  };
}
