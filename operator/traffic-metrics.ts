import { Counter, Histogram, type Registry } from "prom-client";
import type { ApiAttempt } from "./api/client.ts";
import type { KubeExchange } from "./runtime/kube-client.ts";

/* What the operator asks of others: the API of the store, and the Kubernetes API. */

export interface TrafficMetrics {
  readonly observeApi: (attempt: ApiAttempt) => void;
  readonly observeKubernetes: (exchange: KubeExchange) => void;
}

const SECONDS = [0.005, 0.02, 0.05, 0.1, 0.3, 1, 3, 10];

export function createTrafficMetrics(registry: Registry): TrafficMetrics {
  const registers = [registry];
  const calls = new Counter({
    name: "postern_operator_api_calls_total",
    help: "Calls of the store's API, each try counted, by procedure and result: success, refusal (such as 404 or 409) or error.",
    labelNames: ["procedure", "result"],
    registers,
  });
  const callSeconds = new Histogram({
    name: "postern_operator_api_call_seconds",
    help: "How long a call of the store's API took, by result.",
    labelNames: ["result"],
    buckets: SECONDS,
    registers,
  });
  const requests = new Counter({
    name: "postern_operator_kubernetes_requests_total",
    help: "Requests to the Kubernetes API, by method, resource and status; `error` when there was no answer.",
    labelNames: ["method", "resource", "code"],
    registers,
  });
  const requestSeconds = new Histogram({
    name: "postern_operator_kubernetes_request_seconds",
    help: "How long a request to the Kubernetes API took, by method; of a watch, until it was accepted.",
    labelNames: ["method"],
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
