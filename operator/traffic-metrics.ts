import { Counter, Histogram, type Registry } from "prom-client";
import { defineMetrics, exported } from "../core/metric.ts";
import type { ApiAttempt } from "./api/client.ts";
import type { KubeExchange } from "./runtime/kube-client.ts";

/* Metrics of requests that the operator sends: to the api-server and to the Kubernetes API. */

export const TRAFFIC_METRICS = defineMetrics({
  calls: {
    name: "postern_operator_api_calls_total",
    type: "counter",
    help: "Attempted API calls by procedure and result",
    unit: "calls",
    labels: {
      procedure: "a procedure that the operator calls, such as `apis.createApi`",
      result: ["success", "refusal", "error"],
    },
    bad: "More than 10 % `error` (PosternOperatorApiErrors). `refusal` (404, 409) is normal.",
  },
  callSeconds: {
    name: "postern_operator_api_call_duration_seconds",
    type: "histogram",
    help: "Duration of API calls",
    unit: "seconds",
    labels: { result: ["success", "refusal", "error"] },
    bad: "p99 above 1: the api-server or Postgres is slow.",
  },
  requests: {
    name: "postern_operator_kubernetes_requests_total",
    type: "counter",
    help: "Requests to the Kubernetes API",
    unit: "requests",
    labels: {
      method: ["GET", "POST", "PUT", "PATCH", "DELETE", "WATCH"],
      resource: "the plural of a kind with its subresource, such as `roles/status`; empty for `/version`",
      code: "the HTTP status; `error` without a response",
    },
    bad: "`403` (PosternOperatorForbidden). `5xx` or `error`: the Kubernetes API is down. `409` is normal.",
  },
  requestSeconds: {
    name: "postern_operator_kubernetes_request_duration_seconds",
    type: "histogram",
    help: "Duration of Kubernetes API requests; for a watch, until it was accepted",
    unit: "seconds",
    labels: { method: ["GET", "POST", "PUT", "PATCH", "DELETE", "WATCH"] },
    bad: "p99 above 1: the Kubernetes API is slow or throttles.",
  },
});

export interface TrafficMetrics {
  readonly observeApi: (attempt: ApiAttempt) => void;
  readonly observeKubernetes: (exchange: KubeExchange) => void;
}

const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10];

export function createTrafficMetrics(registry: Registry): TrafficMetrics {
  const registers = [registry];
  const calls = new Counter({
    ...exported(TRAFFIC_METRICS.calls),
    registers,
  });
  const callSeconds = new Histogram({
    ...exported(TRAFFIC_METRICS.callSeconds),
    buckets: SECONDS,
    registers,
  });
  const requests = new Counter({
    ...exported(TRAFFIC_METRICS.requests),
    registers,
  });
  const requestSeconds = new Histogram({
    ...exported(TRAFFIC_METRICS.requestSeconds),
    buckets: SECONDS,
    registers,
  });
  return {
    observeApi: ({ procedure, result, durationMs }) => {
      calls.inc({ procedure, result });
      callSeconds.observe({ result }, durationMs / 1000);
    },
    observeKubernetes: ({ method, resource, status, durationMs }) => {
      requests.inc({ method, resource, code: status ?? "error" });
      requestSeconds.observe({ method }, durationMs / 1000);
    },
  };
}
