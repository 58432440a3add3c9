import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { findUnknownVariables, isOfService, readVariable } from "./environment.ts";
import { KNOWN_VARIABLES } from "./known-variables.ts";

/** Variables that Kubernetes 1.34 sets in the pods of a namespace with this Service of one named port. */
const ofService = (name: string, port = 443) => ({
  [`${name}_SERVICE_HOST`]: "10.0.0.7",
  [`${name}_SERVICE_PORT`]: String(port),
  [`${name}_SERVICE_PORT_HTTPS`]: String(port),
  [`${name}_PORT`]: `tcp://10.0.0.7:${port}`,
  [`${name}_PORT_${port}_TCP`]: `tcp://10.0.0.7:${port}`,
  [`${name}_PORT_${port}_TCP_PROTO`]: "tcp",
  [`${name}_PORT_${port}_TCP_PORT`]: String(port),
  [`${name}_PORT_${port}_TCP_ADDR`]: "10.0.0.7",
});

describe("unknown variables", () => {
  test.each([
    { name: "POSTERN_DRIAN_TIMEOUT", nearest: "POSTERN_DRAIN_TIMEOUT" },
    { name: "POSTERN_LOGLEVEL", nearest: "POSTERN_LOG_LEVEL" },
    { name: "POSTERN_MAX_CACHE_KEY", nearest: "POSTERN_MAX_CACHE_KEYS" },
    { name: "POSTERN_REDIS_URL", nearest: "REDIS_URL" },
    { name: "POSTERN_QUITE_SOMETHING_ELSE", nearest: undefined },
    { name: `POSTERN_${"X".repeat(100_000)}`, nearest: undefined },
  ])("unknown variable is reported with the most similar known variable: $nearest", (unknown) => {
    expect(findUnknownVariables({ [unknown.name]: "1", POSTERN_DRAIN_TIMEOUT: "2", DRIAN: "3" })).toEqual([unknown]);
  });

  test("variables of other components and of Services are not reported as unknown", () => {
    const env = { ...ofService("POSTERN"), ...ofService("POSTERN_WEBHOOK"), ...ofService("POSTERN_API_SERVER", 80) };
    expect(findUnknownVariables({ ...env, ...Object.fromEntries(KNOWN_VARIABLES.map((name) => [name, "1"])) })).toEqual(
      [],
    );
    for (const name of Object.keys(env)) expect(isOfService(name, env), name).toBe(true);
  });

  test("variables that look like a Service's are reported as unknown if the Service's other variables are missing", () => {
    expect(findUnknownVariables({ POSTERN_SHOP_SERVICE_PORT: "80" })).toHaveLength(1);
  });
});

test("variables that Kubernetes sets for a Service are ignored, and the user's own values apply", () => {
  const env = ofService("POSTERN_WEBHOOK");
  expect(readVariable("POSTERN_WEBHOOK_PORT", env)).toBeUndefined();
  expect(readVariable("POSTERN_WEBHOOK_PORT", { ...env, POSTERN_WEBHOOK_PORT: "8443" })).toBe("8443");
  // Without the Service, the value is invalid and rejected.
  expect(readVariable("POSTERN_WEBHOOK_PORT", { POSTERN_WEBHOOK_PORT: "tcp://10.0.0.7:443" })).toBe(
    "tcp://10.0.0.7:443",
  );
});

test("every variable in the sources is in the list of known variables", () => {
  const files = globSync("{cli,api-server,sidecar,operator,edge}/**/*.ts", { cwd: join(import.meta.dirname, "..") });
  const named = files
    .filter((file) => !file.includes(".test.ts") && !file.includes("/test/"))
    .flatMap((file) => [
      ...readFileSync(join(import.meta.dirname, "..", file), "utf8").matchAll(/\benv\.(POSTERN_\w+)/g),
    ]);
  expect(named.length).toBeGreaterThan(5);
  for (const [, name] of named) expect(KNOWN_VARIABLES).toContain(name);
});
