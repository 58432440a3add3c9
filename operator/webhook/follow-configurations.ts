import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { isKubeError, type KubeClient, type KubeObject } from "../runtime/kube-client.ts";
import { startListWatch } from "../runtime/list-watch.ts";

/*
 * Watches both webhook configurations, because without the mutating one, pods that require a gate start without a gate:
 *
 *   present   a change is reported immediately, so that a removed authority is restored
 *   deleted   the deletion is logged as an error and reported by an Event; the configuration is recreated after RESTORE_MS, unless
 *             it exists again or this process ends
 *   absent    a configuration that is missing at startup is reported in the same way, but its contents are unknown, so `helm
 *             upgrade` must recreate it
 */

const GROUP_PATH = "/apis/admissionregistration.k8s.io/v1";
export const CONFIGURATION_KINDS = {
  mutating: "MutatingWebhookConfiguration",
  validating: "ValidatingWebhookConfiguration",
};
export type ConfigurationKind = keyof typeof CONFIGURATION_KINDS;
const NAMES = Object.keys(CONFIGURATION_KINDS) as ConfigurationKind[];
export const configurationPath = (kind: ConfigurationKind): string => `${GROUP_PATH}/${kind}webhookconfigurations`;

/**
 * Delay before a deleted configuration is recreated. An uninstallation of the chart deletes the configurations first and stops the operator
 * within seconds, so the operator recreates nothing.
 */
export const RESTORE_MS = 15_000;

export interface FollowConfigurationsOptions {
  readonly client: KubeClient;
  /** Name of both webhook configurations. */
  readonly name: string;
  readonly restoreMs: number;
  /** Called when a configuration is added or changed. */
  readonly onChange: () => void;
  /** Called for each configuration at startup and after each change, with a flag that states whether the configuration exists. */
  readonly observe: (kind: ConfigurationKind, isThere: boolean) => void;
  readonly log: Logger;
}

export function followConfigurations(options: FollowConfigurationsOptions): { close(): Promise<void> } {
  const { client, name, restoreMs, onChange, observe, log } = options;
  const stop = new AbortController();
  const following = NAMES.map((kind) => {
    let restoring = Promise.resolve();
    const onGone = (last?: KubeObject) => {
      observe(kind, false);
      const means =
        kind === "mutating"
          ? "pods with the label start without a gate"
          : "only the status of a policy reports its problems";
      const next = last === undefined ? "Restore it with helm upgrade." : "The operator restores it within 15 s.";
      const note = `The ${CONFIGURATION_KINDS[kind]} ${name} does not exist: ${means}. ${next}`;
      log.error({ configuration: `${kind}webhookconfigurations/${name}`, note }, "a webhook configuration is missing");
      void recordEvent(kind, note, options);
      if (last !== undefined) restoring = restoring.then(() => restore(kind, last));
    };
    const restore = async (which: ConfigurationKind, last: KubeObject) => {
      await sleep(restoreMs, undefined, { signal: stop.signal }).catch(() => undefined);
      if (stop.signal.aborted || watch.get("", name) !== undefined) return;
      try {
        const { labels, annotations } = last.metadata;
        await client.send({
          method: "POST",
          path: configurationPath(which),
          body: { ...last, metadata: { name, labels, annotations } },
        });
        log.warn(
          { configuration: `${which}webhookconfigurations/${name}` },
          "a deleted webhook configuration was recreated",
        );
      } catch (error) {
        // Another replica has recreated the configuration first.
        if (isKubeError(error, 409)) return;
        log.error({ err: error }, "a deleted webhook configuration cannot be recreated: use helm upgrade");
      }
    };
    const watch = startListWatch({
      client,
      path: configurationPath(kind),
      fieldSelector: `metadata.name=${name}`,
      onChange: ({ before, after }) => {
        if (after === undefined) return onGone(before);
        observe(kind, true);
        onChange();
      },
      log,
    });
    void watch.listed.then(() => {
      if (watch.get("", name) === undefined) onGone();
    });
    return { watch, done: () => restoring };
  });
  return {
    close: async () => {
      stop.abort();
      await Promise.all(following.map(({ watch }) => watch.close()));
      await Promise.all(following.map(({ done }) => done()));
    },
  };
}

/** Records an Event in the namespace `default`, as usual for cluster-scoped objects. */
async function recordEvent(
  kind: ConfigurationKind,
  note: string,
  { client, name, log }: Pick<FollowConfigurationsOptions, "client" | "name" | "log">,
): Promise<void> {
  const body = {
    apiVersion: "events.k8s.io/v1",
    kind: "Event",
    metadata: { name: `${name.slice(0, 200)}.${randomBytes(8).toString("hex")}`, namespace: "default" },
    eventTime: new Date().toISOString().replace("Z", "000Z"),
    type: "Warning",
    reason: "WebhookConfigurationMissing",
    action: "Admit",
    note,
    regarding: { apiVersion: "admissionregistration.k8s.io/v1", kind: CONFIGURATION_KINDS[kind], name },
    reportingController: "postern.dev/operator",
    reportingInstance: hostname(),
  };
  try {
    await client.send({ method: "POST", path: "/apis/events.k8s.io/v1/namespaces/default/events", body });
  } catch (error) {
    log.debug({ err: error }, "Event about a webhook configuration cannot be recorded");
  }
}
