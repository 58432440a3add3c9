import { X509Certificate } from "node:crypto";
import { RELEASE } from "../../../core/release.ts";
import { DAY_MS } from "../../../core/utc-date.ts";
import {
  countConnectionsNamed,
  countSecretsByEncryptionKey,
  findPostgresState,
  findRelayHolder,
  listEveryPolicyRef,
} from "../../db/installation.ts";
import { countOutbox } from "../../db/outbox.ts";
import { findSetting } from "../../db/settings.ts";
import { listWorkspaceIds } from "../../db/workspaces.ts";
import type { InstallationDeps, InstallationDetails } from "../deps.ts";
import { check, type Part, type Seen, type UnavailableSince } from "./part.ts";

/* Describes the components of an installation, in the order in which a change passes through them. */

/** Name of the connection that each api-server uses to check Postgres (health/watch.ts). */
export const HEALTH_CONNECTION = "postern-health";

const OUTBOX_SHOWN_MAX = 100_000;
const OUTBOX_DEEP = 2_000;
const HEARTBEAT_LATE_MS = 30_000;
const LAG_LATE_MS = 60_000;
const MEMORY_FULL = 0.9;
const CONNECTIONS_FULL = 0.9;
const CERTIFICATE_SOON_MS = 14 * DAY_MS;
const POLICIES_MAX = 1_000;
const WORKSPACES_MAX = 1_000;

/** Checks all components concurrently; a slow or failing one does not affect the others. */
export function describeInstallation(deps: InstallationDeps, away: UnavailableSince): Promise<Part[]> {
  const { installation, nowMs } = deps;
  const checkPart = (part: string, help: string, ask: () => Promise<Seen>): Promise<Part> =>
    check(part, ask, { away, nowMs, help });
  return Promise.all([
    checkPart("postgres", "docs/backup.md", () => seePostgres(deps)),
    checkPart("redis", "docs/operations/failure-modes.md", () => seeStore(installation)),
    checkPart("relay", "docs/operations/failure-modes.md", () => seeRelay(deps)),
    checkPart("projection", "docs/operations/failure-modes.md", () => seeProjection(deps)),
    checkPart("events", "docs/sizing.md", () => seeEvents(deps)),
    checkPart("usage", "docs/sizing.md", () => seeUsage(deps)),
    checkPart("api-servers", "docs/upgrades.md", () => seeServers(deps)),
    checkPart("sidecars", "docs/upgrades.md", () => seeSidecars(deps)),
    checkPart("encryption", "docs/administration.md", () => seeEncryption(deps)),
    checkPart("certificate", "docs/administration.md", async () => seeCertificate(deps)),
    checkPart("retention", "docs/operations/failure-modes.md", async () => seeRetention(deps)),
  ]);
}

async function seePostgres({ db }: InstallationDeps): Promise<Seen> {
  const { migration, ...state } = await findPostgresState(db);
  const details = {
    ...state,
    migration: migration ?? "none",
    poolConnections: db.totalCount,
    poolWaiting: db.waitingCount,
  };
  if (state.isReplica) {
    return { facts: details, problem: "This Postgres is a replica, which accepts no writes.", help: "docs/backup.md" };
  }
  if (state.connections > CONNECTIONS_FULL * state.connectionsMax) {
    return { facts: details, problem: "Nearly all connections are in use.", help: "docs/sizing.md" };
  }
  return { facts: details };
}

async function seeStore({ edge }: InstallationDetails): Promise<Seen> {
  if (edge.kind === "memory") return { state: "off", facts: { kind: "in this process" } };
  const { evictionPolicy = "unknown", memoryBytes, memoryMaxBytes, ...rest } = await edge.describe();
  const details = { evictionPolicy, memoryBytes, memoryMaxBytes, ...rest };
  const help = "docs/operations/failure-modes.md";
  if (evictionPolicy !== "noeviction") {
    return { facts: details, problem: "Redis may evict keys: set maxmemory-policy to noeviction.", help };
  }
  if (memoryMaxBytes > 0 && memoryBytes > MEMORY_FULL * memoryMaxBytes) {
    return { facts: details, problem: "The memory of Redis is nearly full.", help: "docs/sizing.md" };
  }
  return { facts: details };
}

async function seeRelay({ db, installation }: InstallationDeps): Promise<Seen> {
  const [holder, outboxEntries] = await Promise.all([findRelayHolder(db), countOutbox(db, { max: OUTBOX_SHOWN_MAX })]);
  const isHere = installation.isRelaying();
  const details = {
    holder: isHere ? "this api-server" : (holder?.host ?? (holder === undefined ? "none" : "another on this machine")),
    ...(holder === undefined ? {} : { holderSinceAt: Math.round(holder.since) }),
    outboxEntries,
  };
  const help = "docs/operations/failure-modes.md";
  if (holder === undefined && !isHere)
    return { facts: details, problem: "No api-server is the relay: changes reach no pod.", help };
  if (outboxEntries > OUTBOX_DEEP) return { facts: details, problem: "Many changes wait to be relayed.", help };
  return { facts: details };
}

interface RebuildProgress {
  readonly projectionId?: unknown;
  readonly records?: unknown;
}

async function seeProjection({ db, installation, projection }: InstallationDeps): Promise<Seen> {
  const { writer } = installation.edge;
  const [state, storeNowMs, progress] = await Promise.all([
    writer.state(),
    writer.nowMs(),
    // The relay writes this setting during a full projection.
    findSetting<RebuildProgress | null>(db, "projection-progress"),
  ]);
  const heartbeatAgeMs = state.asOfMs === 0 ? undefined : Math.max(0, Math.round(storeNowMs - state.asOfMs));
  const staleness = projection.stalenessMs();
  const details = {
    projectionId: state.projectionId ?? "none",
    complete: state.complete,
    head: state.head,
    version: state.version,
    ...(heartbeatAgeMs === undefined ? {} : { heartbeatAgeMs }),
    ...(Number.isFinite(staleness) ? { stalenessMs: Math.round(staleness) } : {}),
    laggingWorkspaces: projection.streamStaleness().laggingWorkspaces,
    ...(typeof progress?.records === "number" ? { rebuiltRecords: progress.records } : {}),
  };
  const help = "docs/operations/failure-modes.md";
  if (!state.complete) return { facts: details, problem: "All records are being projected again.", help };
  if (heartbeatAgeMs === undefined || heartbeatAgeMs > HEARTBEAT_LATE_MS) {
    return {
      facts: details,
      problem: "There was no heartbeat for more than 30 s: pods cannot tell how old their data is.",
      help,
    };
  }
  return { facts: details };
}

async function seeEvents({ db, installation }: InstallationDeps): Promise<Seen> {
  const ids = (await listWorkspaceIds(db)).slice(0, WORKSPACES_MAX);
  const { depths } = await installation.edge.events.measure(ids);
  const lagMs = depths.reduce((oldest, { ageMs }) => Math.max(oldest, ageMs), 0);
  const details = {
    workspaces: ids.length,
    waitingEntries: depths.reduce((sum, { entries }) => sum + entries, 0),
    waitingBytes: depths.reduce((sum, { bytes }) => sum + bytes, 0),
    lagMs: Math.round(lagMs),
  };
  if (lagMs > LAG_LATE_MS)
    return { facts: details, problem: "Usage events wait for more than a minute.", help: "docs/sizing.md" };
  return { facts: details };
}

async function seeUsage({ analytics, installation }: InstallationDeps): Promise<Seen> {
  const [depth, problem] = await Promise.all([installation.rollUpDepth?.(), installation.usageProblem?.()]);
  const details = {
    kind: analytics.kind,
    ...(depth === undefined ? {} : { rollUpWaitingEvents: depth.events, rollUpLagMs: Math.round(depth.ageMs) }),
  };
  const help = "docs/sizing.md";
  if (problem !== undefined) return { facts: details, problem: `ClickHouse: ${problem}.`, help };
  if (depth !== undefined && depth.ageMs > LAG_LATE_MS) {
    return { facts: details, problem: "Stored events wait for more than a minute for the roll-up.", help };
  }
  return { facts: details };
}

async function seeServers({ db, installation }: InstallationDeps): Promise<Seen> {
  const { degradations, region, startedAt } = installation;
  const [worst] = degradations();
  const details = {
    connected: await countConnectionsNamed(db, HEALTH_CONNECTION),
    release: RELEASE,
    node: process.versions.node,
    startedAt,
    ...(region === "" ? {} : { region }),
    memoryBytes: process.memoryUsage.rss(),
  };
  if (worst === undefined) return { facts: details };
  return {
    facts: { ...details, degradation: worst.reason },
    problem: worst.means,
    help: "docs/operations/failure-modes.md",
  };
}

async function seeSidecars({ db, pods }: InstallationDeps): Promise<Seen> {
  const refs = await listEveryPolicyRef(db, { max: POLICIES_MAX });
  const reports = (await pods.listEach(refs)).flat().filter(({ isSilent }) => !isSilent);
  const byRelease = Map.groupBy(reports, ({ release }) =>
    release === undefined || release === "" ? "unknown" : release,
  );
  const releases = [...byRelease].map(([release, of]) => `${release} × ${of.length}`).sort();
  return {
    facts: { policies: refs.length, pods: reports.length, releases: releases.slice(0, 20).join(", ") || "none" },
  };
}

async function seeEncryption({ db, installation }: InstallationDeps): Promise<Seen> {
  const { encryptionKeyIds } = installation;
  const counted = await countSecretsByEncryptionKey(db);
  const [current] = encryptionKeyIds;
  const ids = [...new Set([...encryptionKeyIds, ...counted.map(({ id }) => id)])];
  const keysOf = (id: string): number => counted.find((one) => one.id === id)?.keys ?? 0;
  const details = Object.fromEntries(ids.map((id) => [id, `${keysOf(id)} keys${id === current ? ", encrypts" : ""}`]));
  const help = "docs/administration.md";
  const lost = counted.filter(({ id, keys }) => keys > 0 && !encryptionKeyIds.includes(id));
  if (lost.length > 0) {
    const sum = lost.reduce((all, { keys }) => all + keys, 0);
    return {
      facts: details,
      problem: `${sum} recoverable keys cannot be decrypted: their encryption key is not configured.`,
      help,
    };
  }
  if (ids.length === 0) return { state: "off", facts: {} };
  return { facts: details };
}

function seeCertificate({ installation, nowMs }: InstallationDeps): Seen {
  const pem = installation.certificate();
  if (pem === undefined) return { state: "off", facts: {} };
  const { validToDate, subject } = new X509Certificate(pem);
  const endsAt = validToDate.getTime();
  const details = { subject: subject ?? "", endsAt };
  const help = "docs/administration.md";
  if (endsAt < nowMs()) return { facts: details, problem: "The certificate of the API has expired.", help };
  if (endsAt - nowMs() < CERTIFICATE_SOON_MS) {
    return { facts: details, problem: "The certificate of the API expires within two weeks.", help };
  }
  return { facts: details };
}

const seeRetention = ({ installation: { retentionDays } }: InstallationDeps): Seen => ({
  facts: { auditDays: retentionDays.audit, deletedDays: retentionDays.deleted },
});
