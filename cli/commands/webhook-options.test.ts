import { expect, test } from "vitest";
import { UsageError } from "../command.ts";
import { parseWebhook, webhookOptions } from "./webhook-options.ts";

const defaults = Object.fromEntries(
  Object.entries(webhookOptions).flatMap(([name, option]) => ("default" in option ? [[name, option.default]] : [])),
);
const parse = (more: Record<string, string>) => parseWebhook({ ...defaults, "gate-image": "image", ...more });

test("webhook starts only with a gate image, and all its other options have defaults", () => {
  expect(parseWebhook(defaults)).toBeUndefined();
  expect(parse({})).toMatchObject({
    port: 19_443,
    hosts: ["postern-webhook.postern.svc"],
    configurationName: "postern",
    certificate: { secretName: "postern-webhook" },
    injection: {
      gateImage: "image",
      gatePort: 19_080,
      adminPort: 19_081,
      resources: { cpuRequest: "10m", memoryRequest: "64Mi", memoryLimit: "320Mi" },
      preStopSeconds: 5,
    },
  });
});

test("webhook options accept lists of pairs, and a certificate folder instead of the Secret", () => {
  const config = parse({
    "gate-env": "POSTERN_REGION=eu, POSTERN_DOCS_URL=https://docs.example/?a=b",
    "gate-resources": "cpu-limit=1,memory-limit=0.5Gi",
    "webhook-cert-dir": "/certs",
  });
  expect(config).toMatchObject({
    certificate: { dir: "/certs" },
    injection: {
      env: { POSTERN_REGION: "eu", POSTERN_DOCS_URL: "https://docs.example/?a=b" },
      resources: { cpuRequest: "10m", cpuLimit: "1", memoryLimit: "0.5Gi" },
    },
  });
});

test.each([
  { "gate-env": "=x" },
  { "gate-resources": "gpu=1" },
  { "gate-resources": "cpu-limit=much" },
  { "webhook-hosts": " , " },
  { "pre-stop-sleep": "-1" },
])("webhook rejects the options %j", (more) => expect(() => parse(more as Record<string, string>)).toThrow(UsageError));
