import { setTimeout as sleep } from "node:timers/promises";
import type { Journal } from "../journal.ts";
import type { Random } from "../random.ts";
import type { Part } from "../world/part.ts";
import type { WorkspaceName, World } from "../world/world.ts";
import { ask, type Wanted } from "./calls.ts";
import type { Http } from "./http.ts";
import { bulkPermission, type Keys, type LoadKey } from "./keys.ts";
import { sample } from "./samples.ts";
import { Servers } from "./servers.ts";

/*
 * Clients that present keys. Each process has its own, so a process that hangs does not stop the verifications at others.
 */

const ASK_PAUSE_MS = 30;
const SAMPLE_PAUSE_MS = 300;
const BURST_PAUSE_MS = 250;
/** More than a window allows, over a few bursts. */
const BURST = 6;

export interface AskerOptions {
  readonly random: Random;
  readonly http: Http;
  readonly journal: Journal;
  readonly keys: Keys;
  readonly world: World;
  readonly signal: AbortSignal;
}

/** A process, and the workspaces that it serves. */
export interface ExtAuthServer {
  readonly part: Part;
  readonly workspaces: readonly WorkspaceName[];
}

/** The attacker's workspace is verified only at the api-servers, which read Postgres. */
export const extAuth = ({ apiServers, sidecars }: World): ExtAuthServer[] => [
  ...apiServers.map((part) => ({ part, workspaces: ["main", "second", "attacker"] as const })),
  ...sidecars.map(({ part, workspace }) => ({ part, workspaces: [workspace] })),
];

/** Verifies plain keys at one process, most often those changed recently. */
export async function runAsker(
  { random, http, journal, keys, world, signal }: AskerOptions,
  extAuth: ExtAuthServer,
): Promise<void> {
  while (!signal.aborted) {
    const key = keys.pick(random, extAuth.workspaces);
    if (key !== undefined) {
      const workspace = world.workspaces[key.workspace];
      journal.add(await ask(http, { part: extAuth.part, workspace, key, wanted: chooseWanted(random, keys, key) }));
    }
    await sleep(random.pauseMs(ASK_PAUSE_MS));
  }
}

/** Permissions that bulk changes delete are requested more often directly after the deletion. */
function chooseWanted(random: Random, { bulk }: Keys, key: LoadKey): Wanted {
  if (key.bulk && bulk.made > 0 && random.chance(0.3)) {
    const last = Math.max(0, bulk.deleted - 1);
    const n = random.chance(0.5) ? last : random.whole(0, bulk.made - 1);
    return { needs: "shared", slug: bulkPermission(n) };
  }
  return { needs: random.chance(0.5) ? "own" : "none" };
}

/** Presents the limited and the credited keys of a workspace at every process that serves it, some concurrently. */
export async function runSpender(
  { random, http, journal, keys, world, signal }: AskerOptions,
  name: WorkspaceName,
): Promise<void> {
  const workspace = world.workspaces[name];
  const parts = extAuth(world).filter(({ workspaces }) => workspaces.includes(name));
  const servers = new Servers(parts.map(({ part }) => part));
  while (!signal.aborted) {
    const list = keys.of(name, random.chance(0.5) ? "limited" : "credited");
    if (list.length === 0) return;
    const key = random.pick(list);
    const burst = Array.from({ length: BURST }, async () => {
      const part = servers.pick(random);
      const response = await ask(http, { part, workspace, key, wanted: { needs: "none" } });
      servers.note(part, { kind: response.response === "none" ? "lost" : "answered" });
      journal.add(response);
    });
    await Promise.all(burst);
    await sleep(random.pauseMs(BURST_PAUSE_MS));
  }
}

/** Records the staleness that a process reports, repeatedly. */
export async function runSampler({ http, journal, signal }: AskerOptions, part: Part): Promise<void> {
  while (!signal.aborted) {
    await sample(http, part, journal);
    await sleep(SAMPLE_PAUSE_MS);
  }
}
