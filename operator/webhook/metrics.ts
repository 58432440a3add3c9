import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import { validToMs } from "./certificate-set.ts";
import { MUTATE_PATH, VALIDATE_PATH } from "./configurations.ts";

export const WEBHOOK_METRICS = defineMetrics({
  calls: {
    name: "postern_operator_webhook_calls_total",
    type: "counter",
    help: "Calls of the webhook, by path and outcome.",
    unit: "calls",
    labels: { path: [MUTATE_PATH, VALIDATE_PATH], outcome: ["allowed", "refused"] },
    bad: "Many `refused`: pods are not made. The Events of their ReplicaSets have the reason: no policy selects the pod, or it cannot have a gate.",
  },
  duration: {
    name: "postern_operator_webhook_duration_seconds",
    type: "histogram",
    help: "How long the decision on a call took.",
    unit: "seconds",
    labels: { path: [MUTATE_PATH, VALIDATE_PATH] },
    bad: "Near 5, Kubernetes gives up the call: the operator has too little CPU, or its api-server does not answer about a new workspace.",
  },
  configurations: {
    name: "postern_operator_webhook_configuration_present",
    type: "gauge",
    help: "1 while the configuration is there by which Kubernetes calls the webhook; not reported with a certificate from a folder.",
    unit: "1 or 0",
    labels: { configuration: ["mutating", "validating"] },
    bad: "`mutating` 0 (PosternWebhookConfigurationMissing): pods that ask for a gate start without one.",
  },
  validTo: {
    name: "postern_operator_webhook_certificate_expiry_timestamp_seconds",
    type: "gauge",
    help: "When the certificate that the webhook serves ends; 0 before there is one.",
    unit: "Unix seconds",
    bad: "Less than five days ahead (PosternWebhookCertificateExpiring): it is not replaced. When it has ended, no guarded pod starts.",
  },
});

export function createWebhookMetrics(registry: Registry) {
  const registers = [registry];
  const calls = new Counter({ ...exported(WEBHOOK_METRICS.calls), registers });
  const buckets = [0.0005, 0.002, 0.01, 0.05, 0.2, 1];
  const duration = new Histogram({ ...exported(WEBHOOK_METRICS.duration), buckets, registers });
  const validTo = new Gauge({ ...exported(WEBHOOK_METRICS.validTo), registers });
  const configurations = new Gauge({ ...exported(WEBHOOK_METRICS.configurations), registers });
  return {
    observeConfiguration: (configuration: string, isThere: boolean) =>
      configurations.set({ configuration }, isThere ? 1 : 0),
    observe: ({ path, allowed, seconds }: { path: string; allowed: boolean; seconds: number }) => {
      calls.inc({ path, outcome: allowed ? "allowed" : "refused" });
      duration.observe({ path }, seconds);
    },
    serves: (cert: string) => validTo.set(validToMs(cert) / 1000),
  };
}
