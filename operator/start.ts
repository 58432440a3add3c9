import { hostname } from "node:os";
import type { Logger } from "pino";
import { Registry } from "prom-client";
import type { Kind } from "../core/manifests/index.ts";
import { startAdmin, watchProblem } from "./admin.ts";
import { createOperatorMetrics } from "./metrics.ts";
import { NETWORK_POLICIES } from "./network/network-policy.ts";
import { openOwnNetworkPolicies } from "./network/own-network-policies.ts";
import { SERVICES } from "./network/service.ts";
import { asksForGate, PODS } from "./pods/pod.ts";
import { startSecretPolling } from "./reconcilers/api-key/secret-polling.ts";
import { concerns } from "./reconcilers/api-key-policy/choose-policy.ts";
import { createPolicyCache } from "./reconcilers/api-key-policy/policy-cache.ts";
import { startPolicyPoll } from "./reconcilers/api-key-policy/poll.ts";
import { isLabelled } from "./reconcilers/api-key-policy/selection.ts";
import type { OperatorContext, Term } from "./reconcilers/context.ts";
import { startDigestPoll } from "./reconcilers/drift/poll.ts";
import { createSyncedObjects } from "./reconcilers/drift/synced-objects.ts";
import { INDEXES } from "./reconcilers/indexes.ts";
import { concernsItself, RECONCILERS } from "./reconcilers/registry.ts";
import { createSyncTimes } from "./reconcilers/sync-times.ts";
import type { Environment } from "./runtime/cluster-access.ts";
import { type Controller, startController } from "./runtime/controller.ts";
import { type FollowedKind, followObjects, type Named } from "./runtime/follow-objects.ts";
import type { KubeClient } from "./runtime/kube-client.ts";
import { type LeaderElection, startLeaderElection } from "./runtime/leader.ts";
import { collectKeys, formatKey, type ObjectKey } from "./runtime/object-key.ts";
import type { WatchState } from "./runtime/watches.ts";
import { findClusterName, openCluster } from "./source/cluster.ts";
import { keyOf, type ManifestChange, type ManifestSource } from "./source/contract.ts";
import type { DocumentProblem } from "./source/directory/documents.ts";
import { createDirectorySource } from "./source/directory.ts";
import { indexSource } from "./source/indexed.ts";
import { createKubernetesSource } from "./source/kubernetes.ts";
import { followNamespaces, type NamespaceLabels, shareNamespaces } from "./source/namespaces.ts";
import { UNSEEN, WORKSPACE_LABEL } from "./tenancy/placement.ts";
import { openWorkspaces, type WorkspacesOptions } from "./tenancy/workspaces.ts";
import { createTrafficMetrics, type TrafficMetrics } from "./traffic-metrics.ts";
import { startWebhook, type Webhook, type WebhookConfig, type WebhookDeps } from "./webhook/start.ts";

export interface OperatorConfig {
  readonly source:
    | {
        readonly kind: "kubernetes";
        /** Path of the kubeconfig file. Default: the cluster in which the operator runs. */
        readonly kubeconfig?: string;
        /** Namespaces to watch. Default: all. */
        readonly namespaces?: readonly string[];
        /** Environment of the process. In a pod, it contains the address of the API server. Kubeconfig plugins inherit it. */
        readonly env?: Environment;
      }
    | { readonly kind: "directory"; readonly dir: string; readonly stateDir: string };
  readonly apiUrl: string;
  /** One root key for all namespaces, or a folder with one root key per workspace. */
  readonly keys: WorkspacesOptions["keys"];
  /** Workspace of namespaces that are not assigned to another one. */
  readonly defaultWorkspace?: string;
  /** File that assigns namespaces to workspaces and grants names. */
  readonly tenancyFile?: string;
  /**
   * Name of this cluster or directory, part of each object's manager name. It must be unique among all clusters and directories that share
   * the api-server. Default: the UID of `kube-system`, or `default` for a directory.
   */
  readonly cluster?: string;
  readonly logger: Logger;
  /** Address for probes and metrics; port 0 selects a free port. Default: no admin server. */
  readonly admin?: { readonly host: string; readonly port: number };
  /** Lease by which the replica that reconciles is elected. Default: every replica reconciles. Kubernetes only. */
  readonly lease?: {
    readonly name: string;
    /** Namespace of the Lease. Default: the namespace of the kubeconfig's context or of the pod. */
    readonly namespace?: string;
  };
  /** Value of the label `postern.dev/controller-class` of the objects to reconcile. Default: objects without the label. Kubernetes only. */
  readonly controllerClass?: string | undefined;
  /** Admission webhook that injects gates and validates policies. Kubernetes only. */
  readonly webhook?: WebhookConfig | undefined;
  readonly resyncMs?: number;
  /** Maximum number of concurrent reconciles per kind. */
  readonly concurrency?: number;
  readonly nowMs?: () => number;
}

export interface ObjectStatus {
  readonly kind: Kind;
  readonly namespace: string;
  readonly name: string;
  readonly generation: number;
  readonly status: Readonly<Record<string, unknown>> | undefined;
}

export interface Operator {
  readonly cluster: string;
  /** URL of the admin server; `undefined` if there is none. */
  readonly adminUrl: string | undefined;
  readonly webhook: Webhook | undefined;
  /** Resolves when each object that existed at the start has been reconciled once, successfully or not. */
  ready(): Promise<void>;
  /** Returns the objects with their statuses. */
  statuses(): readonly ObjectStatus[];
  /**
   * Returns problems in documents of a directory. The result is always empty for a cluster, because its API server rejects invalid objects.
   */
  problems(): readonly DocumentProblem[];
  close(): Promise<void>;
}

const RESYNC_MS = 300_000;
const CLOSE_MS = 2_000;
/** Delay during which changes of pods and NetworkPolicies are collected, before the affected policies are reconciled. */
const PODS_MS = 500;

/** Starts to watch and reconcile. Throws if the source cannot be opened. */
export async function startOperator(config: OperatorConfig): Promise<Operator> {
  const { logger: log, resyncMs = RESYNC_MS, nowMs = Date.now } = config;
  const registry = new Registry();
  const traffic = createTrafficMetrics(registry);
  const opened = await openSource(config, traffic);
  const { cluster, problems, elect, watchStates, followLabels, serveWebhook, closeSource } = opened;
  const source = indexSource(opened.source, INDEXES);
  const stop = new AbortController();
  let election: LeaderElection | undefined;
  let term: Term & { readonly end: () => void } = NO_TERM;
  const controllers = new Map<Kind, Controller>();
  const syncs = createSyncTimes();
  const synced = createSyncedObjects(resyncMs);
  const policyCache = createPolicyCache((pace) => poll.hurry(pace));
  /** Queues a changed object, and drops its cached state. */
  const addChanged = (kind: Kind, key: ObjectKey) => {
    if (kind === "ApiKeyPolicy") policyCache.forget(key);
    else synced.forget(kind, key);
    controllers.get(kind)?.add(key);
  };
  // Collects changes before it acts on them, because pods start in groups and change several times during their start.
  const touched = collectKeys(PODS_MS, (key) => controllers.get("ApiKeyPolicy")?.add(key));
  const objectsIn = (kind: Kind, namespace?: string) =>
    namespace === undefined ? source.list(kind) : source.having(kind, "namespace", namespace);
  const recheck = (namespace?: string) => {
    for (const kind of controllers.keys()) {
      for (const object of objectsIn(kind, namespace)) addChanged(kind, keyOf(object));
    }
  };
  const workspaces = await openWorkspaces({
    ...config,
    settingsFile: config.tenancyFile,
    followLabels,
    onChange: recheck,
    signal: () => term.signal,
    observe: traffic.observeApi,
    log,
  }).catch(async (error: unknown) => {
    await closeSource();
    throw error;
  });
  const touchPolicies = (namespace?: string) => {
    for (const policy of objectsIn("ApiKeyPolicy", namespace)) touched.add(keyOf(policy));
  };
  const { client, watchedNamespaces } = opened;
  const watch = <Seen extends Named>(kind: FollowedKind<Seen>, onChange: (versions: readonly Seen[]) => void) =>
    client && followObjects({ ...kind, client, namespaces: watchedNamespaces, onChange, log });
  const pods = watch(PODS, (versions) => {
    if (versions.length === 0) touchPolicies();
    for (const pod of versions) {
      for (const policy of source.having("ApiKeyPolicy", "namespace", pod.namespace)) {
        if (concerns(policy, pod) || isLabelled(policy, pod)) touched.add(keyOf(policy));
      }
    }
  });
  const networkPolicies = watch(NETWORK_POLICIES, ([version]) => touchPolicies(version?.namespace));
  const network = client && networkPolicies && openOwnNetworkPolicies(client, networkPolicies);
  const services = watch(SERVICES, ([version]) => touchPolicies(version?.namespace));
  // Without the webhook, the label has no effect, and the operator may have no permission to read Namespaces.
  const namespaces = config.webhook && opened.followNamespaces?.(touchPolicies);
  const isNamespaceGuarded = (namespace: string) => {
    const labels = namespaces?.labelsOf(namespace);
    return labels && asksForGate(labels);
  };
  const ctx: OperatorContext = {
    source,
    workspaces,
    cluster,
    policyCache: policyCache,
    synced,
    syncs,
    pods,
    isNamespaceGuarded,
    network,
    services,
    term: () => term,
    onStaleFence: () => election?.renew(),
    resyncMs,
    nowMs,
    log,
  };
  const metrics = createOperatorMetrics({ registry, controllers, watchStates, source, syncs, nowMs });
  const pending = new Set<string>();
  const allSeen = Promise.withResolvers<void>();
  let isListed = false;

  for (const { kind, reconcile } of RECONCILERS) {
    const controller = startController({
      name: kind,
      reconcile: async (key) => {
        try {
          return await reconcile(key, ctx);
        } finally {
          seen(`${kind} ${formatKey(key)}`);
        }
      },
      resyncMs,
      ...(config.concurrency === undefined ? {} : { concurrency: config.concurrency }),
      log,
      observe: metrics.observe,
      observeWait: metrics.observeWait,
    });
    controllers.set(kind, controller);
  }

  const poll = startPolicyPoll({
    ctx,
    add: (key) => controllers.get("ApiKeyPolicy")?.add(key),
    observe: metrics.observePoll,
    log,
  });

  const digests = startDigestPoll({ ctx, add: (kind, key) => controllers.get(kind)?.add(key), log });
  const secretPolling = startSecretPolling({ source, add: (key) => controllers.get("ApiKey")?.add(key), log });
  const workers = () => [...controllers.values(), poll, digests, secretPolling];
  const closeWorkers = () => Promise.all(workers().map((worker) => worker.close()));
  const closeFollowed = async () => {
    touched.close();
    const followed = [pods, networkPolicies, services, namespaces];
    await Promise.all([workspaces.close(), ...followed.map((one) => one?.close())]);
    await closeSource();
  };

  function seen(id: string): void {
    pending.delete(id);
    if (isListed && pending.size === 0) allSeen.resolve();
  }

  const onChange = (change: ManifestChange) => {
    const object = change.after ?? change.before;
    if (object === undefined) return;
    if (change.after === undefined) {
      syncs.forget(object);
      synced.forget(change.kind, keyOf(object));
      if (change.kind === "ApiKeyPolicy") policyCache.drop(keyOf(object));
    }
    if (!isListed) pending.add(`${change.kind} ${formatKey(keyOf(object))}`);
    if (concernsItself(change)) addChanged(change.kind, keyOf(object));
    for (const { kind, concernedBy } of RECONCILERS) {
      const isSame = (key: { namespace: string; name: string }) =>
        kind === change.kind && formatKey(key) === formatKey(keyOf(object));
      for (const key of concernedBy(change, source)) {
        if (!isSame(key) && areTogether(key.namespace, object.metadata.namespace)) addChanged(kind, key);
      }
    }
  };

  /** Returns whether two namespaces are in one workspace. A change affects only objects of its own workspace. */
  const areTogether = (one: string, other: string): boolean =>
    one === other || workspaces.resolve(one).workspace?.name === workspaces.resolve(other).workspace?.name;

  const lead = (fence?: number) => {
    term = beginTerm(fence, stop.signal);
    metrics.setLeading(true);
    for (const worker of workers()) worker.resume();
  };
  const follow = () => {
    term.end();
    metrics.setLeading(false);
    for (const worker of workers()) worker.pause();
  };

  const webhook = serveWebhook?.({ cluster, source, workspaces, isListed: () => isListed, registry, nowMs, log });
  // Starts the admin server first: it must respond to probes even while the first list waits for an unreachable Kubernetes API.
  const notReady = (): string[] => {
    const problems = [...watchStates().map(watchProblem), election?.problem, webhook?.problem(), workspaces.problem()];
    const reasons = problems.filter((reason) => reason !== undefined);
    return isListed || reasons.length > 0 ? reasons : ["the manifests are not listed yet"];
  };
  const admin = config.admin === undefined ? undefined : await startAdmin({ ...config.admin, registry, notReady });
  try {
    // Lists the Namespaces first, so that no object is assigned to the wrong workspace.
    await workspaces.ready;
    await source.start(onChange);
  } catch (error) {
    await Promise.all([admin?.close(), webhook?.close(), closeWorkers()]);
    await closeFollowed();
    throw error;
  }
  isListed = true;
  webhook?.prepare(source.list("ApiKeyPolicy").map(({ metadata }) => metadata.namespace));
  if (pending.size === 0) allSeen.resolve();
  election = elect({ onStarted: lead, onStopped: follow });

  return {
    cluster,
    adminUrl: admin?.url,
    webhook,
    ready: () => allSeen.promise,
    statuses: () => statusesOf(source),
    problems,
    close: async () => {
      await Promise.all([admin?.close(), webhook?.close()]);
      // Waits for running reconciles, but only for a limited time, because an unresponsive API must not delay the exit.
      const late = setTimeout(() => stop.abort(), CLOSE_MS);
      await closeWorkers();
      clearTimeout(late);
      // Releases the Lease last, after all writes, because the next leader must not start while this process writes.
      await election?.close();
      await closeFollowed();
    },
  };
}

/** Returns a term of leadership. Its calls are aborted when it ends, or when the operator must exit. */
function beginTerm(fence: number | undefined, stop: AbortSignal): Term & { readonly end: () => void } {
  const ended = new AbortController();
  return { fence, signal: AbortSignal.any([ended.signal, stop]), end: () => ended.abort() };
}

/** State before the first term. No calls are made in this state. */
const NO_TERM = { fence: undefined, signal: AbortSignal.abort(), end: () => undefined };

interface Terms {
  readonly onStarted: (fence?: number) => void;
  readonly onStopped: () => void;
}

interface OpenSource {
  readonly cluster: string;
  readonly source: ManifestSource;
  readonly problems: () => readonly DocumentProblem[];
  /** Starts the election; without one, calls `onStarted` immediately. */
  readonly elect: (terms: Terms) => LeaderElection | undefined;
  /** Follows the labels of Namespaces; `undefined` for a source whose namespaces have no labels. */
  readonly followLabels: WorkspacesOptions["followLabels"];
  readonly followNamespaces: ((onChange: (namespace: string) => void) => NamespaceLabels) | undefined;
  /** Client of the Kubernetes API; `undefined` for a directory, which has no pods, Services or NetworkPolicies. */
  readonly client: KubeClient | undefined;
  /** Namespaces to watch; `undefined` for all. */
  readonly watchedNamespaces: readonly string[] | undefined;
  readonly watchStates: () => readonly WatchState[];
  /** Starts the webhook; `undefined` if none is configured, or if the source cannot call one. */
  readonly serveWebhook: ((deps: Omit<WebhookDeps, "client" | "namespace" | "controllerClass">) => Webhook) | undefined;
  /** Closes the source, and the connections that the source and the election share. */
  readonly closeSource: () => Promise<void>;
}

async function openSource(config: OperatorConfig, traffic: TrafficMetrics): Promise<OpenSource> {
  const { source, logger: log, lease, webhook, controllerClass } = config;
  if (source.kind === "directory") {
    const directory = createDirectorySource({ ...source, log });
    return {
      cluster: config.cluster ?? "default",
      source: directory,
      problems: directory.problems,
      elect: leadAtOnce,
      followLabels: undefined,
      followNamespaces: undefined,
      client: undefined,
      watchedNamespaces: undefined,
      watchStates: () => [],
      serveWebhook: undefined,
      closeSource: directory.close,
    };
  }
  const { client, namespace } = await openCluster(source.kubeconfig, source.env ?? {}, traffic.observeKubernetes);
  const cluster =
    config.cluster ??
    (await findClusterName({ client, log }).catch(async (error: unknown) => {
      await client.close();
      throw error;
    }));
  const electBy = (found: NonNullable<OperatorConfig["lease"]>) => (terms: Terms) =>
    startLeaderElection({
      client,
      namespace,
      ...found,
      identity: `${hostname()}_${crypto.randomUUID()}`,
      log,
      ...terms,
    });
  const share = shareNamespaces((onChange) => followNamespaces({ client, onChange, log }));
  const kubernetes = createKubernetesSource({ client, namespaces: source.namespaces, controllerClass, log });
  return {
    cluster,
    source: kubernetes,
    problems: () => [],
    elect: lease === undefined ? leadAtOnce : electBy(lease),
    serveWebhook:
      webhook === undefined
        ? undefined
        : (deps) => startWebhook(webhook, { ...deps, client, namespace, controllerClass }),
    followNamespaces: share,
    followLabels: (onChange) => {
      const { labelsOf, ...following } = share(onChange);
      const of = (namespace: string) => {
        const labels = labelsOf(namespace);
        return labels === undefined ? UNSEEN : labels[WORKSPACE_LABEL];
      };
      return { ...following, of };
    },
    client,
    watchedNamespaces: source.namespaces,
    watchStates: client.watches.states,
    closeSource: async () => {
      await kubernetes.close();
      await client.close();
    },
  };
}

function leadAtOnce({ onStarted }: Terms): undefined {
  onStarted();
}

function statusesOf(source: ManifestSource): ObjectStatus[] {
  return RECONCILERS.flatMap(({ kind }) =>
    source.list(kind).map(({ metadata: { namespace, name, generation }, status }) => ({
      kind,
      namespace,
      name,
      generation,
      status: status as ObjectStatus["status"],
    })),
  );
}
