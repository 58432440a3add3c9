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
 * Workspaces of an operator, and the assignment of namespaces to them. Labels of Namespaces, root keys and settings may change at any time.
 * A change takes effect immediately, and `onChange` reports the namespaces to reconcile.
 */

/** A workspace of the api-server. */
export interface Workspace {
  /** Name of the workspace; `undefined` for the only workspace of an operator with one root key. */
  readonly name: string | undefined;
  /**
   * Whether this is the default workspace. It contains the objects of namespaces without an assignment, and objects created before
   * workspaces had names.
   */
  readonly isDefault: boolean;
  /** API client with a root key of the workspace. */
  readonly api: ApiClient;
}

export type Place =
  | { readonly workspace: Workspace; readonly reason?: never }
  | Extract<Placement, { readonly reason: string }>;

export interface Workspaces {
  /** Returns the workspace of the objects of a Kubernetes namespace. */
  resolve(namespace: string): Place;
  mayUseName(use: NameUse): boolean;
  /** Resolves when every existing namespace is assigned to a workspace. */
  readonly ready: Promise<void>;
  /** Returns the reason if no object can be reconciled because the API has never accepted the only root key; otherwise `undefined`. */
  problem(): string | undefined;
  /** Reads the Namespace again, so that `resolve` uses its current state in the cluster. */
  confirm(namespace: string): Promise<void>;
  close(): Promise<void>;
}

/** Labels of Namespaces, as read from the manifest source. */
export interface Labels {
  /** Resolves when the first list is complete. */
  readonly listed: Promise<void>;
  of(namespace: string): string | undefined | typeof UNSEEN;
  /** Reads one Namespace immediately. */
  refresh(namespace: string): Promise<void>;
  close(): Promise<void>;
}

export interface WorkspacesOptions {
  readonly apiUrl: string;
  /**
   * One root key for all namespaces, or a folder with one root key per workspace. A root key can be replaced later by another one of the
   * same workspace.
   */
  readonly keys: { readonly rootKey: () => string } | { readonly rootKeysDir: string };
  /** Workspace of namespaces without an assignment. If there is one root key, the name of its workspace. */
  readonly defaultWorkspace?: string | undefined;
  /** Path of the file with `TenancySettings`. */
  readonly settingsFile?: string | undefined;
  /**
   * Follows the labels of Namespaces; `undefined` for sources without such labels. Called at most once, if labels are used. `onChange`
   * receives the name of a Namespace.
   */
  readonly followLabels: ((onChange: (namespace: string) => void) => Labels) | undefined;
  /** Called when objects must be reconciled: those of this namespace, or all if `namespace` is `undefined`. */
  readonly onChange: (namespace?: string) => void;
  /** Returns the abort signal for new API calls. */
  readonly signal: () => AbortSignal;
  readonly observe?: ((attempt: ApiAttempt) => void) | undefined;
  readonly log: Logger;
}

/** Interval of checks until the API accepts the only root key. */
const CHECK_MS = 10_000;

/**
 * Opens the workspaces. Throws if the folder or the settings cannot be read at startup; after that, the last valid content remains in
 * effect.
 */
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
      throw new Error("the settings of --tenancy-file name workspaces, which requires --root-keys-dir");
    }
    let isAccepted = false;
    let refused: string | undefined;
    const onRootKey: ApiOptions["onRootKey"] = (refusal) => {
      isAccepted ||= refusal === undefined;
      refused = refusal?.message;
    };
    const only = { workspace: open(defaultWorkspace, keys.rootKey, onRootKey) };
    const stop = new AbortController();
    // Client that checks the root key. Without it, the key of a workspace without objects would never be checked.
    const check = createStoreApi({ url: apiUrl, rootKey: keys.rootKey, signal: () => stop.signal, observe, onRootKey });
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
      // A replica whose key was accepted once can still admit pods. It therefore stays ready even if the key is revoked later.
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
    // If the key of one team is rejected, only the objects of this team are blocked.
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
    log.info({ file }, "tenancy settings loaded");
    onChange();
  });
  return { current: () => settings, close: following.close };
}
