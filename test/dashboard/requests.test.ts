import { randomBytes } from "node:crypto";
import type { BrowserContext, Page } from "playwright-core";
import { describe, expect } from "vitest";
import type { UsageEvent } from "../../edge/events/contract.ts";
import { aRatelimitEvent, aVerificationEvent } from "../builders/usage-event.ts";
import { waitFor } from "../harness/wait.ts";
import { expectPresentable } from "./accessible.ts";
import { inDatabase } from "./database.ts";
import { expectHarmless } from "./harmless.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { tabTo } from "./keyboard.ts";
import { storeUsage } from "./usage-events.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Each as an owner and as an identifier. */
const HOSTILE = [
  `o'brien\\'; DROP TABLE x --`,
  "\\",
  `<b>bold</b><img src=x onerror="hacked=1">`,
  "w".repeat(200),
  "%_",
  "123",
];

interface Seeded {
  readonly workspaceId: string;
  readonly apiId: string;
  readonly keySpaceId: string;
  readonly keyId: string;
  readonly namespaceId: string;
  readonly emptyApiId: string;
  /** Owner whose 230 requests are in three milliseconds. */
  readonly busy: string;
}

const unique = randomBytes(4).toString("hex");
let made = 0;
const ids = () => ({ id: `ev_${unique}_${made}`, requestId: `req_${unique}_${made++}` });

async function seed({ call, databaseUrl }: Dashboard): Promise<Seeded> {
  const { id: workspaceId } = await call("workspaces.getWorkspace", {});
  const { apiId } = await call("apis.createApi", { name: "shop <b>" });
  const { apiId: emptyApiId } = await call("apis.createApi", { name: "unused" });
  const [named] = await call("admin.resolveNames", { kind: "api", ids: [apiId] });
  const keySpaceId = named?.keySpaceId ?? "";
  const { keyId } = await call("keys.createKey", { apiId, name: "billing" });
  const { namespaceId } = await call("ratelimit.createNamespace", { name: "sms" });
  const nowMs = Date.now();
  const common = { workspaceId, keyId, keySpaceId };
  const verifications = HOSTILE.map((externalId, n) =>
    aVerificationEvent({
      ...common,
      ...ids(),
      timeMs: nowMs - (20 + n) * MINUTE_MS,
      externalId,
      outcome: n % 2 === 0 ? "VALID" : "EXPIRED",
      tags: [`tag=${externalId}`],
      region: "fra",
    }),
  );
  const old = aVerificationEvent({ ...common, ...ids(), timeMs: nowMs - 3 * DAY_MS, externalId: "old owner" });
  const limits = HOSTILE.map((identifier, n) =>
    aRatelimitEvent({
      workspaceId,
      namespaceId,
      ...ids(),
      timeMs: nowMs - (5 + n) * MINUTE_MS,
      identifier,
      passed: n % 2 === 0,
      overrideId: n === 0 ? "rlor_1" : undefined,
    }),
  );
  const busy = "busy";
  const many = Array.from({ length: 230 }, (_, n) =>
    aVerificationEvent({ ...common, ...ids(), timeMs: nowMs - 30 * MINUTE_MS - Math.floor(n / 90), externalId: busy }),
  );
  await storeUsage(databaseUrl, [...verifications, old, ...limits, ...many]);
  return { workspaceId, apiId, keySpaceId, keyId, namespaceId, emptyApiId, busy };
}

const test = dashboardTest().extend<{ seeded: Seeded }>({
  seeded: [async ({ dashboard }, use) => use(await seed(dashboard)), { scope: "file" }],
});

const rows = (page: Page) => page.locator(".table-body [role=row]");
const follow = (page: Page) => page.getByRole("switch", { name: "Follow live" });
/** Opens the fields of the filters. */
const filters = (page: Page): Promise<void> => page.getByRole("button", { name: "Filters" }).click();
const scroller = (page: Page) => page.locator(".table-scroller");

/** Bodies of the usage queries that the context's pages sent. */
function queriesOf(context: BrowserContext): string[] {
  const queries: string[] = [];
  context.on("request", (request) => {
    if (/\/v2\/analytics\./.test(request.url())) queries.push(String(request.postDataJSON()?.query));
  });
  return queries;
}

/** Rejects usage queries until the returned function is called. */
async function rejecting(context: BrowserContext, status: number, kind: string, headers = {}): Promise<() => void> {
  let isOn = true;
  await context.route(/v2\/analytics\./, (route) =>
    isOn
      ? route.fulfill({
          status,
          headers,
          json: { meta: { requestId: "req_x" }, error: { type: `/errors/${kind}`, detail: "It was rejected." } },
        })
      : route.continue(),
  );
  return () => {
    isOn = false;
  };
}

const newVerification = ({ workspaceId, keyId, keySpaceId }: Seeded, externalId: string): UsageEvent =>
  aVerificationEvent({ workspaceId, keyId, keySpaceId, ...ids(), timeMs: Date.now(), externalId });

describe("the list", () => {
  test("request log shows verifications newest first, with names and hostile owners as text", async ({
    open,
    seeded,
  }) => {
    const page = await open("/requests");
    const first = rows(page).filter({ hasText: HOSTILE[0] ?? "" });
    await first.waitFor();
    // The names are read after the rows. Just after midnight the newest row is from another day, and says so.
    await expect
      .poll(() => first.innerText())
      .toMatch(/(\d\d:\d\d:\d\d\.\d{3}|[A-Z][a-z]{2} \d+, \d\d:\d\d:\d\d)\nvalid[\s\S]*billing[\s\S]*shop <b>/);
    expect(await first.locator("time").getAttribute("title")).toMatch(/^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} UTC$/);
    const owners = await rows(page).evaluateAll((all) => all.map((row) => row.children[4]?.textContent));
    expect(owners.slice(0, HOSTILE.length)).toEqual(HOSTILE);
    expect(await first.getByRole("link").getAttribute("href")).toContain(`/keys/${seeded.keyId}`);
    await expectHarmless(page, "/requests");
  });

  test.for(HOSTILE)(
    "request log is filtered by the hostile owner and identifier %j",
    async (text, { open, seeded }) => {
      expect(seeded.apiId).not.toBe("");
      const page = await open(`/requests?owner=${encodeURIComponent(JSON.stringify(text))}`);
      await page.getByText("1 request", { exact: true }).waitFor();
      await rows(page).getByText(text, { exact: true }).waitFor();
      await page.getByRole("button", { name: `Remove the filter Owner: ${text}`, exact: true }).waitFor();
      await page.getByRole("tab", { name: "Rate limits" }).click();
      await filters(page);
      await page.getByLabel("Identifier").fill(text);
      await page.getByText("1 request", { exact: true }).waitFor();
      await rows(page).getByText(text, { exact: true }).waitFor();
      await page.reload();
      await page.getByText("1 request", { exact: true }).waitFor();
      await expectHarmless(page, text);
    },
  );

  test("request log combines the filters of verifications in the URL", async ({ open, seeded }) => {
    const page = await open("/requests");
    await filters(page);
    await page.getByLabel("API").selectOption(seeded.emptyApiId);
    await page.getByText("No requests match these filters.").waitFor();
    await page.getByLabel("API").selectOption(seeded.apiId);
    await page.getByLabel("Outcome").selectOption("EXPIRED");
    await page.getByLabel("Key id").fill(` ${seeded.keyId} `);
    await page.waitForURL(/key=/);
    await page.getByText("3 requests", { exact: true }).waitFor();
    const { searchParams } = new URL(page.url());
    expect([...searchParams.keys()].filter((name) => name !== "workspace").toSorted()).toEqual([
      "api",
      "key",
      "outcome",
    ]);
    await page.getByRole("button", { name: "Done" }).click();
    await page.getByRole("button", { name: "15m" }).click();
    expect(await page.locator(".chip").allInnerTexts()).toEqual([
      expect.stringContaining("Outcome: expired"),
      expect.stringContaining("API: "),
      expect.stringContaining(`Key id: ${seeded.keyId}`),
    ]);
    await page.getByRole("button", { name: "Remove the filters" }).click();
    await page.getByText("No requests in the last 15 minutes.").waitFor();
    await page.getByText(/v2\/keys\.verifyKey/).waitFor();
    await page.getByRole("button", { name: "Show the last 7 days" }).click();
    await rows(page).first().waitFor();
  });

  test("request log combines the filters of rate limits in the URL", async ({ open, seeded }) => {
    const page = await open("/requests?of=ratelimits");
    await page.getByText("6 requests", { exact: true }).waitFor();
    await rows(page).filter({ hasText: "rlor_1" }).getByRole("link", { name: "sms" }).waitFor();
    await filters(page);
    await page.getByLabel("Result").selectOption("over");
    await page.getByText("3 requests", { exact: true }).waitFor();
    expect(await rows(page).getByText("over the limit").count()).toBe(3);
    await page.getByLabel("Namespace").selectOption(seeded.namespaceId);
    await page.waitForURL(/namespace=/);
    await page.getByText("3 requests", { exact: true }).waitFor();
  });

  test("request log ignores invalid URL parameters", async ({ open, seeded }) => {
    expect(seeded.apiId).not.toBe("");
    const broken = "of=x&range=9y&result=maybe&outcome={}&api=[1]&key=&owner=null&namespace=true&identifier=%00";
    const page = await open(`/requests?${broken}`);
    await rows(page).first().waitFor();
    expect(await page.getByRole("tab", { name: "Verifications" }).getAttribute("aria-selected")).toBe("true");
    await page.getByRole("button", { name: "1h", pressed: true }).waitFor();
    expect(await page.locator(".chip").count()).toBe(0);
    await page.goto(`${page.url().split("?")[0]}?outcome=constructor&api=api_none`);
    await page.getByText("No requests match these filters.").waitFor();
    await page.getByRole("button", { name: "Remove the filter Outcome: constructor" }).waitFor();
  });

  test("request log pages through requests of the same millisecond without losing or repeating any", async ({
    open,
    seeded,
    context,
  }) => {
    const queries = queriesOf(context);
    const page = await open(`/requests?owner=${seeded.busy}`);
    await page.getByText(/loaded; there are more/).waitFor();
    const seen = new Set<string>();
    await waitFor("all pages", async () => {
      for (const text of await rows(page).evaluateAll((all) => all.map((row) => row.textContent ?? ""))) seen.add(text);
      await scroller(page).evaluate((element) => element.scrollBy(0, element.clientHeight / 2));
      return (await page.getByText("230 requests", { exact: true }).count()) > 0 && seen.size >= 230;
    });
    expect(seen.size).toBe(230);
    expect(queries).toHaveLength(3);
    for (const query of queries) expect(query).toMatch(/time >= \d{13}[\s\S]*LIMIT 100$/);
    expect(queries.join()).not.toContain("OFFSET");
  });

  test("request log opens the explanation of a request by keyboard, even if the request is days old", async ({
    open,
    seeded,
  }) => {
    expect(seeded.apiId).not.toBe("");
    const page = await open(`/requests?owner=${encodeURIComponent("old owner")}&range=7d`);
    await rows(page).first().waitFor();
    await tabTo(page, rows(page).first());
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Explain" }).waitFor();
    await page.getByRole("region", { name: "Stored data of the request" }).getByText("old owner").waitFor();
    await page.goBack();
    await rows(page).first().waitFor();
    await page.getByRole("button", { name: "Remove the filter Owner: old owner" }).waitFor();
  });
});

describe("following", () => {
  test("followed log adds new requests on top, but holds them back while the user reads", async ({
    dashboard,
    open,
    seeded,
  }) => {
    const page = await open("/requests");
    await rows(page).first().waitFor();
    await follow(page).click();
    await page.getByText(/Reads new requests every 5 s\. This takes 720 queries per hour of the [\d,]+ that/).waitFor();
    await storeUsage(dashboard.databaseUrl, [newVerification(seeded, "first new")]);
    await rows(page).first().getByText("first new").waitFor();

    const read = rows(page).nth(10);
    const top = await read.innerText();
    await scroller(page).evaluate((element) => element.scrollTo(0, 1500));
    // Only some rows around the visible ones exist.
    await expect.poll(() => read.innerText()).not.toBe(top);
    const before = [await read.innerText(), (await read.boundingBox())?.y];
    await storeUsage(dashboard.databaseUrl, [
      newVerification(seeded, "second new"),
      newVerification(seeded, "third new"),
    ]);
    const button = page.getByRole("button", { name: "2 new requests" });
    await button.waitFor();
    expect([await read.innerText(), (await read.boundingBox())?.y]).toEqual(before);
    await button.click();
    await rows(page).first().getByText("third new").waitFor();
    expect(await scroller(page).evaluate((element) => element.scrollTop)).toBe(0);
    await button.waitFor({ state: "detached" });

    const focused = rows(page).nth(2);
    await focused.focus();
    const text = await focused.innerText();
    await storeUsage(dashboard.databaseUrl, [newVerification(seeded, "fourth new")]);
    await page.getByRole("button", { name: "1 new request" }).waitFor();
    expect(await page.locator("[role=row]:focus").innerText()).toBe(text);
    await page.getByRole("button", { name: "1 new request" }).press("Enter");
    await rows(page).first().getByText("fourth new").waitFor();
    expect(await follow(page).evaluate((element) => element === document.activeElement)).toBe(true);
    for (const owner of ["first new", "second new", "third new", "fourth new"]) {
      expect(await rows(page).getByText(owner).count(), owner).toBe(1);
    }
  });

  test("followed log starts over if there are more new requests than one query returns", async ({
    dashboard,
    open,
    seeded,
  }) => {
    const page = await open("/requests?owner=flood");
    await page.getByText("No requests match these filters.").waitFor();
    await storeUsage(dashboard.databaseUrl, [newVerification(seeded, "flood")]);
    await follow(page).click();
    await page.getByText("1 request", { exact: true }).waitFor();
    await rows(page).first().focus();
    await storeUsage(
      dashboard.databaseUrl,
      Array.from({ length: 150 }, () => newVerification(seeded, "flood")),
    );
    await page.getByRole("button", { name: /^More than \d+ new requests$/ }).click();
    await page.getByText(/loaded; there are more/).waitFor();
    await rows(page).last().scrollIntoViewIfNeeded();
    await waitFor("all rows", async () => {
      await scroller(page).evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return (await page.getByText("151 requests", { exact: true }).count()) > 0;
    });
  });

  test("followed log sends no queries while the page is hidden", async ({ open, seeded, context }) => {
    expect(seeded.apiId).not.toBe("");
    const queries = queriesOf(context);
    let answered = 0;
    context.on("requestfinished", (request) => {
      if (/\/v2\/analytics\./.test(request.url())) answered++;
    });
    await context.clock.install();
    const page = await open("/requests");
    await rows(page).first().waitFor();
    await follow(page).click();
    await waitFor("a poll", () => queries.length >= 2);
    await context.clock.runFor(5000);
    await waitFor("a second poll", () => queries.length >= 3);
    const hide = (hidden: boolean) =>
      page.evaluate((value) => {
        Object.defineProperty(document, "hidden", { value, configurable: true });
        Object.defineProperty(document, "visibilityState", { value: value ? "hidden" : "visible", configurable: true });
        document.dispatchEvent(new Event("visibilitychange"));
      }, hidden);
    await hide(true);
    await waitFor("the last answer", () => answered === queries.length);
    const before = queries.length;
    await context.clock.runFor(5 * MINUTE_MS);
    expect(queries.length).toBe(before);
    await hide(false);
    await waitFor("a poll at once", () => queries.length > before);
  });

  test("followed log stops when the query quota is used up, and resumes on request", async ({
    open,
    seeded,
    context,
    faults,
    dashboard,
  }) => {
    faults.expect(/429/);
    const page = await open("/requests");
    await rows(page).first().waitFor();
    const allow = await rejecting(context, 429, "query_quota_exceeded", { "retry-after": "1800" });
    const queries = queriesOf(context);
    await follow(page).click();
    await page.getByText("Following has stopped.").waitFor();
    await page.getByText(/try again in 30 min/).waitFor();
    await page.getByText(/has used up its queries for this hour/).waitFor();
    expect(await rows(page).count()).toBeGreaterThan(5);
    await page.waitForTimeout(6000);
    expect(queries).toHaveLength(1);
    allow();
    await storeUsage(dashboard.databaseUrl, [newVerification(seeded, "after the quota")]);
    await page.getByRole("button", { name: "Try again" }).click();
    await rows(page).first().getByText("after the quota").waitFor();
    expect(await page.getByRole("alert").count()).toBe(0);
  });
});

describe("a log that cannot be read", () => {
  test("request log says that usage queries are off", async ({ dashboard, open, seeded, context }) => {
    const queries = queriesOf(context);
    await inDatabase(dashboard, "insert into analytics_settings (workspace_id, enabled) values ($1, false)", [
      seeded.workspaceId,
    ]);
    try {
      const page = await open("/requests");
      await page.getByText("Usage queries are off for this workspace.").waitFor();
      expect(queries).toEqual([]);
    } finally {
      await inDatabase(dashboard, "delete from analytics_settings where workspace_id = $1", [seeded.workspaceId]);
    }
  });

  test("request log says when the query quota resets", async ({ dashboard, open, seeded, faults }) => {
    faults.expect(/429/);
    await inDatabase(dashboard, "insert into analytics_settings (workspace_id, queries_per_hour) values ($1, 0)", [
      seeded.workspaceId,
    ]);
    try {
      const page = await open("/requests");
      await page.getByText(/used up its 0 analytics queries per hour/).waitFor();
      await page.getByText(/try again in \d+ (h|min|s)/).waitFor();
    } finally {
      await inDatabase(dashboard, "delete from analytics_settings where workspace_id = $1", [seeded.workspaceId]);
    }
  });

  test("request log names the permission that the user lacks", async ({ dashboard, open, seeded, faults }) => {
    expect(seeded.apiId).not.toBe("");
    faults.expect(/\b403\b/);
    const page = await open("/requests", { role: "viewer" });
    await rows(page).first().waitFor();
    const before = await inDatabase(dashboard, "select id, roles from sessions");
    await inDatabase(dashboard, "update sessions set roles = '[]'");
    try {
      await page.getByRole("button", { name: "Reload" }).click();
      await page.getByText("api.*.read_analytics").first().waitFor();
      await page
        .getByText(/An admin of the workspace can assign you a role/)
        .first()
        .waitFor();
    } finally {
      for (const { id, roles } of before) {
        await inDatabase(dashboard, "update sessions set roles = $2 where id = $1", [id, JSON.stringify(roles)]);
      }
    }
  });

  test("request log keeps its rows when the next page fails, and continues from there", async ({
    open,
    seeded,
    context,
    faults,
  }) => {
    faults.expect(/422/);
    const page = await open(`/requests?owner=${seeded.busy}`);
    await page.getByText(/loaded; there are more/).waitFor();
    const allow = await rejecting(context, 422, "query_execution_timeout");
    await scroller(page).evaluate((element) => element.scrollTo(0, element.scrollHeight));
    await page.getByText(/Query less data/).waitFor();
    expect(await rows(page).count()).toBeGreaterThan(10);
    allow();
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByRole("alert").waitFor({ state: "detached" });
    await waitFor("all rows", async () => {
      await scroller(page).evaluate((element) => element.scrollTo(0, element.scrollHeight));
      return (await page.getByText("230 requests", { exact: true }).count()) > 0;
    });
  });
});

describe("links to the log", () => {
  test("key page and usage page link to their requests", async ({ open, seeded }) => {
    const page = await open(`/keys/${seeded.keyId}`);
    await page.getByRole("link", { name: "All requests of this key" }).click();
    await page.getByRole("heading", { name: "Requests" }).waitFor();
    await page.getByRole("button", { name: `Remove the filter Key id: ${seeded.keyId}` }).waitFor();
    await page.goto(`${page.url().split("/requests")[0]}/usage?owner=old%20owner&range=30d`);
    await page.getByRole("article").getByRole("link", { name: "Requests" }).click();
    await page.getByText("1 request", { exact: true }).waitFor();
    await page.getByRole("button", { name: "7d", pressed: true }).waitFor();
  });

  test("identity links to the requests of its keys", async ({ dashboard, open, seeded }) => {
    const externalId = "linked";
    await storeUsage(dashboard.databaseUrl, [newVerification(seeded, externalId)]);
    const { identityId } = await dashboard.call("identities.createIdentity", { externalId });
    const page = await open(`/identities/${identityId}`);
    await page.locator("main").getByRole("link", { name: "Requests" }).click();
    await page.getByText("1 request", { exact: true }).waitFor();
    await page.getByRole("button", { name: `Remove the filter Owner: ${externalId}` }).waitFor();
  });
});

test("request log is accessible and fits every window size", async ({ open, seeded }) => {
  const page = await open(`/requests?owner=${seeded.busy}`);
  await rows(page).first().waitFor();
  await expectPresentable(page);
  await page.getByRole("tab", { name: "Rate limits" }).click();
  await rows(page).first().waitFor();
  await expectPresentable(page);
});
