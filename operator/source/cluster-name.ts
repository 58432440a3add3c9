import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { backoffMs } from "../../core/backoff.ts";
import { type KubeClient, KubeError, type KubeObject } from "../runtime/kube-client.ts";

const RETRY = { firstMs: 500, maxMs: 10_000, random: Math.random };
const PATH = "/api/v1/namespaces/kube-system";

/**
 * Returns the UID of the Namespace `kube-system`, which identifies the cluster for its lifetime. Waits for an unresponsive API server.
 * Throws if the Namespace may not be read, because another name would change the manager of every object.
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
        throw new Error("the cluster has no name: give --cluster, or the right to get the Namespace kube-system", {
          cause: error,
        });
      }
      log.warn({ err: error, failures }, "the name of the cluster cannot be read; retrying");
      await sleep(backoffMs(failures, RETRY));
    }
  }
}
