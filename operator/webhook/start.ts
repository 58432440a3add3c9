import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import * as z from "zod";
import type { InjectionConfig } from "../injection/config.ts";
import { followFolder } from "../runtime/follow-folder.ts";
import type { KubeClient } from "../runtime/kube-client.ts";
import type { Lookup } from "../source/indexed.ts";
import type { Workspaces } from "../tenancy/workspaces.ts";
import { DEFAULT_LIFETIMES, type Lifetimes } from "./certificate-set.ts";
import { keepCertificates } from "./certificates.ts";
import { MUTATE_PATH, VALIDATE_PATH } from "./configurations.ts";
import { createWebhookMetrics } from "./metrics.ts";
import { mutatePod } from "./mutate.ts";
import { startWebhookServer, type WebhookServer } from "./server.ts";
import { validatePolicy } from "./validate.ts";
import { createWorkspaceIds } from "./workspace-ids.ts";

export interface WebhookConfig {
  readonly host: string;
  readonly port: number;
  /** Host names by which the API server calls the webhook, such as `postern-webhook.postern.svc`. */
  readonly hosts: readonly string[];
  readonly configurationName: string;
  readonly certificate:
    | { readonly secretName: string; readonly lifetimes?: Lifetimes; readonly restoreMs?: number }
    /** Folder with `tls.crt` and `tls.key`, such as a mounted Secret of cert-manager. The files are reloaded on change. */
    | { readonly dir: string };
  readonly injection: InjectionConfig;
}

export interface WebhookDeps {
  readonly client: KubeClient;
  /** Namespace of the operator. */
  readonly namespace: string;
  readonly cluster: string;
  /** Controller class of the operator; `undefined` if the operator has no class. */
  readonly controllerClass: string | undefined;
  readonly source: Lookup<"namespace">;
  readonly workspaces: Pick<Workspaces, "resolve" | "confirm">;
  /** Returns whether the manifests are listed. */
  readonly isListed: () => boolean;
  readonly registry: Registry;
  readonly nowMs: () => number;
  readonly log: Logger;
}

export interface Webhook {
  /** Requests in advance the data that pods of these namespaces will need. */
  prepare(namespaces: Iterable<string>): void;
  /** Returns the reason why calls are not served; `undefined` if they are. */
  problem(): string | undefined;
  /** Port on which the webhook listens; `undefined` before there is a certificate. */
  readonly port: number | undefined;
  close(): Promise<void>;
}

/** Starts the webhook. It serves calls as soon as it has a certificate, on every replica, leader or not. */
export function startWebhook(config: WebhookConfig, deps: WebhookDeps): Webhook {
  const { log } = deps;
  const { observe, observeConfiguration, serves } = createWebhookMetrics(deps.registry);
  const ids = createWorkspaceIds(deps.workspaces, log);
  let { injection } = config;
  let server: WebhookServer | undefined;
  let isClosed = false;

  const handlers = {
    [MUTATE_PATH]: (request: Parameters<typeof mutatePod>[0]) =>
      mutatePod(request, {
        config: injection,
        cluster: deps.cluster,
        controllerClass: deps.controllerClass,
        policiesOf: (namespace) => deps.source.having("ApiKeyPolicy", "namespace", namespace),
        workspaceOf: ids.of,
      }),
    [VALIDATE_PATH]: validatePolicy,
  };

  async function use(pair: { cert: string; key: string }): Promise<void> {
    if (server !== undefined) server.setCertificate(pair);
    else {
      // Must be complete before the first call, because a decision may depend on the result.
      injection = await withoutSleep(injection, deps);
      const { host, port } = config;
      server = await startWebhookServer({ host, port, handlers, isReady: deps.isListed, observe, log }, pair);
      if (isClosed) await server.close();
    }
    serves(pair.cert);
  }

  const { certificate } = config;
  const keeping =
    "dir" in certificate
      ? followFiles(certificate.dir, use, log)
      : keepCertificates({
          ...deps,
          ...config,
          secretName: certificate.secretName,
          lifetimes: certificate.lifetimes ?? DEFAULT_LIFETIMES,
          restoreMs: certificate.restoreMs,
          observeConfiguration,
          use,
        });
  return {
    prepare: (namespaces) => {
      for (const namespace of new Set(namespaces)) ids.prepare(namespace);
    },
    problem: () => keeping.problem() ?? (server === undefined ? "the webhook does not listen yet" : undefined),
    get port() {
      return server?.port;
    },
    close: async () => {
      isClosed = true;
      await keeping.close();
      await server?.close();
    },
  };
}

/** Uses the certificate files as soon as they exist. */
function followFiles(dir: string, use: (pair: { cert: string; key: string }) => Promise<void>, log: Logger) {
  let served: string | undefined;
  const read = async () => {
    const [cert, key] = await Promise.all(["tls.crt", "tls.key"].map((name) => readFile(join(dir, name), "utf8")));
    if (cert === undefined || key === undefined || cert + key === served) return;
    await use({ cert, key });
    served = cert + key;
    log.info({ dir }, "webhook certificate replaced");
  };
  const following = followFolder({ dir, log }, () =>
    read().catch((error: unknown) => {
      if (served !== undefined) throw error;
      log.warn({ dir, err: error }, "webhook is waiting for its certificate");
    }),
  );
  return {
    problem: () => (served === undefined ? `the webhook is waiting for tls.crt and tls.key in ${dir}` : undefined),
    close: async () => (await following).close(),
  };
}

/** First Kubernetes minor version that supports the sleep action without a feature gate. */
const SLEEP_SINCE_MINOR = 30;
const Version = z.object({ major: z.string(), minor: z.string() });

/** Disables the sleep for older API servers, which would drop the action and then reject the empty hook. */
async function withoutSleep(injection: InjectionConfig, { client, log }: WebhookDeps): Promise<InjectionConfig> {
  const { major, minor } = Version.parse(await client.send({ method: "GET", path: "/version" }));
  if (Number(major) > 1 || Number.parseInt(minor, 10) >= SLEEP_SINCE_MINOR || injection.preStopSeconds === 0)
    return injection;
  log.warn({ major, minor }, "this Kubernetes version has no sleep action: apps may end too early");
  return { ...injection, preStopSeconds: 0 };
}
