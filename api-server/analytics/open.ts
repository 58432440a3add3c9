import type { DatabaseUrl } from "../store/database-url.ts";
import { ClickhouseAnalytics } from "./clickhouse/store.ts";
import type { AnalyticsStore } from "./contract.ts";
import { openPostgresAnalytics } from "./postgres/open.ts";
import type { PostgresAnalyticsOptions } from "./postgres/store.ts";

/** Where usage events are kept. */
export interface AnalyticsAddress {
  /** ClickHouse, `http(s)://user:password@host:port/database`; the database of everything else when undefined. */
  readonly url?: string | undefined;
  /** The same with a user that can only read, for queries; the user of `url` when undefined. */
  readonly readerUrl?: string | undefined;
  /** Of ClickHouse, as in `system.clusters`: its tables are made on all servers of it. */
  readonly cluster?: string | undefined;
}

/** Opens the store of usage. Connects on first use. Throws when the address is none. */
export function openAnalytics(
  { url, readerUrl, cluster }: AnalyticsAddress,
  options: PostgresAnalyticsOptions & { readonly databaseUrl: DatabaseUrl },
): AnalyticsStore {
  if (url === undefined) return openPostgresAnalytics(options);
  const { db, log, metrics } = options;
  return new ClickhouseAnalytics({ url, readerUrl, cluster, db, log, metrics });
}
