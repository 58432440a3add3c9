import { request } from "node:http";
import type { AddressInfo } from "node:net";
import type { FastifyInstance } from "fastify";
import type { Pool } from "pg";
import { Registry } from "prom-client";
import { ClickhouseAnalytics } from "../../analytics/clickhouse/store.ts";
import type { AnalyticsStore } from "../../analytics/contract.ts";
import { QueryMetrics } from "../../analytics/query-metrics.ts";
import type { AnalyticsOf } from "../../analytics/tables.ts";
import { buildApp } from "../../api-server/app.ts";
import { type AnalyticsSettingsRow, putAnalyticsSettings } from "../../api-server/db/analytics-limits.ts";
import { insertWorkspace } from "../../api-server/db/workspaces.ts";
import { NOTHING_SET } from "../../api-server/domain/analytics/settings.ts";
import { buildTestApp, type TestApp } from "../../api-server/test/app.ts";
import { createTestClickhouse } from "../harness/clickhouse.ts";

/*
 * The API twice over the same workspaces and root keys: with usage in Postgres, and with usage in ClickHouse. Both listen, and have
 * a clock that stands still.
 */

export type Kind = AnalyticsStore["kind"];
export const KINDS: readonly Kind[] = ["postgres", "clickhouse"];

export interface Asked {
  readonly rootKey: string;
  readonly query: string;
  /** Verifications when left out. */
  readonly of?: AnalyticsOf | undefined;
  /** Destroys the connection when it is aborted. */
  readonly signal?: AbortSignal;
}

export type Replied =
  | { readonly status: 200 /** The text of `data`, exactly as it was sent. */; readonly rowsJson: string }
  | { readonly status: number; readonly rowsJson: undefined; readonly kind: string; readonly detail: string };

export interface Served {
  /** The API on Postgres; what it holds besides usage, the one on ClickHouse holds too. */
  readonly t: TestApp;
  readonly db: Pool;
  readonly clickhouse: { readonly url: string; readonly store: ClickhouseAnalytics };
  readonly ports: Readonly<Record<Kind, number>>;
  /** Sends a query over a connection. */
  ask(kind: Kind, asked: Asked): Promise<Replied>;
  /** Makes a workspace with this id and these settings, and returns a root key that may read all of its usage. */
  addWorkspace(id: string, settings?: Partial<AnalyticsSettingsRow>): Promise<string>;
  setLimits(workspaceId: string, settings: Partial<AnalyticsSettingsRow>): Promise<void>;
  close(): Promise<void>;
}

const PROCEDURES: Readonly<Record<AnalyticsOf, string>> = {
  verifications: "analytics.getVerifications",
  ratelimits: "analytics.getRatelimits",
};

/** `nowMs`: what the clock says; the machine's time when left out. */
export async function openServed({ nowMs }: { readonly nowMs?: number } = {}): Promise<Served> {
  const clickhouse = await createTestClickhouse();
  const t = await buildTestApp(nowMs === undefined ? {} : { deps: () => ({ nowMs: () => nowMs }) });
  const store = new ClickhouseAnalytics({ url: clickhouse.url, db: t.deps.db, cluster: undefined, log: t.deps.log });
  const onClickhouse = await buildApp({ ...t.deps, analytics: store, queryMetrics: new QueryMetrics(new Registry()) });
  await store.maintain();
  const ports = { postgres: await listen(t.app), clickhouse: await listen(onClickhouse) };

  const setLimits: Served["setLimits"] = (workspaceId, settings) =>
    putAnalyticsSettings(t.deps.db, { workspaceId, row: { ...NOTHING_SET, ...settings } });

  return {
    t,
    db: t.deps.db,
    clickhouse: { url: clickhouse.url, store },
    ports,
    ask: (kind, asked) => ask(ports[kind], asked),
    addWorkspace: async (id, settings = {}) => {
      await insertWorkspace(t.deps.db, { id, name: id, createdAt: 1 });
      await setLimits(id, settings);
      return t.rootKey(["api.*.read_analytics", "ratelimit.*.read_analytics"], { workspaceId: id });
    },
    setLimits,
    close: async () => {
      await onClickhouse.close();
      await store.close();
      await t.close();
      await clickhouse.drop();
    },
  };
}

async function listen(app: FastifyInstance): Promise<number> {
  await app.listen({ host: "127.0.0.1", port: 0 });
  return (app.server.address() as AddressInfo).port;
}

const DATA = '{"data":';

async function ask(port: number, { rootKey, query, of = "verifications", signal }: Asked): Promise<Replied> {
  const { status, text } = await post(port, { path: `/v2/${PROCEDURES[of]}`, rootKey, body: { query }, signal });
  if (status === 200) {
    const end = text.lastIndexOf(',"meta":{"requestId":"req_');
    if (!text.startsWith(DATA) || end === -1) throw new Error(`not an envelope: ${text.slice(0, 200)}`);
    return { status, rowsJson: text.slice(DATA.length, end) };
  }
  const { error } = JSON.parse(text) as { error: { type: string; detail: string } };
  return { status, rowsJson: undefined, kind: error.type.split("/").at(-1) ?? "", detail: error.detail };
}

interface Posted {
  readonly path: string;
  readonly rootKey: string;
  readonly body: object;
  readonly signal: AbortSignal | undefined;
}

function post(port: number, { path, rootKey, body, signal }: Posted): Promise<{ status: number; text: string }> {
  return new Promise((resolve, reject) => {
    const headers = { authorization: `Bearer ${rootKey}`, "content-type": "application/json" };
    const sent = request({ host: "127.0.0.1", port, path, method: "POST", headers, signal }, (reply) => {
      const chunks: Buffer[] = [];
      reply.on("data", (chunk: Buffer) => chunks.push(chunk));
      reply.on("end", () => resolve({ status: reply.statusCode ?? 0, text: Buffer.concat(chunks).toString() }));
      reply.on("error", reject);
    });
    sent.on("error", reject);
    sent.end(JSON.stringify(body));
  });
}
