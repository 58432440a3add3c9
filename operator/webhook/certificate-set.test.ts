import { X509Certificate } from "node:crypto";
import { once } from "node:events";
import { createServer } from "node:https";
import type { AddressInfo } from "node:net";
import { connect } from "node:tls";
import { expect, test } from "vitest";
import { type CertificateSet, renewed, splitPem, validToMs } from "./certificate-set.ts";

const DAY_MS = 86_400_000;
const nowMs = Date.parse("2026-11-22T12:00:00Z");
const lifetimes = { authorityMs: 300 * DAY_MS, servingMs: 30 * DAY_MS };
const hosts = ["postern-webhook.postern.svc", "postern-webhook", "127.0.0.1"];
const at = (days: number, current?: CertificateSet) =>
  renewed(current, { hosts, lifetimes, nowMs: nowMs + days * DAY_MS });

test("first webhook CA and certificate cover all hosts and tolerate clock skew", () => {
  const made = at(0);
  const [authority = ""] = splitPem(made.bundle);
  const [issuer, serving] = [new X509Certificate(authority), new X509Certificate(made.cert)];
  expect(issuer.ca).toBe(true);
  expect(serving.ca).toBe(false);
  expect(serving.verify(issuer.publicKey)).toBe(true);
  expect(serving.checkIssued(issuer)).toBe(true);
  expect(serving.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1"]);
  expect(serving.subjectAltName).toBe("DNS:postern-webhook.postern.svc, DNS:postern-webhook, IP Address:127.0.0.1");
  expect(serving.validToDate.getTime()).toBe(nowMs + 30 * DAY_MS);
  expect(serving.validFromDate.getTime()).toBeLessThan(nowMs - 1000);
  // Serial numbers are positive for any random bytes.
  for (let i = 0; i < 20; i++) expect(new X509Certificate(at(0).cert).serialNumber).not.toMatch(/^-/);
});

test("webhook certificate is renewed by the same CA after two thirds of its lifetime", () => {
  const made = at(0);
  expect(at(19, made)).toBe(made);
  const next = at(21, made);
  expect(next.bundle).toBe(made.bundle);
  expect(next.cert).not.toBe(made.cert);
  expect(validToMs(next.cert)).toBe(nowMs + 51 * DAY_MS);
  expect(new X509Certificate(next.cert).verify(new X509Certificate(made.bundle).publicKey)).toBe(true);
});

test("expiring webhook CA is replaced, stays trusted and outlives its certificates", () => {
  let set = at(0);
  const first = splitPem(set.bundle)[0] ?? "";
  for (let day = 1; day < 200; day++) set = at(day, set);
  expect(splitPem(set.bundle)).toEqual([first]);
  set = at(201, set);
  const [second = "", ...formers] = splitPem(set.bundle);
  expect(formers).toEqual([first]);
  expect(new X509Certificate(set.cert).checkIssued(new X509Certificate(second))).toBe(true);
  for (let day = 202; day < 1000; day++) {
    set = at(day, set);
    const authorities = splitPem(set.bundle);
    expect(validToMs(set.cert)).toBeLessThanOrEqual(validToMs(authorities[0] ?? ""));
    expect(validToMs(set.cert)).toBeGreaterThan(nowMs + day * DAY_MS);
    expect(authorities.length).toBeLessThanOrEqual(2);
    if (day > 300) expect(authorities).not.toContain(first);
  }
});

test("webhook certificate is replaced for other hosts or an inconsistent Secret", () => {
  const made = at(0);
  const moved = renewed(made, { hosts: ["elsewhere.postern.svc"], lifetimes, nowMs });
  expect(moved.bundle).toBe(made.bundle);
  expect(new X509Certificate(moved.cert).checkHost("elsewhere.postern.svc")).toBeDefined();
  const other = at(0);
  for (const broken of [
    { ...made, cert: other.cert },
    { ...made, key: other.key },
    { ...made, bundle: other.bundle },
    { ...made, authorityKey: other.authorityKey },
    { ...made, bundle: "" },
    { ...made, key: "nothing" },
  ]) {
    const again = at(0, broken);
    expect(again.cert).not.toBe(broken.cert);
    expect(at(0, again)).toBe(again);
  }
});

test("TLS client accepts the webhook certificate only with its CA bundle", async () => {
  const made = renewed(undefined, { hosts, lifetimes, nowMs: Date.now() });
  const server = createServer({ key: made.key, cert: made.cert });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const shake = async (ca: string, servername: string) => {
    const socket = connect({ port, host: "127.0.0.1", ca, servername });
    try {
      await Promise.race([
        once(socket, "secureConnect"),
        once(socket, "error").then(([error]) => Promise.reject(error)),
      ]);
      return "accepted";
    } catch (error) {
      return (error as NodeJS.ErrnoException).code;
    } finally {
      socket.destroy();
    }
  };
  expect(await shake(made.bundle, "postern-webhook.postern.svc")).toBe("accepted");
  expect(await shake(made.bundle, "other.postern.svc")).toBe("ERR_TLS_CERT_ALTNAME_INVALID");
  expect(await shake(at(0).bundle, "postern-webhook.postern.svc")).not.toBe("accepted");
  server.close();
});
