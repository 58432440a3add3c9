import { ALL_GRANTS } from "../../core/permissions/root-key.ts";
import { DAY_MS } from "../../core/utc-date.ts";
import type { VerificationEvent } from "../../edge/events/contract.ts";
import { aVerificationEvent } from "../builders/usage-event.ts";
import { createTestClickhouse } from "../harness/clickhouse.ts";
import { Random } from "../torture/random.ts";
import { loadClickhouse, loadPostgres } from "./load.ts";
import { loadOracle } from "./oracle.ts";
import { openServed, type Served } from "./served.ts";

/*
 * Both stores of the API with rows that the caller may see, and rows that it may not: of another workspace, of another API of its own, and
 * from before the retention. The latter have `theirs` in every text and one large number of credits. An answer that has either of
 * them shows what is not the caller's.
 */

export const NOW_MS = Date.UTC(2042, 5, 15, 12);
const KEPT_DAYS = 30;
const THEIR_NUMBER = 987_654_321;

/** What an answer to the caller never has. */
export const FOREIGN_MARK = new RegExp(`theirs|${THEIR_NUMBER}`);

export interface MarkedWorld {
  readonly served: Served;
  /** May read one API of workspace `ws_ours`. */
  readonly ours: string;
  /** May read all of workspace `ws_theirs`. */
  readonly theirs: string;
  /** ClickHouse's own engine, with flat tables of what `ours` may see. */
  readonly oracleUrl: string;
  close(): Promise<void>;
}

const LIMITS = {
  rows_max: 1_000,
  timeout_ms: 3_000,
  queries_per_hour: 1_000_000_000,
  run_ms_per_hour: 1_000_000_000_000,
};

/** `timeoutMs`: the time limit of a query of `ours`. */
export async function openMarkedWorld({ timeoutMs = LIMITS.timeout_ms } = {}): Promise<MarkedWorld> {
  const served = await openServed({ nowMs: NOW_MS });
  const oracle = await createTestClickhouse();
  const theirs = await served.addWorkspace("ws_theirs", LIMITS);
  // Nothing is dropped while old rows are loaded.
  await served.addWorkspace("ws_ours", { ...LIMITS, verifications_days: 400 });
  const [one, other] = [await addApi(served), await addApi(served)];
  const own = ownEvents(one.keySpaceId);
  const foreign = [
    ...theirEvents({ workspaceId: "ws_theirs", keySpaceId: "ks_theirs", timeMs: NOW_MS - 1_000 }),
    ...theirEvents({ workspaceId: "ws_ours", keySpaceId: other.keySpaceId, timeMs: NOW_MS - 2_000 }),
    ...theirEvents({ workspaceId: "ws_ours", keySpaceId: one.keySpaceId, timeMs: NOW_MS - 80 * DAY_MS }),
  ];
  await loadPostgres(served.db, [...foreign, ...own]);
  await loadClickhouse(served.clickhouse.url, [...foreign, ...own]);
  await loadOracle(oracle.url, own, NOW_MS - KEPT_DAYS * DAY_MS);
  await served.setLimits("ws_ours", { ...LIMITS, timeout_ms: timeoutMs, verifications_days: KEPT_DAYS });
  return {
    served,
    ours: await served.t.rootKey([`api.${one.apiId}.read_analytics`], { workspaceId: "ws_ours" }),
    theirs,
    oracleUrl: oracle.url,
    close: async () => {
      await served.close();
      await oracle.drop();
    },
  };
}

async function addApi({ t, db }: Served): Promise<{ apiId: string; keySpaceId: string }> {
  const rootKey = await t.rootKey(ALL_GRANTS, { workspaceId: "ws_ours" });
  const { apiId } = await t.data("apis.createApi", { name: "measured" }, { rootKey });
  const { rows } = await db.query<{ id: string }>("select a.key_space_id as id from apis as a where a.id = $1", [
    apiId,
  ]);
  return { apiId, keySpaceId: rows[0]?.id ?? "" };
}

const KEYS = ["ours", "key_1", "key_2", "Key_2", "", "é"];
const OUTCOMES = ["VALID", "VALID", "ours", "RATE_LIMITED", "EXPIRED", ""];
const EXTERNAL_IDS = ["", "ours", '{"a":1}', '{"a":"x"}', "2042-06-15", "a'b\\", "日本 x", "OURS"];
const TAGS = ["ours", "a", "b", "", "é", "x'y", "1"];
const CREDITS = [0, 0, 1, 1, 2, 7, 255, 1_000_003, 1_125_899_906_842_597];
const DAYS_AGO = [0, 0, 0, 1, 6, 13, 29];
const OWN_EVENTS = 150;

/** Rows that differ in each column, on few days, some of them on the edges of buckets. */
function ownEvents(keySpaceId: string): VerificationEvent[] {
  const random = new Random("own events");
  return Array.from({ length: OWN_EVENTS }, (_, index) => {
    const dayMs = NOW_MS - random.pick(DAYS_AGO) * DAY_MS;
    return aVerificationEvent({
      id: `ev_${index}`,
      // Two rows may be the same in all columns that a query can name but this.
      requestId: `req_${index}`,
      timeMs: random.chance(0.2) ? dayMs : dayMs - random.whole(0, 11 * 3_600_000),
      workspaceId: "ws_ours",
      keySpaceId,
      keyId: random.pick(KEYS),
      externalId: random.pick(EXTERNAL_IDS),
      identityId: "id_1",
      outcome: random.pick(OUTCOMES),
      tags: Array.from({ length: random.whole(0, 3) }, () => random.pick(TAGS)),
      region: random.pick(["", "ours", "eu"]),
      source: random.pick(["api", "sidecar"]),
      spentCredits: random.pick(CREDITS),
    });
  });
}

let theirs = 0;

const theirEvents = (of: Pick<VerificationEvent, "workspaceId" | "keySpaceId" | "timeMs">): VerificationEvent[] =>
  Array.from({ length: 10 }, () => {
    theirs += 1;
    const text = `theirs_${theirs}`;
    return aVerificationEvent({
      ...of,
      id: `ev_${text}`,
      requestId: text,
      keyId: "theirs",
      externalId: "theirs",
      identityId: "theirs",
      outcome: "theirs",
      tags: ["theirs"],
      region: "theirs",
      source: "api",
      spentCredits: THEIR_NUMBER,
    });
  });
