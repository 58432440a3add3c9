/*
 * Metric definitions: components export their metrics from these, and docs/operations/metrics.md is generated from them. Each definition
 * must state the meaning of a bad value, so that every metric has this documentation.
 */

export type MetricType = "counter" | "gauge" | "histogram";

export interface Metric<Label extends string = string> {
  /** Name that follows the Prometheus conventions: it ends with the base unit, and the name of a counter ends with `_total`. */
  readonly name: string;
  readonly type: MetricType;
  readonly help: string;
  /** Unit: `seconds`, `bytes`, `Unix seconds`, `1 or 0`, `part of 1`, or the name of the counted items. */
  readonly unit: string;
  /** Values of each label, or their description if a list would be long. A label has few values, and clients cannot cause new ones. */
  readonly labels?: Readonly<Record<Label, readonly string[] | string>>;
  /** Meaning of a bad value, and what to check then. Empty if no value needs action. */
  readonly bad: string;
}

/** Metrics by their name in code. */
export type Metrics = Readonly<Record<string, Metric>>;

/** Returns the metrics unchanged; the return type contains the labels of each. */
export const defineMetrics = <const T extends Metrics>(metrics: T): T => metrics;

/** Returns the options of the Prometheus client library for a metric. */
export const exported = <Label extends string>({ name, help, labels }: Metric<Label>) => ({
  name,
  help,
  labelNames: Object.keys(labels ?? {}) as Label[],
});
