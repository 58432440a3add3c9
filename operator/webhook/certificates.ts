import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import * as z from "zod";
import { backoffMs } from "../../core/backoff.ts";
import { isKubeError, type KubeClient } from "../runtime/kube-client.ts";
import { type CertificateSet, type Lifetimes, renewed, splitPem } from "./certificate-set.ts";
import {
  configurationPath,
  type FollowConfigurationsOptions,
  followConfigurations,
  RESTORE_MS,
} from "./follow-configurations.ts";

/*
 * Manages the certificate of the webhook, which all replicas share in one Secret, renew in time, and serve from memory. Every replica
 * does this, leader or not, because every replica serves the webhook. The Secret's resource version resolves concurrent writes.
 *
 * The webhook configurations are watched: a bundle that another tool removes is restored immediately, and a deleted configuration is
 * reported and recreated (follow-configurations.ts).
 *
 * API servers must trust an authority before the webhook serves its certificates. Therefore the bundle is written into the webhook
 * configurations first, and a certificate of a new authority is used only after API servers have received the new bundle.
 */

const EVERY_MS_MAX = 60_000;
const RETRY = { firstMs: 500, maxMs: 30_000, random: Math.random };
/** Time after which all API servers use a changed webhook configuration, which they receive through a watch. */
const SETTLE_MS = 5_000;

export interface CertificatesOptions {
  readonly client: KubeClient;
  /** Namespace of the Secret. */
  readonly namespace: string;
  readonly secretName: string;
  /** Name of both webhook configurations, the mutating and the validating one. */
  readonly configurationName: string;
  /** Host names by which the API server calls the webhook. */
  readonly hosts: readonly string[];
  readonly lifetimes: Lifetimes;
  readonly nowMs: () => number;
  /** Sets the certificate and key that the webhook serves from now on. */
  readonly use: (pair: { cert: string; key: string }) => Promise<void>;
  /** Called for each configuration with a flag that states whether the configuration exists. */
  readonly observeConfiguration: FollowConfigurationsOptions["observe"];
  /** Delay before a deleted configuration is recreated. Default: `RESTORE_MS`. */
  readonly restoreMs?: number | undefined;
  readonly log: Logger;
}

export interface Certificates {
  /** Returns the reason if the API server cannot call the webhook because of the certificate; otherwise `undefined`. */
  problem(): string | undefined;
  close(): Promise<void>;
}

export function keepCertificates(options: CertificatesOptions): Certificates {
  const { lifetimes, log } = options;
  const stop = new AbortController();
  const everyMs = Math.min(EVERY_MS_MAX, lifetimes.servingMs / 20);
  let inUse: CertificateSet | undefined;
  let failures = 0;
  let lastFailure = "";
  let wake = new AbortController();

  async function refresh(): Promise<void> {
    const set = await share(options);
    await trust(set.bundle, options);
    if (set.cert !== inUse?.cert) {
      const isNewAuthority = inUse !== undefined && splitPem(set.bundle)[0] !== splitPem(inUse.bundle)[0];
      if (isNewAuthority) await sleep(Math.min(SETTLE_MS, everyMs), undefined, { signal: stop.signal });
      await options.use(set);
      log.info({ hosts: options.hosts, isNewAuthority }, "webhook certificate replaced");
    }
    inUse = set;
  }

  async function run(): Promise<void> {
    while (!stop.signal.aborted) {
      wake = new AbortController();
      try {
        await refresh();
        failures = 0;
      } catch (error) {
        if (stop.signal.aborted) return;
        failures += 1;
        lastFailure = error instanceof Error ? error.message : String(error);
        if (failures === 1) log.error({ err: error }, "webhook certificate cannot be stored; retrying");
      }
      const waitMs = failures === 0 ? everyMs : Math.min(everyMs, backoffMs(failures, RETRY));
      const signal = AbortSignal.any([stop.signal, wake.signal]);
      await sleep(waitMs, undefined, { signal }).catch(() => undefined);
    }
  }

  const following = followConfigurations({
    client: options.client,
    name: options.configurationName,
    restoreMs: options.restoreMs ?? RESTORE_MS,
    // Retries a failure with backoff.
    onChange: () => {
      if (failures === 0) wake.abort();
    },
    observe: options.observeConfiguration,
    log,
  });
  const running = run();
  return {
    // A replica that temporarily cannot renew the set continues to use its current one.
    problem: () =>
      inUse === undefined ? `the webhook has no certificate yet${lastFailure && `: ${lastFailure}`}` : undefined,
    close: async () => {
      stop.abort();
      await Promise.all([running, following.close()]);
    },
  };
}

const StoredSecret = z.object({
  metadata: z.looseObject({ resourceVersion: z.string() }),
  data: z.record(z.string(), z.string()).default({}),
});

const MEMBERS = { bundle: "ca.crt", authorityKey: "ca.key", cert: "tls.crt", key: "tls.key" } as const;

const encode = (text: string): string => Buffer.from(text).toString("base64");
const decode = (text: string): string => Buffer.from(text, "base64").toString();

/** Returns the set that all replicas share, renewed if necessary. */
async function share(options: CertificatesOptions): Promise<CertificateSet> {
  const { client, namespace, secretName, hosts, lifetimes, nowMs } = options;
  const path = `/api/v1/namespaces/${namespace}/secrets`;
  for (;;) {
    const secret = await readSecret(client, `${path}/${secretName}`);
    const current = secret === undefined ? undefined : toSet(secret.data);
    const set = renewed(current, { hosts, lifetimes, nowMs: nowMs() });
    if (set === current) return set;
    const data = Object.fromEntries(
      Object.entries(MEMBERS).map(([member, name]) => [name, encode(set[member as keyof CertificateSet])]),
    );
    // Keeps the labels and annotations of the Secret, because they may be needed by the tool that created it, for example the one that
    // applied the chart.
    const metadata = secret?.metadata ?? { name: secretName, namespace };
    const body = { apiVersion: "v1", kind: "Secret", type: "Opaque", metadata, data };
    try {
      if (secret === undefined) await client.send({ method: "POST", path, body });
      else await client.send({ method: "PUT", path: `${path}/${secretName}`, body });
      return set;
    } catch (error) {
      // Another replica has written the Secret first, so its set is used.
      if (!isKubeError(error, 409)) throw error;
    }
  }
}

async function readSecret(client: KubeClient, path: string): Promise<z.output<typeof StoredSecret> | undefined> {
  try {
    return StoredSecret.parse(await client.send({ method: "GET", path }));
  } catch (error) {
    if (isKubeError(error, 404)) return undefined;
    throw error;
  }
}

/** Parses the Secret. A Secret that lacks a member counts as empty and is rewritten. */
function toSet(data: Readonly<Record<string, string>>): CertificateSet {
  const read = (member: keyof typeof MEMBERS) => decode(data[MEMBERS[member]] ?? "");
  return { bundle: read("bundle"), authorityKey: read("authorityKey"), cert: read("cert"), key: read("key") };
}

const Configuration = z.looseObject({
  webhooks: z.array(z.looseObject({ clientConfig: z.looseObject({ caBundle: z.string().optional() }) })).default([]),
});

/** Writes the bundle into both webhook configurations. follow-configurations.ts reports missing configurations. */
async function trust(bundle: string, { client, configurationName, log }: CertificatesOptions): Promise<void> {
  const caBundle = encode(bundle);
  for (const kind of ["mutating", "validating"] as const) {
    const path = `${configurationPath(kind)}/${configurationName}`;
    try {
      const configuration = Configuration.parse(await client.send({ method: "GET", path }));
      if (configuration.webhooks.every(({ clientConfig }) => clientConfig.caBundle === caBundle)) continue;
      const webhooks = configuration.webhooks.map((webhook) => ({
        ...webhook,
        clientConfig: { ...webhook.clientConfig, caBundle },
      }));
      // The write contains the resource version of the configuration, so it cannot undo a concurrent change by the chart.
      await client.send({ method: "PUT", path, body: { ...configuration, webhooks } });
      log.info({ configuration: `${kind}webhookconfigurations/${configurationName}` }, "webhook CA written");
    } catch (error) {
      if (!isKubeError(error, 404)) throw error;
    }
  }
}
