import { Counter, Histogram, type Registry } from "prom-client";
import type { ErrorKind } from "../../core/errors.ts";

/** What is counted of the queries of callers. No label is a caller's own. */
export class QueryMetrics {
  readonly #queries: Counter<"outcome">;
  readonly #seconds: Histogram;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#queries = new Counter({
      name: "postern_analytics_queries_total",
      help: "Queries of analytics.getVerifications and getRatelimits, by outcome: answered, abandoned by its caller, or the kind of the error",
      labelNames: ["outcome"],
      registers,
    });
    this.#seconds = new Histogram({
      name: "postern_analytics_query_seconds",
      help: "How long the analytics store worked on a query of a caller",
      buckets: [0.01, 0.05, 0.1, 0.3, 1, 3, 10, 30],
      registers,
    });
  }

  /** `abandoned`: its caller has gone. */
  ended(outcome: ErrorKind | "answered" | "abandoned"): void {
    this.#queries.inc({ outcome });
  }

  ran(ms: number): void {
    this.#seconds.observe(ms / 1000);
  }
}
