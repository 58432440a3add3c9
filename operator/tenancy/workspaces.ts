import { readFile } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import type { Logger } from "pino";
import { type ApiAttempt, type ApiClient, type ApiOptions, createStoreApi } from "../api/client.ts";
import { followFolder } from "../runtime/follow-folder.ts";
import { mayUseName, type NameUse } from "./name-grants.ts";
import { type Placement, placementOf, type UNSEEN } from "./placement.ts";
import { followRootKeys } from "./root-keys.ts";
import { NO_SETTINGS, parseSettings, type TenancySettings } from "./settings.ts";

/*
 * The workspaces in which an operator acts, and who is where. What it is decided by may change at any time: the labels of
 * Namespaces, the root keys, the settings. Each change is taken over at once, and `onChange` says which namespaces to look at.
 */

/** A workspace of the store. */
export interface Workspace {
  /** undefined for the only workspace of an operator that has one root key. */
  readonly name: string | undefined;
  /** Whether it has the namespaces that name none; then it also has what was made before workspaces had names. */
  readonly isDefault: boolean;
  /** Calls with a root key of the workspace. */
  readonly api: ApiClient;
}

export type Place =
  | { readonly workspace: Workspace; readonly reason?: never }
  | Extract<Placement, { readonly reason: string }>;

export interface Workspaces {
  /** Where the objects of a Kubernetes namespace act. */
  resolve(namespace: string): Place;
  mayUseName(use: NameUse): boolean;
  /** Resolves when every namespace that exists can be placed. */
  readonly ready: Promise<void>;
  /** Why nothing can be done for any object: the API never accepted the only root key. `undefined` otherwise. */
  problem(): string | undefined;
  /** Makes sure that `placeOf` goes by what the cluster says now. */
  confirm(namespace: string): Promise<void>;
  close(): Promise<void>;
}

/** The labels of Namespaces, as a source of manifests knows them. */
export interface Labels {
  /** Resolves when all were listed. */
  readonly listed: Promise<void>;
  of(namespace: string): string | undefined | typeof UNSEEN;
  /** Reads one Namespace now. */
  refresh(namespace: string): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspacesOptions {
  readonly apiUrl: string;
  /** One root key for all namespaces, which may be replaced by another one of its workspace; or a folder with one per workspace. */
  readonly keys: { readonly rootKey: () => string } | { readonly rootKeysDir: string };
  /** The workspace of namespaces that name none; with one root key, the name of its workspace. */
  readonly defaultWorkspace?: string | undefined;
  /** A file with `TenancySettings`. */
  readonly settingsFile?: string | undefined;
  /** Called at most once, when labels count; undefined where Namespaces have none. `onChange` gets the name of a Namespace. */
  readonly followLabels: ((onChange: (namespace: string) => void) => Labels) | undefined;
  /** The objects of this namespace are to be looked at; every object when it is left out. */
  readonly onChange: (namespace?: string) => void;
  readonly signal: AbortSignal;
  readonly observe?: ((attempt: ApiAttempt) => void) | undefined;
  readonly log: Logger;
}

/** How often the only root key is tried until the API accepts it. */
const CHECK_MS = 10_000;

/** Throws when the folder or the settings cannot be read at the start; later, what was read last holds. */
export async function openWorkspaces(options: WorkspacesOptions): Promise<Workspaces> {
  const { apiUrl, keys, defaultWorkspace, settingsFile, followLabels, onChange, signal, observe, log } = options;
  const open = (name: string | undefined, rootKey: () => string, onRootKey?: ApiOptions["onRootKey"]): Workspace => ({
    name,
    isDefault: name === defaultWorkspace,
    api: createStoreApi({ url: apiUrl, rootKey, signal, observe, onRootKey }),
  });
  let taken: () => void = onChange;
  const settings = await followSettings(settingsFile, { log, onChange: () => taken() });
  const mayUse = (use: NameUse) => mayUseName(settings.current().nameGrants, use);
  if ("rootKey" in keys) {
    if (settings.current().workspaces.length > 0) {
      await settings.close();
      throw new Error("the settings of --tenancy-file name workspaces, which need --root-keys-dir");
    }
    let isAccepted = false;
    let refused: string | undefined;
    const onRootKey: ApiOptions["onRootKey"] = (refusal) => {
      isAccepted ||= refusal === undefined;
      refused = refusal?.message;
    };
    const only = { workspace: open(defaultWorkspace, keys.rootKey, onRootKey) };
    const stop = new AbortController();
    // Nothing else asks while there are no objects.
    const check = createStoreApi({ url: apiUrl, rootKey: keys.rootKey, signal: stop.signal, observe, onRootKey });
    const checking = (async () => {
      while (!isAccepted && !stop.signal.aborted) {
        await check.call("workspaces.getWorkspace", {}).catch(() => undefined);
        if (!isAccepted) await sleep(CHECK_MS, undefined, { signal: stop.signal }).catch(() => undefined);
      }
    })();
    return {
      resolve: () => only,
      mayUseName: mayUse,
      ready: Promise.resolve(),
      // A replica whose key was accepted once still admits pods, so a key that is revoked must not end it.
      problem: () => (isAccepted ? undefined : refused),
      confirm: async () => undefined,
      close: async () => {
        stop.abort();
        await Promise.all([checking, settings.close()]);
      },
    };
  }

  const opened = new Map<string, Place>();
  const onKeys = (changed: readonly string[]) => {
    for (const name of changed) opened.delete(name);
    onChange();
  };
  const rootKeys = await followRootKeys({ dir: keys.rootKeysDir, onChange: onKeys, log }).catch(
    async (error: unknown) => {
      await settings.close();
      throw error;
    },
  );
  let labels: Labels | undefined;
  const followed = (): Labels | undefined => {
    if (settings.current().namespaceLabels === "Follow") labels ??= followLabels?.(onChange);
    return labels;
  };
  taken = () => {
    followed();
    onChange();
  };
  const known = {
    byDefault: defaultWorkspace,
    labelOf: (namespace: string) => labels?.of(namespace),
    hasRootKey: (name: string) => rootKeys.current().has(name),
  };
  return {
    resolve: (namespace) => {
      const placement = placementOf(namespace, { ...known, settings: settings.current() });
      if (placement.workspace === undefined) return placement;
      const { workspace: name } = placement;
      const rootKey = rootKeys.current().get(name) ?? "";
      const place = opened.get(name) ?? { workspace: open(name, () => rootKey) };
      opened.set(name, place);
      return place;
    },
    mayUseName: mayUse,
    ready: followed()?.listed ?? Promise.resolve(),
    // One team's key stops its own objects alone.
    problem: () => undefined,
    confirm: async (namespace) => await followed()?.refresh(namespace),
    close: async () => {
      await Promise.all([rootKeys.close(), settings.close(), labels?.close()]);
    },
  };
}

async function followSettings(
  file: string | undefined,
  { log, onChange }: Pick<WorkspacesOptions, "log" | "onChange">,
): Promise<{ current(): TenancySettings; close(): Promise<void> }> {
  if (file === undefined) return { current: () => NO_SETTINGS, close: async () => undefined };
  let text: string | undefined;
  let settings = NO_SETTINGS;
  const following = await followFolder({ dir: dirname(file), log }, async () => {
    const read = await readFile(file, "utf8");
    if (read === text) return;
    const isFirst = text === undefined;
    settings = parseSettings(read);
    text = read;
    if (isFirst) return;
    log.info({ file }, "the settings of workspaces and names were taken over");
    onChange();
  });
  return { current: () => settings, close: following.close };
}
