import type { DatabaseUrl } from "../postgres/pool.ts";
import { ClickhouseAnalytics } from "./clickhouse/store.ts";
import type { AnalyticsStore } from "./contract.ts";
import { openPostgresAnalytics } from "./postgres/open.ts";
import type { PostgresAnalyticsOptions } from "./postgres/store.ts";

/** Address of the analytics store. */
export interface AnalyticsAddress {
  /** ClickHouse address, `http(s)://user:password@host:port/database`. `undefined` selects the main Postgres database. */
  readonly url?: string | undefined;
  /** Address with a read-only user for queries. Default: `url`. */
  readonly readerUrl?: string | undefined;
  /** ClickHouse cluster name from `system.clusters`; tables are created on all of its servers. */
  readonly cluster?: string | undefined;
}

/** Opens the analytics store. Connects on first use. Throws if the address is invalid. */
export function openAnalytics(
  { url, readerUrl, cluster }: AnalyticsAddress,
  options: PostgresAnalyticsOptions & { readonly databaseUrl: DatabaseUrl },
): AnalyticsStore {
  if (url === undefined) return openPostgresAnalytics(options);
  const { db, log, metrics } = options;
  return new ClickhouseAnalytics({ url, readerUrl, cluster, db, log, metrics });
}
