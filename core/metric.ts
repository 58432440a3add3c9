/*
 * What a metric is, said once: the parts export it from this, and docs/operations/metrics.md is made of it. What a bad value means
 * stands beside the name, so that no metric is added without it.
 */

export type MetricType = "counter" | "gauge" | "histogram";

export interface Metric<Label extends string = string> {
  /** By Prometheus's rules: the base unit, and `_total` for a counter, at the end. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  /** `seconds`, `bytes`, `Unix seconds`, `1 or 0`, `part of 1`, or what is counted. */
  readonly unit: string;
  /** The values of each label, or what they are where a list would be long. There are always few: none comes from a caller. */
  readonly labels?: Readonly<Record<Label, readonly string[] | string>>;
  /** What a bad value means, and what to look at then. */
  readonly bad: string;
}

/** Metrics by a name of the code's own. */
export type Metrics = Readonly<Record<string, Metric>>;

/** Returns the metrics unchanged, with their labels as types. */
export const defineMetrics = <const T extends Metrics>(metrics: T): T => metrics;

/** What the client library of Prometheus wants to know of a metric. */
export const exported = <Label extends string>({ name, help, labels }: Metric<Label>) => ({
  name,
  help,
  labelNames: Object.keys(labels ?? {}) as Label[],
});
