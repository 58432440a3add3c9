import { setTimeout as sleep } from "node:timers/promises";
import type { ChangeEntry, Journal } from "../journal.ts";
import { ABSENT, applyChange, type Change, type KeyState } from "../model.ts";
import type { Random } from "../random.ts";
import type { Workspace, WorkspaceName } from "../world/world.ts";
import { callProcedure, outcomeOf } from "./calls.ts";
import { type Http, readJson } from "./http.ts";
import { type Keys, type LoadKey, PERMISSION, roleKey } from "./keys.ts";
import type { Servers } from "./servers.ts";

/*
 * A customer's backend that makes and changes keys, one call after another. It never changes a key again whose last change
 * got no reply, because that one may still happen.
 */

const PAUSE_MS = 120;
const GRANT_MAX = 10;
/** How many of its keys are verified after a change of a role. */
const ASKED_OF_ROLE = 4;

export interface ChangerOptions {
  readonly name: string;
  readonly random: Random;
  readonly http: Http;
  readonly journal: Journal;
  readonly keys: Keys;
  readonly workspace: Workspace;
  readonly apiId: string;
  readonly apiServers: Servers;
  readonly signal: AbortSignal;
}

/** Returns when the signal is aborted and the call in flight has ended. */
export async function runChanger(options: ChangerOptions): Promise<void> {
  const { random, signal } = options;
  for (let n = 1; !signal.aborted; n++) {
    const id = `torture/${options.name}/${n}`;
    const draw = random.next();
    if (draw < 0.12) await createKey(options, id);
    else if (draw < 0.2) await grantCredits(options, id);
    else if (draw < 0.24) await turnRole(options, id);
    else await changeKey(options, id);
    await sleep(random.pauseMs(PAUSE_MS));
  }
}

async function changeKey(options: ChangerOptions, id: string): Promise<void> {
  const { random, keys, workspace } = options;
  const key = pickFree(random, keys.of(workspace.name, "plain"));
  if (key === undefined) return;
  const change = chooseChange(random, key.state);
  key.busy = true;
  try {
    const { procedure, body } = toCall(key, change);
    const outcome = await send(options, { id, procedure, body, subject: "key", key: key.name, change });
    if (outcome.outcome === "unknown") key.uncertain = true;
    if (outcome.outcome === "acknowledged") key.state = applyChange(key.state, change);
    if (outcome.outcome !== "unsent") keys.noteChange(key);
  } finally {
    key.busy = false;
  }
}

/** A live key without a change in flight, and without a change whose outcome is unknown. */
function pickFree(random: Random, list: readonly LoadKey[]): LoadKey | undefined {
  for (let attempt = 0; attempt < 10 && list.length > 0; attempt++) {
    const key = random.pick(list);
    if (!key.busy && !key.uncertain && key.state.exists) return key;
  }
  return undefined;
}

/** Mostly a revocation or its reversal, because a pod must enforce those. */
function chooseChange(random: Random, state: KeyState): Exclude<Change, { kind: "create" }> {
  if (!state.enabled && random.chance(0.7)) return { kind: "enable" };
  if (state.expired && random.chance(0.7)) return { kind: "unexpire" };
  const draw = random.next();
  if (draw < 0.3) return { kind: state.enabled ? "disable" : "enable" };
  if (draw < 0.45) return { kind: state.expired ? "unexpire" : "expire" };
  if (draw < 0.7) return { kind: state.permitted ? "forbid" : "permit" };
  if (draw < 0.85) return { kind: "note", note: state.note + 1 };
  return { kind: random.chance(0.5) ? "delete" : "purge" };
}

function toCall({ keyId }: LoadKey, change: Exclude<Change, { kind: "create" }>): { procedure: string; body: object } {
  const update = (fields: object) => ({ procedure: "keys.updateKey", body: { keyId, ...fields } });
  switch (change.kind) {
    case "enable":
    case "disable":
      return update({ enabled: change.kind === "enable" });
    case "expire":
      return update({ expires: 1 });
    case "unexpire":
      return update({ expires: null });
    case "note":
      return update({ meta: { note: change.note } });
    case "permit":
      return { procedure: "keys.addPermissions", body: { keyId, permissions: [PERMISSION] } };
    case "forbid":
      return { procedure: "keys.removePermissions", body: { keyId, permissions: [PERMISSION] } };
    case "delete":
    case "purge":
      return { procedure: "keys.deleteKey", body: { keyId, permanent: change.kind === "purge" } };
  }
}

async function createKey(options: ChangerOptions, id: string): Promise<void> {
  const { random, keys, workspace, apiId } = options;
  const change = { kind: "create", permitted: random.chance(0.5) } as const;
  const name = id.slice("torture/".length);
  const body = { apiId, name, permissions: change.permitted ? [PERMISSION] : [] };
  const { outcome, text } = await send(options, {
    ...{ id, procedure: "keys.createKey", body, change },
    ...{ subject: "key", key: name },
  });
  const data = readJson<{ data?: { keyId: string; key: string } }>(text)?.data;
  if (outcome !== "acknowledged" || data === undefined) return;
  const of = { name, workspace: workspace.name, kind: "plain", bulk: false } as const;
  const made = { ...of, secret: data.key, keyId: data.keyId };
  keys.noteChange(keys.add(made, applyChange(ABSENT, change)));
}

/** Grants a permission to all keys of a role, or removes it: one record, however many keys there are. */
async function turnRole(options: ChangerOptions, id: string): Promise<void> {
  const { random, keys, workspace } = options;
  const free = keys.roles.filter((role) => role.workspace === workspace.name && !role.busy && !role.uncertain);
  if (free.length === 0) return;
  const role = random.pick(free);
  const change = { kind: role.grants ? "forbid" : "permit" } as const;
  const body = { roleId: role.roleId, permissions: role.grants ? [] : [PERMISSION] };
  role.busy = true;
  try {
    const key = roleKey(workspace.name, role.name);
    const call = { id, procedure: "permissions.setRolePermissions", body, subject: "role", key, change } as const;
    const { outcome } = await send(options, call);
    if (outcome === "unknown") role.uncertain = true;
    if (outcome === "acknowledged") role.grants = !role.grants;
    for (const one of random.shuffled(role.keys).slice(0, ASKED_OF_ROLE)) keys.noteChange(one);
  } finally {
    role.busy = false;
  }
}

async function grantCredits(options: ChangerOptions, id: string): Promise<void> {
  const { random, http, journal, keys, workspace } = options;
  const list = keys.of(workspace.name, "credited");
  if (list.length === 0) return;
  const key = random.pick(list);
  const credits = random.whole(1, GRANT_MAX);
  const part = options.apiServers.pick(random);
  const body = { keyId: key.keyId, operation: "increment", value: credits };
  const result = await callProcedure(http, { part, workspace, procedure: "keys.updateCredits", body, id });
  options.apiServers.note(part, result);
  const { sentMs, answeredMs } = result;
  const { outcome, status, requestId } = outcomeOf(result);
  if (outcome === "unsent") return;
  const of = { workspace: workspace.name, key: key.name, credits, via: part.name, sentMs, answeredMs };
  journal.add({ type: "grant", id, ...of, outcome, status, requestId });
}

/** Sends a change and records its outcome. */
async function send(
  { random, http, journal, workspace, apiServers }: ChangerOptions,
  call: Pick<ChangeEntry, "id" | "subject" | "key" | "change"> & { procedure: string; body: object },
): Promise<{ outcome: ReturnType<typeof outcomeOf>["outcome"]; text: string }> {
  const { id, procedure, body, subject, key, change } = call;
  const part = apiServers.pick(random);
  const result = await callProcedure(http, { part, workspace, procedure, body, id });
  apiServers.note(part, result);
  const { sentMs, answeredMs } = result;
  const { outcome, status, requestId } = outcomeOf(result);
  const name: WorkspaceName = workspace.name;
  if (outcome !== "unsent") {
    const of = { workspace: name, subject, key, change, via: part.name, sentMs, answeredMs };
    journal.add({ type: "change", id, ...of, outcome, status, requestId });
  }
  return { outcome, text: result.kind === "answered" ? result.text : "" };
}
