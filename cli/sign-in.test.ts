import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { waitFor } from "../test/harness/wait.ts";
import { defineCommand, parseOptions } from "./command.ts";
import { signInOf, signInOptions } from "./sign-in.ts";

const command = defineCommand({ name: "x", summary: "x", options: signInOptions, run: async () => 0 });
const logged: unknown[] = [];
const log = {
  info: (...args: unknown[]) => void logged.push(args),
  warn: (...args: unknown[]) => void logged.push(args),
};

const read = (args: string, env: Record<string, string> = {}) => {
  const given = args === "" ? [] : args.split(" ");
  return signInOf(parseOptions(command, given, env) as Parameters<typeof signInOf>[0], log as never);
};

const PROVIDER = "--oidc-issuer https://id.example.com/ --oidc-client-id postern";
const URL_OF = "--dashboard-url https://postern.example.com/";

function tempFile(text: string): string {
  const folder = mkdtempSync(join(tmpdir(), "postern-sign-in-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  const file = join(folder, "roles.yaml");
  writeFileSync(file, text);
  return file;
}

test("dashboard sign-in uses links by default, but only on this machine", () => {
  expect(read("")).toEqual({
    url: undefined,
    times: { idleMs: 7_200_000, maxMs: 43_200_000 },
    provider: undefined,
    rolesOfGroups: undefined,
  });
});

test("OpenID client secret is read on each use", () => {
  const file = tempFile("secret-of-the-client\n");
  const { url, provider } = read(`${URL_OF} ${PROVIDER} --oidc-client-secret-file ${file}`);
  expect(url).toBe("https://postern.example.com");
  expect(provider).toMatchObject({
    issuer: "https://id.example.com/",
    clientId: "postern",
    scopes: "openid profile email",
    groupsClaim: "groups",
  });
  expect(provider?.clientSecret?.()).toBe("secret-of-the-client");
  expect(read(`${URL_OF} ${PROVIDER}`).provider?.clientSecret).toBeUndefined();
});

test.each([
  [PROVIDER, "--dashboard-url"],
  ["--oidc-client-id x", "require --oidc-issuer"],
  ["--oidc-client-secret x", "require --oidc-issuer"],
  [`${URL_OF} --oidc-issuer https://id.example.com`, "--oidc-client-id"],
  [`${URL_OF} --oidc-client-id x --oidc-issuer http://id.example.com`, "must be an https URL"],
  [`${URL_OF} --oidc-client-id x --oidc-issuer http://127.0.0.1.example.com`, "must be an https URL"],
  [`${URL_OF} --oidc-client-id x --oidc-issuer ftp://id.example.com`, "must be a URL"],
  [`${URL_OF} --oidc-client-id x --oidc-issuer https://id.example.com?a=b`, "must be a URL"],
  [`${URL_OF} ${PROVIDER} --oidc-scopes profile`, "must contain openid"],
  [`${URL_OF} ${PROVIDER} --oidc-client-secret a --oidc-client-secret-file b`, "exclude each other"],
  ["--session-lifetime 0", "from 1m"],
  ["--session-idle-timeout x", "must be a duration"],
  ["--dashboard-url http://postern.example.com", "must be an https URL"],
  ["--dashboard-roles-file /missing/roles.yaml", "ENOENT"],
])("dashboard sign-in rejects the options %s", (args, message) => expect(() => read(args)).toThrow(message));

test("OpenID issuer on this machine can use plain HTTP", () => {
  for (const host of ["127.0.0.1:9000", "localhost", "[::1]:1"]) {
    expect(read(`${URL_OF} --oidc-client-id x --oidc-issuer http://${host}`).provider?.issuer).toBe(`http://${host}`);
  }
});

test("invalid roles file prevents startup with the location of the error", () => {
  const file = tempFile("groups:\n  a: {shop: owner}\n");
  expect(() => read(`--dashboard-roles-file ${file}`)).toThrow(/roles\.yaml: line 2, column 13: groups\.a\.shop/);
});

test("roles file is reloaded; an invalid change is logged and keeps the active roles", async () => {
  const file = tempFile("groups: {a: {shop: viewer}}");
  const { rolesOfGroups } = read(`--dashboard-roles-file ${file}`);
  const roles = () => rolesOfGroups?.(["a"]).map(({ role }) => role);
  expect(roles()).toEqual(["viewer"]);
  writeFileSync(file, "groups: {a: {shop: admin}}");
  await waitFor("the new roles", () => roles()?.[0] === "admin");
  writeFileSync(file, "groups: {a: {shop: owner}}");
  await waitFor("the warning", () => {
    roles();
    return JSON.stringify(logged).includes("line 1, column 20");
  });
  expect(roles()).toEqual(["admin"]);
});
