import { DAY_MS, utcDate } from "../../core/utc-date.ts";
import { LATE_MS_MAX } from "../accepted-events.ts";
import { type AnalyticsRetention, daysKept, keptFromMs } from "../retention.ts";
import { STORED_TABLES, type StoredTable } from "./tables.ts";

/** Number of days for which partitions are created in advance, so that the job can fail for a day or two without consequences. */
const DAYS_AHEAD = 2;

export interface Partition {
  readonly table: StoredTable;
  readonly name: string;
  /** Start as UTC date, `YYYY-MM-DD`; `to` is exclusive. */
  readonly from: string;
  readonly to: string;
}

export interface PartitionPlan {
  readonly create: readonly Partition[];
  readonly drop: readonly Partition[];
}

/**
 * Plans which partitions to create (for all accepted times) and which to drop (those past retention). `names` are all existing partitions;
 * unrecognized names are ignored.
 */
export function planPartitions(
  names: readonly string[],
  { nowMs, retention }: { nowMs: number; retention: AnalyticsRetention },
): PartitionPlan {
  const known = new Set(names);
  const requested = STORED_TABLES.flatMap((table) => requiredPartitions(table, nowMs));
  const create = requested.filter(({ name }) => !known.has(name));
  const drop = names.flatMap((name) => {
    const found = readPartition(name);
    if (found === undefined) return [];
    const days = daysKept(retention, found.table.of, found.table.bucket);
    return Date.parse(found.to) <= keptFromMs(days, nowMs) ? [found] : [];
  });
  return { create, drop };
}

function requiredPartitions(table: StoredTable, nowMs: number): Partition[] {
  const requested = new Map<string, Partition>();
  for (let ms = nowMs - LATE_MS_MAX; ms <= nowMs + DAYS_AHEAD * DAY_MS; ms += DAY_MS) {
    const partition = partitionAt(table, ms);
    requested.set(partition.name, partition);
  }
  return [...requested.values()];
}

/** Returns the partition of a table that contains a timestamp. */
export function partitionAt(table: StoredTable, ms: number): Partition {
  const date = utcDate(ms);
  const from = table.partition === "day" ? date : `${date.slice(0, 7)}-01`;
  const suffix = from.slice(0, table.partition === "day" ? 10 : 7).replaceAll("-", "");
  return { table, name: `${table.name}_${suffix}`, from, to: endOf(table, from) };
}

function endOf(table: StoredTable, from: string): string {
  if (table.partition === "day") return utcDate(Date.parse(from) + DAY_MS);
  const next = new Date(from);
  next.setUTCMonth(next.getUTCMonth() + 1);
  return utcDate(next.getTime());
}

/** Parses the name of a partition; returns `undefined` for a name that this store does not use. */
function readPartition(name: string): Partition | undefined {
  const table = STORED_TABLES.find((each) => name.startsWith(`${each.name}_`));
  const [, year, month, day = "01"] = /_(\d{4})(\d{2})(\d{2})?$/.exec(name) ?? [];
  if (table === undefined) return undefined;
  const ms = Date.parse(`${year}-${month}-${day}`);
  if (Number.isNaN(ms)) return undefined;
  const partition = partitionAt(table, ms);
  return partition.name === name ? partition : undefined;
}
