import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { defineMetrics, exported } from "../../core/metric.ts";
import { validToMs } from "./certificate-set.ts";
import { MUTATE_PATH, VALIDATE_PATH } from "./configurations.ts";

export const WEBHOOK_METRICS = defineMetrics({
  calls: {
    name: "postern_operator_webhook_calls_total",
    type: "counter",
    help: "Webhook calls by path and outcome",
    unit: "calls",
    labels: { path: [MUTATE_PATH, VALIDATE_PATH], outcome: ["allowed", "refused"] },
    bad: "Many `refused`: pods are not created. Events of their ReplicaSets have the reason.",
  },
  duration: {
    name: "postern_operator_webhook_duration_seconds",
    type: "histogram",
    help: "Duration of webhook calls",
    unit: "seconds",
    labels: { path: [MUTATE_PATH, VALIDATE_PATH] },
    bad: "Near 5, Kubernetes times out: too little CPU, or an api-server that does not respond.",
  },
  configurations: {
    name: "postern_operator_webhook_configuration_present",
    type: "gauge",
    help: "1 while the webhook configuration exists; not reported with `--webhook-cert-dir`",
    unit: "1 or 0",
    labels: { configuration: ["mutating", "validating"] },
    bad: "`mutating` 0 (PosternWebhookConfigurationMissing).",
  },
  validTo: {
    name: "postern_operator_webhook_certificate_expiry_timestamp_seconds",
    type: "gauge",
    help: "Expiry of the webhook certificate; 0 without one",
    unit: "Unix seconds",
    bad: "Less than five days ahead (PosternWebhookCertificateExpiring).",
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
