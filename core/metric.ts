/*
 * Metric definitions: components export their metrics from these, and docs/operations/metrics.md is generated from them. Each definition
 * includes the meaning of a bad value, so that no metric is added without it.
 */

export type MetricType = "counter" | "gauge" | "histogram";

export interface Metric<Label extends string = string> {
  /** Follows Prometheus naming: ends with the base unit, and with `_total` for a counter. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  /** `seconds`, `bytes`, `Unix seconds`, `1 or 0`, `part of 1`, or the counted items. */
  readonly unit: string;
  /** Values of each label, or their description if a list would be long. The number of values is always small: none comes from a caller. */
  readonly labels?: Readonly<Record<Label, readonly string[] | string>>;
  /** What a bad value means, and what to check then. Empty if no value needs action. */
  readonly bad: string;
}

/** Metrics by their name in code. */
export type Metrics = Readonly<Record<string, Metric>>;

/** Returns the metrics unchanged, with their labels as types. */
export const defineMetrics = <const T extends Metrics>(metrics: T): T => metrics;

/** Returns the options that the Prometheus client library takes. */
export const exported = <Label extends string>({ name, help, labels }: Metric<Label>) => ({
  name,
  help,
  labelNames: Object.keys(labels ?? {}) as Label[],
});
