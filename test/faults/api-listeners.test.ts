import { once } from "node:events";
import { copyFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { join } from "node:path";
import { connect } from "node:tls";
import { expect, onTestFinished, test } from "vitest";
import { openCertificateFolder } from "../harness/certificate.ts";
import { aRule, call, startApp } from "../harness/gate.ts";
import { guardApp } from "../harness/sidecar-process.ts";
import { waitFor } from "../harness/wait.ts";
import { openSystem } from "./system.ts";

/* Ports of an api-server process: the API with or without TLS, and the admin port; and the documentation URL of its errors. */

const LONG = { deadlineMs: 60_000 };

test("API metrics are served only on the admin port, and probes on both ports", async () => {
  const system = await openSystem();
  const api = await system.spawnApi({ POSTERN_ADMIN_PORT: "0" });
  const adminUrl = /"adminUrl":"([^"]+)"/.exec(api.process.stderr())?.[1] ?? "";
  const statuses = async (url: string) => {
    const found: Record<string, number> = {};
    for (const path of [
      "/livez",
      "/readyz",
      "/openapi.json",
      "/metrics",
      "/docs",
      "/docs/start.js",
      "/errors/forbidden",
    ]) {
      found[path] = (await fetch(`${url}${path}`)).status;
    }
    return found;
  };
  expect(await statuses(api.url)).toEqual({
    ...{ "/livez": 200, "/readyz": 200, "/openapi.json": 200, "/errors/forbidden": 200 },
    ...{ "/metrics": 404, "/docs": 404, "/docs/start.js": 404 },
  });
  expect(await statuses(adminUrl)).toEqual({
    ...{ "/livez": 200, "/readyz": 200, "/openapi.json": 200, "/metrics": 200, "/docs": 200, "/docs/start.js": 200 },
    "/errors/forbidden": 404,
  });
  const text = async (path: string) => (await fetch(`${adminUrl}${path}`)).text();
  expect(await text("/metrics")).toContain("postern_ready 1");
  // The API has another URL, so the page offers no calls.
  expect(await text("/docs/start.js")).toContain("supportedSubmitMethods: []");
  expect(JSON.parse(await text("/readyz?verbose")).status).toBe("ready");
  const call = await fetch(`${adminUrl}/v2/apis.createApi`, { method: "POST", body: "{}" });
  expect(call.status).toBe(404);
  expect(await api.process.stop()).toEqual({ code: 0, signal: null });
});

test("API serves TLS and reloads replaced certificates", async () => {
  const system = await openSystem();
  const certificates = openCertificateFolder();
  onTestFinished(() => certificates.remove());
  const [first, second] = [certificates.make("first"), certificates.make("second")];
  const files = { cert: `${first.certFile}.served`, key: join(`${first.keyFile}.served`) };
  copyFileSync(first.certFile, files.cert);
  copyFileSync(first.keyFile, files.key);
  const api = await system.spawnApi({ POSTERN_TLS_CERT_FILE: files.cert, POSTERN_TLS_KEY_FILE: files.key });
  expect(api.url).toMatch(/^https:/);
  const port = Number(new URL(api.url).port);
  const ask = async (path: string, ca: string): Promise<number | undefined> => {
    const headers = { Authorization: `Bearer ${system.rootKey}`, "Content-Type": "application/json" };
    const body = JSON.stringify({ name: `api-${Math.random()}` });
    const sent = request({ host: "127.0.0.1", port, path, ca, method: "POST", agent: false, headers }).end(body);
    const [response] = (await once(sent, "response")) as [IncomingMessage];
    response.resume();
    return response.statusCode;
  };
  const served = async (): Promise<string> => {
    const socket = connect({ host: "127.0.0.1", port, rejectUnauthorized: false });
    await once(socket, "secureConnect");
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return String(CN);
  };
  expect(await ask("/v2/apis.createApi", first.cert)).toBe(200);
  await expect(ask("/v2/apis.createApi", second.cert)).rejects.toThrow(/self-signed|certificate/);
  await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow();

  // A certificate is not used before its key exists.
  copyFileSync(second.certFile, files.cert);
  await waitFor("that to be said", () => api.process.stderr().includes("not usable"), LONG);
  expect(await served()).toBe("first");
  copyFileSync(second.keyFile, files.key);
  await waitFor("the other certificate", async () => (await served()) === "second", LONG);
  expect(await ask("/v2/apis.createApi", second.cert)).toBe(200);
  expect(await api.process.stop()).toEqual({ code: 0, signal: null });
});

test(
  "error type is a stable URL that serves its documentation page",
  async () => {
    const system = await openSystem();
    const typeOf = async (env: Record<string, string>) => {
      const api = await system.spawnApi(env);
      const { error } = (await api.call("apis.getApi", {})).body;
      const { docs } = (await api.call("v1/apis.getApi", {})).body.error;
      return { type: error.type, docs, own: (await fetch(`${api.url}/errors/invalid_input`)).status };
    };
    const standard = await typeOf({});
    expect(standard).toEqual({
      type: "https://postern.dev/errors/invalid_input",
      docs: "https://postern.dev/api-reference/errors/code/BAD_REQUEST",
      own: 200,
    });
    const set = await typeOf({ POSTERN_DOCS_URL: "https://docs.example/postern/" });
    expect(set.type).toBe("https://docs.example/postern/errors/invalid_input");
  },
  LONG.deadlineMs,
);

test("gate and api-server describe an error identically", async () => {
  const app = await startApp();
  onTestFinished(() => app.close());
  const guarded = await guardApp({ upstream: app.url, policy: { rules: [aRule({ access: "Key" })] } });
  onTestFinished(() => guarded.close());
  const { status, body } = await call(guarded.port);
  expect([status, JSON.parse(body).error.type]).toEqual([401, "https://postern.dev/errors/unauthorized"]);
});
