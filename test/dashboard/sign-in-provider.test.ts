import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import { type IdentityProvider, startIdentityProvider } from "../../api-server/test/identity-provider.ts";
import { freePort } from "../harness/ports.ts";
import { EVERY_PAGE } from "./every-page.ts";
import { type Dashboard, startDashboard } from "./harness.ts";

/*
 * Signing in with a provider on another site, in a browser: it is the browser that decides which cookies come along when another site sends it
 * back, and whether the page that it ends on has its session.
 */

let idp: IdentityProvider;
let dashboard: Dashboard & { close(): Promise<void> };
let rolesFile: string;
beforeAll(async () => {
  const port = await freePort();
  const url = `http://127.0.0.1:${port}`;
  // For a browser another site than 127.0.0.1.
  idp = await startIdentityProvider({ redirectUri: `${url}/dashboard/auth/callback`, host: "localhost" });
  const folder = mkdtempSync(join(tmpdir(), "postern-roles-"));
  rolesFile = join(folder, "roles.yaml");
  writeFileSync(rolesFile, "groups: {platform: {default: operator}}");
  const provider = ["--oidc-issuer", idp.issuer, "--oidc-client-id", idp.clientId, "--dashboard-url", url];
  dashboard = await startDashboard({
    apiPort: port,
    args: [...provider, "--dashboard-roles-file", rolesFile],
    env: { POSTERN_OIDC_CLIENT_SECRET: idp.clientSecret },
  });
  return async () => rmSync(folder, { recursive: true });
}, 180_000);
afterAll(async () => {
  await dashboard.close();
  await idp.close();
});

async function open(path: string) {
  const context = await dashboard.browser.newContext();
  onTestFinished(() => context.close());
  const page = await context.newPage();
  page.setDefaultTimeout(15_000);
  await page.goto(`${dashboard.url}/dashboard${path}`);
  return { context, page };
}

const ada = (groups: readonly string[]) => ({ sub: "ada", claims: { name: "Ada Lovelace", groups } });

describe("with a provider on another site", () => {
  test("OIDC sign-in returns to the requested dashboard page", async () => {
    idp.person = ada(["platform"]);
    const { context, page } = await open("/identities?search=abc");
    await page.getByRole("link", { name: `Sign in with ${new URL(idp.issuer).host}` }).click();
    await page.getByRole("button", { name: "Ada Lovelace" }).waitFor();
    await page.waitForURL((url) => url.searchParams.has("workspace"));
    const { pathname, searchParams } = new URL(page.url());
    expect([pathname, searchParams.get("search")]).toEqual(["/dashboard/identities", "abc"]);
    const cookies = await context.cookies(dashboard.url);
    expect(cookies.map(({ name, sameSite }) => [name, sameSite])).toEqual([["__Host-postern", "Strict"]]);
    // A later visit from another site shows the page signed in, too: it is the page that sends the cookie, not the link.
    await page.goto(`${idp.issuer}/.well-known/openid-configuration`);
    await page.evaluate((url) => {
      location.href = url;
    }, `${dashboard.url}/dashboard/identities`);
    await page.getByRole("button", { name: "Ada Lovelace" }).waitFor();
  });

  test("OIDC sign-in from every dashboard page returns to it", async () => {
    const { page } = await open("/");
    for (const path of [...EVERY_PAGE, "/keys/key_1?workspace=ws_1", "/usage/sql"]) {
      await page.goto(`${dashboard.url}/dashboard${path}`);
      const way = page.getByRole("link", { name: /Sign in with/ });
      const { pathname, searchParams } = new URL((await way.getAttribute("href")) ?? "", dashboard.url);
      expect([pathname, [...searchParams.values()]]).toEqual(["/dashboard/auth/start", [`/dashboard${path}`]]);
    }
  });

  test("OIDC user without a role sees the groups from the provider, and can sign in after a role is granted", async () => {
    idp.person = ada(["strangers", "<b>bold</b>"]);
    const { page } = await open("/");
    await page.getByRole("link", { name: /Sign in with/ }).click();
    await page.getByText("Your groups: strangers, <b>bold</b>.").waitFor();
    writeFileSync(rolesFile, "groups: {strangers: {default: viewer}, platform: {default: operator}}");
    await expect
      .poll(
        async () => {
          await page.reload();
          await page.locator("main h1").first().waitFor();
          return page.getByRole("button", { name: "Ada Lovelace" }).count();
        },
        { timeout: 10_000 },
      )
      .toBe(1);
  });

  test("form keeps its input while its user has lost the role, and can be submitted after the role is restored", async () => {
    const OPERATOR = "groups: {platform: {default: operator}}";
    writeFileSync(rolesFile, OPERATOR);
    onTestFinished(() => writeFileSync(rolesFile, OPERATOR));
    idp.person = ada(["platform"]);
    const { page } = await open("/identities");
    await page.getByRole("link", { name: /Sign in with/ }).click();
    const create = page.getByRole("button", { name: "Create an identity" }).and(page.locator(":not([aria-disabled])"));
    await expect
      .poll(
        async () => {
          if ((await create.count()) === 0) await page.reload();
          await page.locator("main h1").first().waitFor();
          return create.count();
        },
        { timeout: 10_000 },
      )
      .toBe(1);
    await create.click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("External id").fill("typed.by.a.viewer");
    writeFileSync(rolesFile, "groups: {platform: {default: viewer}}");
    const isViewer = () =>
      page.evaluate(async () => {
        const headers = { "Postern-Dashboard": "1" };
        const { data } = await (await fetch("/dashboard/session", { headers })).json();
        return data.session.workspaces[0].role === "viewer";
      });
    await expect.poll(isViewer).toBe(true);
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await dialog.getByText("An admin of the workspace can assign you a role").waitFor();
    expect(await dialog.getByLabel("External id").inputValue()).toBe("typed.by.a.viewer");
    writeFileSync(rolesFile, OPERATOR);
    await expect.poll(isViewer).toBe(false);
    await dialog.getByRole("button", { name: "Create", exact: true }).click();
    await page.getByRole("heading", { name: "typed.by.a.viewer" }).waitFor();
  });

  test("canceled OIDC sign-in is shown and can be retried", async () => {
    idp.person = "refuses";
    const { context, page } = await open("/");
    await page.getByRole("link", { name: /Sign in with/ }).click();
    await page.getByText("The provider rejected the sign-in.").waitFor();
    expect((await context.cookies(dashboard.url)).some(({ name }) => name === "__Host-postern")).toBe(false);
    idp.person = ada(["platform"]);
    await page.getByRole("link", { name: /Sign in with/ }).click();
    await page.getByRole("button", { name: "Ada Lovelace" }).waitFor();
  });
});
