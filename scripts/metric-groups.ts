import { CLICKHOUSE_METRICS } from "../analytics/clickhouse/metrics.ts";
import { ROLL_UP_METRICS } from "../analytics/postgres/metrics.ts";
import { QUERY_METRICS } from "../analytics/query-metrics.ts";
import { LOOP_METRICS } from "../api-server/background/loop.ts";
import { RETENTION_METRICS } from "../api-server/background/retention.ts";
import { REFUSAL_METRICS } from "../api-server/background/workspace-turns.ts";
import { REFILL_METRICS } from "../api-server/background-work.ts";
import { KEY_QUEUE_METRICS } from "../api-server/domain/keys/key-queue.ts";
import { CREDENTIAL_METRICS } from "../api-server/gates/credentials.ts";
import { STATE_METRICS } from "../api-server/health/gauges.ts";
import { HEALTH_METRICS } from "../api-server/health/watch.ts";
import { INGEST_METRICS } from "../api-server/ingest/ingest-metrics.ts";
import { REQUEST_METRICS } from "../api-server/plugins/metrics.ts";
import { RELAY_METRICS } from "../api-server/relay/metrics.ts";
import type { Metric, Metrics } from "../core/metric.ts";
import { OBJECT_METRICS } from "../operator/metrics.ts";
import { TRAFFIC_METRICS } from "../operator/traffic-metrics.ts";
import { WEBHOOK_METRICS } from "../operator/webhook/metrics.ts";
import { GATE_METRICS } from "../sidecar/metric-table.ts";

export type Part = "api-server" | "ingest" | "operator" | "sidecar";

export interface MetricGroup {
  readonly title: string;
  /** Components that export the group. */
  readonly parts: readonly Part[];
  /** Setting that enables the export of the group. */
  readonly only?: string;
  readonly metrics: readonly Metric[];
}

const group = (title: string, parts: readonly Part[], tables: readonly Metrics[], only?: string): MetricGroup => ({
  title,
  parts,
  metrics: tables.flatMap((table) => Object.values(table)),
  ...(only === undefined ? {} : { only }),
});

/** All metrics of Postern, in the order of docs/operations/metrics.md. */
export const METRIC_GROUPS: readonly MetricGroup[] = [
  group("Health and requests", ["api-server"], [HEALTH_METRICS, REQUEST_METRICS, STATE_METRICS]),
  group("Relay: changes to the gates", ["api-server"], [RELAY_METRICS]),
  group("Background work", ["api-server"], [KEY_QUEUE_METRICS, REFILL_METRICS, RETENTION_METRICS, REFUSAL_METRICS]),
  group("Loops", ["api-server", "ingest"], [LOOP_METRICS]),
  group("Ingestion: usage events", ["api-server", "ingest"], [INGEST_METRICS], "without `--ingest off`"),
  group("Roll-up: usage on Postgres", ["api-server", "ingest"], [ROLL_UP_METRICS], "without `--analytics-url`"),
  group("Usage on ClickHouse", ["api-server", "ingest"], [CLICKHOUSE_METRICS], "with `--analytics-url`"),
  group("Usage queries", ["api-server"], [QUERY_METRICS]),
  group("Redis users for gates", ["api-server"], [CREDENTIAL_METRICS], "with `--gate-credentials-cluster`"),
  group("Manifests", ["operator"], [OBJECT_METRICS, TRAFFIC_METRICS]),
  group("Webhook", ["operator"], [WEBHOOK_METRICS], "with the webhook"),
  group("Gate", ["sidecar"], [GATE_METRICS]),
];

export const METRICS: readonly Metric[] = METRIC_GROUPS.flatMap(({ metrics }) => metrics);
