import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "playwright-core";
import { describe, expect, onTestFinished } from "vitest";
import { expectAccessible, expectNoSideways } from "./accessible.ts";
import { type Dashboard, dashboardTest, linkOf } from "./harness.ts";

/* Signing in as people do it, in a browser: what inject cannot show, because it is the browser that keeps, sends and refuses cookies. */

const test = dashboardTest();

/** A second browser of somebody, whose faults do not count. */
async function anotherBrowser({ browser }: Dashboard): Promise<BrowserContext> {
  const context = await browser.newContext();
  onTestFinished(() => context.close());
  return context;
}

async function signInBy(link: string, context: BrowserContext): Promise<Page> {
  const page = await context.newPage();
  await page.goto(link);
  await page.getByRole("button", { name: "Sign in with this link" }).click();
  await page.getByRole("banner").waitFor();
  return page;
}

const sessionCookie = async (context: BrowserContext) =>
  (await context.cookies()).find(({ name }) => name === "__Host-postern");

describe("a link", () => {
  test("sign-in link sets an HttpOnly cookie on local HTTP", async ({ dashboard, context, faults }) => {
    const link = await linkOf(dashboard, { name: "Ada" });
    const page = await signInBy(link, context);
    expect(await sessionCookie(context)).toMatchObject({
      httpOnly: true,
      secure: true,
      sameSite: "Strict",
      path: "/",
      expires: -1,
    });
    expect(await page.evaluate("document.cookie")).toBe("");
    expect(page.url()).not.toContain("token");
    // Nor is it where the button Back leads.
    await page.goBack();
    expect(page.url()).not.toContain("token");
    expect(faults.list()).toEqual([]);
  });

  test("used sign-in link is rejected with advice", async ({ dashboard }) => {
    const link = await linkOf(dashboard);
    const [first, second] = [await anotherBrowser(dashboard), await anotherBrowser(dashboard)];
    await signInBy(link, first);
    const page = await second.newPage();
    await page.goto(link);
    await page.getByRole("button", { name: "Sign in with this link" }).click();
    await page.getByText("The link was already used").waitFor();
    expect(await sessionCookie(second)).toBeUndefined();
    expect(await page.getByText("keeps your input").count()).toBe(0);
    await page.getByRole("button", { name: "Other ways to sign in" }).click();
    await page.getByText("postern dashboard link").waitFor();
  });

  test("sign-in link opens the page that the tab requested before, but only the first time", async ({
    dashboard,
    context,
  }) => {
    const page = await context.newPage();
    await page.goto(`${dashboard.url}/dashboard/audit?event=key.create`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const signIn = async (): Promise<string> => {
      await page.goto(await linkOf(dashboard, { name: "Ada" }));
      await page.getByRole("button", { name: "Sign in with this link" }).click();
      await page.waitForURL((url) => url.searchParams.has("workspace"));
      const { pathname, searchParams } = new URL(page.url());
      return `${pathname} ${searchParams.get("event")}`;
    };
    expect(await signIn()).toBe("/dashboard/audit key.create");
    expect(await signIn()).not.toContain("audit");
  });

  test("sign-in link asks a signed-in user before replacing the session", async ({ dashboard, context }) => {
    const page = await signInBy(await linkOf(dashboard, { name: "Ada" }), context);
    const before = await sessionCookie(context);
    await page.goto(await linkOf(dashboard, { name: "Grace" }));
    await page.getByRole("button", { name: "Sign in with this link" }).waitFor();
    expect(await sessionCookie(context)).toEqual(before);
    await page.getByRole("button", { name: "Sign in with this link" }).click();
    await page.getByRole("button", { name: "Grace" }).waitFor();
    expect((await sessionCookie(context))?.value).not.toBe(before?.value);
  });
});

describe("the sign-in page", () => {
  test("without a session, every URL shows the sign-in page", async ({ dashboard, context, faults }) => {
    const page = await context.newPage();
    for (const path of ["/", "/identities", "/sign-in", "/no-such-page"]) {
      await page.goto(`${dashboard.url}/dashboard${path}`);
      await page.getByRole("heading", { name: "Sign in" }).waitFor();
      await page.getByText("postern dashboard link").waitFor();
    }
    await expectAccessible(page);
    for (const width of [375, 1920]) {
      await page.setViewportSize({ width, height: 800 });
      await expectNoSideways(page);
    }
    expect(faults.list()).toEqual([]);
  });

  test.for([
    ["provider", "The provider does not respond"],
    ["state", "was started in another browser"],
    ["denied", "rejected the sign-in"],
    ["token", "sent an invalid response"],
  ] as const)("sign-in page explains error %s", async ([code, text], { dashboard, context }) => {
    const page = await context.newPage();
    await page.goto(`${dashboard.url}/dashboard/sign-in?error=${code}`);
    await page.getByRole("alert").filter({ hasText: text }).waitFor();
  });

  test.for(["<img src=x onerror=alert(1)>", "constructor", "__proto__", ""])(
    "sign-in page ignores error parameter %s",
    async (code, { dashboard, context }) => {
      const page = await context.newPage();
      await page.goto(`${dashboard.url}/dashboard/sign-in?error=${encodeURIComponent(code)}`);
      await page.getByText("postern dashboard link").waitFor();
      expect(await page.getByRole("alert").count()).toBe(0);
    },
  );
});

describe("the user menu", () => {
  test("user menu shows name, roles and sessions and signs out", async ({ dashboard, context }) => {
    const page = await signInBy(await linkOf(dashboard, { name: "Person", role: "viewer", where: "default" }), context);
    await page.getByRole("button", { name: "Person" }).click();
    const menu = page.locator(".account");
    await menu.getByText("Chrome on Linux, 127.0.0.1 (current)").waitFor();
    await menu.getByText("viewer").waitFor();
    await expectAccessible(page);
    expect(await menu.getByRole("button", { name: "Sign out everywhere" }).count()).toBe(0);
    await menu.getByRole("button", { name: "Sign out" }).click();
    await page.getByText("You are signed out.").waitFor();
    expect(await sessionCookie(context)).toBeUndefined();
    await page.goto(`${dashboard.url}/dashboard/identities`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  test("user menu signs out everywhere by keyboard", async ({ dashboard }) => {
    const [here, there] = [await anotherBrowser(dashboard), await anotherBrowser(dashboard)];
    const one = await signInBy(await linkOf(dashboard, { name: "Twice" }), here);
    const other = await signInBy(await linkOf(dashboard, { name: "Twice" }), there);
    await one.reload();
    await one.getByRole("button", { name: "Twice" }).focus();
    await one.keyboard.press("Enter");
    await one.locator(".account").getByText("(current)").waitFor();
    for (let i = 0; i < 5; i++) {
      await one.keyboard.press("Tab");
      if ((await one.locator(":focus").textContent()) === "Sign out everywhere") break;
    }
    await one.keyboard.press("Enter");
    await one.getByText("You are signed out.").waitFor();
    await other.reload();
    await other.getByRole("heading", { name: "Sign in" }).waitFor();
  });
});

describe("another site", () => {
  /** A page of an attacker, on another port: another origin, but the same site, to which Strict cookies are sent. */
  async function attacker(html: (url: string) => string, dashboard: Dashboard): Promise<string> {
    const server = createServer((_, response) =>
      response.setHeader("content-type", "text/html").end(html(dashboard.url)),
    );
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    onTestFinished(() => void server.close());
    return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  }

  const apis = async (dashboard: Dashboard) =>
    (await dashboard.call("admin.listAudit", { event: "api.create" })).length;

  test("cross-site form post with the session cookie changes nothing", async ({ dashboard, context, faults }) => {
    faults.expect(/403|another host|favicon/);
    await signInBy(await linkOf(dashboard), context);
    const before = await apis(dashboard);
    const page = await context.newPage();
    // The body of a form with this type is valid JSON; only its Content-Type, its missing header and its origin tell.
    await page.goto(
      await attacker(
        (url) =>
          `<form method=post enctype=text/plain action="${url}/v2/apis.createApi"><input name='{"name":"forged","x":"' value='"}'></form><script>document.forms[0].submit()</script>`,
        dashboard,
      ),
    );
    await page.waitForURL(/createApi/);
    expect(await page.textContent("body")).toContain("cross_origin_request");
    expect(await apis(dashboard)).toBe(before);
  });

  test("cross-site script call is blocked by the browser", async ({ dashboard, context, faults }) => {
    faults.expect(/CORS|ERR_FAILED|another host|favicon|40[0-9]/);
    await signInBy(await linkOf(dashboard), context);
    const before = await apis(dashboard);
    const page = await context.newPage();
    await page.goto(await attacker(() => "<h1>evil</h1>", dashboard));
    const outcomes = await page.evaluate(async (url) => {
      const send = (init: RequestInit) =>
        fetch(`${url}/v2/apis.createApi`, {
          method: "POST",
          credentials: "include",
          body: '{"name":"forged"}',
          ...init,
        }).then(
          () => "read",
          () => "refused",
        );
      return [
        await send({ headers: { "Postern-Dashboard": "1", "Content-Type": "application/json" } }),
        await send({ headers: { "Content-Type": "text/plain" } }),
      ];
    }, dashboard.url);
    expect(outcomes).toEqual(["refused", "refused"]);
    expect(await apis(dashboard)).toBe(before);
  });

  test("dashboard cannot be framed by another site", async ({ dashboard, context, faults }) => {
    faults.expect(/frame-ancestors|another host|favicon|Refused|Framing|policy/i);
    await signInBy(await linkOf(dashboard), context);
    const page = await context.newPage();
    await page.goto(await attacker((url) => `<iframe src="${url}/dashboard/identities"></iframe>`, dashboard));
    await expect.poll(() => page.frames().at(1)?.url()).toMatch(/^chrome-error:/);
  });

  test("cross-site page can neither sign a user out nor read the session", async ({ dashboard, context, faults }) => {
    faults.expect(/CORS|ERR_FAILED|another host|favicon|40[0-9]/);
    const mine = await signInBy(await linkOf(dashboard, { name: "Stays" }), context);
    const page = await context.newPage();
    await page.goto(await attacker(() => "<h1>evil</h1>", dashboard));
    const outcome = await page.evaluate(async (url) => {
      await fetch(`${url}/dashboard/auth/sign-out`, {
        method: "POST",
        credentials: "include",
        mode: "no-cors",
        body: "{}",
      });
      return fetch(`${url}/dashboard/session`, { credentials: "include" }).then(
        () => "read",
        () => "refused",
      );
    }, dashboard.url);
    expect(outcome).toBe("refused");
    await mine.reload();
    await mine.getByRole("button", { name: "Stays" }).waitFor();
  });
});

describe("people", () => {
  test("admin creates a link for a colleague, sees who signed in with it, and ends that session", async ({
    dashboard,
    open,
    context,
    faults,
  }) => {
    const page = await open("/people", { roleIn: "default" });
    const dialog = page.getByRole("dialog");
    await page.getByRole("button", { name: "Create a sign-in link" }).click();
    expect(await dialog.getByLabel("Where").count()).toBe(0);
    await dialog.getByText("The session ends with yours at the latest.").waitFor();
    await dialog.getByRole("button", { name: "Create", exact: true }).press("Enter");
    await expect.poll(() => page.evaluate(() => document.activeElement?.getAttribute("name"))).toBe("name");
    await dialog.getByLabel("Name of the person").fill("Grace <b>Hopper</b>");
    await dialog.getByLabel("Role").selectOption("operator");
    await dialog.getByRole("button", { name: "Create", exact: true }).dblclick();
    await dialog.getByText("The link is shown only once").waitFor();
    const link = (await dialog.locator("figure pre").textContent()) ?? "";
    expect(link).toMatch(new RegExp(`^${dashboard.url}/dashboard/sign-in#token=[\\w-]{43}$`));
    // A hurried Escape does not lose it.
    await page.keyboard.press("Escape");
    await dialog.getByRole("button", { name: "Close" }).click();
    const token = link.slice(link.indexOf("=") + 1);
    expect(page.url()).not.toContain(token);
    expect(await page.evaluate(() => JSON.stringify([{ ...localStorage }, { ...sessionStorage }]))).not.toContain(
      token,
    );
    const links = page.getByRole("region", { name: "Unused sign-in links" });
    await links.getByText("Grace <b>Hopper</b>").waitFor();
    await links.getByText("Ada (admin)").waitFor();

    const colleague = await anotherBrowser(dashboard);
    const theirs = await signInBy(link, colleague);
    const people = page.getByRole("table", { name: "People" });
    await page.reload();
    await people.getByText("link from Ada (admin)").waitFor();
    expect(await links.count()).toBe(0);
    await people.getByText("Grace <b>Hopper</b>").click();
    await dialog.getByRole("button", { name: "End", exact: true }).click();
    const address = page.url();
    await page.getByText("The person needs another sign-in link to return.").waitFor();
    await page.getByRole("button", { name: "End the session" }).click();
    await page.getByText("1 session of Grace <b>Hopper</b> ended.").waitFor();
    await dialog.waitFor({ state: "hidden" });
    await expect.poll(() => people.getByText("Grace <b>Hopper</b>").count()).toBe(0);
    await theirs.reload();
    await theirs.getByRole("heading", { name: "Sign in" }).waitFor();

    // The person of an old address is gone, and one's own session is ended elsewhere.
    faults.expect(/404/);
    await page.goto(address);
    await dialog.getByText("There is no open session").waitFor();
    await dialog.getByRole("button", { name: "Close" }).click();
    await people.getByText("you", { exact: true }).click();
    const end = dialog.getByRole("button", { name: "End", exact: true });
    expect(await end.getAttribute("title")).toContain("sign out in the account menu");
    await end.press("Enter");
    expect(await page.getByRole("button", { name: "End the session" }).count()).toBe(0);
    expect((await context.pages()).length).toBe(1);
  });

  test("admin of one workspace cannot end the session of an admin of all workspaces, who can create and revoke links", async ({
    dashboard,
    open,
  }) => {
    const root = await anotherBrowser(dashboard);
    const theirs = await signInBy(await linkOf(dashboard, { name: "Root" }), root);
    const page = await open("/people?search=Root", { roleIn: "default" });
    const dialog = page.getByRole("dialog");
    await page.getByText("admin of all workspaces").first().waitFor();
    await page.getByRole("table", { name: "People" }).getByText("Root", { exact: true }).click();
    for (const name of ["End", "Sign out everywhere"]) {
      const button = dialog.getByRole("button", { name, exact: true });
      expect(await button.getAttribute("title")).toContain("Ask an admin of all workspaces");
      await button.press("Enter");
    }
    expect(await page.getByRole("dialog").count()).toBe(1);
    await theirs.goto(`${dashboard.url}/dashboard/people`);
    await theirs.getByRole("button", { name: "Create a sign-in link" }).click();
    await theirs.getByLabel("Name of the person").fill("Everyone");
    await theirs.getByLabel("Where").selectOption("all workspaces");
    await theirs.getByRole("button", { name: "Create", exact: true }).click();
    await theirs.getByText("is signed in as viewer of all workspaces").waitFor();
    await theirs.getByRole("button", { name: "Close" }).click();
    const links = theirs.getByRole("region", { name: "Unused sign-in links" });
    const made = links.getByRole("row", { name: "Everyone" });
    await made.getByRole("button", { name: "Revoke" }).click();
    await theirs.getByRole("button", { name: "Revoke the link" }).click();
    await made.waitFor({ state: "hidden" });
  });

  test.for(["viewer", "operator"] as const)(
    "people page tells a %s which permission is missing",
    async (role, { open }) => {
      const page = await open("/people", { role });
      await page.getByText("workspace.*.read_person").waitFor();
      expect(await page.getByRole("button", { name: "Create a sign-in link" }).count()).toBe(0);
      await expectAccessible(page);
    },
  );
});
