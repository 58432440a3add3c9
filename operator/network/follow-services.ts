import type { Logger } from "pino";
import { followObjects } from "../runtime/follow-objects.ts";
import type { KubeClient } from "../runtime/kube-client.ts";
import { type ServiceSummary, toService, trimService } from "./service.ts";

export interface Services {
  /** Returns the Services of a namespace; `undefined` until all were listed once. */
  in(namespace: string): readonly ServiceSummary[] | undefined;
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
export const followServices = ({ onChange, ...options }: FollowServicesOptions): Services =>
  followObjects({
    ...options,
    ...{ groupPath: "/api/v1", plural: "services", namespaces: options.namespaces },
    ...{ trim: trimService, toSeen: toService },
    onChange: ([version]) => onChange(version?.namespace),
    onListed: () => onChange(),
  });
