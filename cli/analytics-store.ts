import type { Pool } from "pg";
import { openReadingClient } from "../analytics/clickhouse/client.ts";
import { countVerifications as countInClickhouse } from "../analytics/clickhouse/count-verifications.ts";
import type { AnalyticsAddress } from "../analytics/open.ts";
import { countVerifications as countInPostgres } from "../analytics/postgres/count-verifications.ts";
import type { CountVerifications } from "../api-server/domain/analytics/usage.ts";
import { UsageError } from "./command.ts";

/** Returns the address of the analytics store from the options of `analyticsStore`. */
export function analyticsAddress(options: {
  readonly "analytics-url": string | undefined;
  readonly "analytics-reader-url": string | undefined;
  readonly "analytics-cluster"?: string | undefined;
}): AnalyticsAddress {
  const address = {
    url: options["analytics-url"],
    readerUrl: options["analytics-reader-url"],
    cluster: options["analytics-cluster"],
  };
  if (address.url === undefined && address.readerUrl !== undefined) {
    throw new UsageError("--analytics-reader-url requires --analytics-url, whose user writes the events");
  }
  return address;
}

/** Runs a command with access to the usage data that the api-servers store. */
export async function withUsage<T>(
  db: Pool,
  { url, readerUrl }: Pick<AnalyticsAddress, "url" | "readerUrl">,
  work: (count: CountVerifications) => Promise<T>,
): Promise<T> {
  if (url === undefined) return await work((question) => countInPostgres(db, question));
  const client = openReadingClient({ url, readerUrl });
  try {
    return await work((question) => countInClickhouse(client, question));
  } finally {
    await client.close();
  }
}
