import { randomBytes } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Page } from "playwright-core";
import { describe, expect } from "vitest";
import { fullText } from "../../dashboard/components/time.ts";
import { windowOf } from "../../dashboard/usage/buckets.ts";
import type { VerificationEvent } from "../../edge/events/contract.ts";
import { createPool } from "../../postgres/pool.ts";
import { aRatelimitEvent, aVerificationEvent } from "../builders/usage-event.ts";
import { waitFor } from "../harness/wait.ts";
import { expectNoSideways, expectPresentable } from "./accessible.ts";
import { type Dashboard, dashboardTest } from "./harness.ts";
import { storeUsage } from "./usage-events.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 3_600_000;
const HOSTILE = `<img src=x onerror="document.title='owned'">'"); DROP 名前 🎉`;
const OUTCOMES = ["VALID", "VALID", "VALID", "RATE_LIMITED", "EXPIRED", "USAGE_EXCEEDED"];

interface Seeded {
  readonly workspaceId: string;
  readonly apis: readonly { apiId: string; keySpaceId: string }[];
  readonly keys: readonly { keyId: string; name: string; api: number }[];
  readonly events: readonly VerificationEvent[];
}

/** Two APIs and three keys with usage of eight days, limits that refuse, and another workspace with much more of everything. */
async function seed({ call, databaseUrl }: Dashboard): Promise<Seeded> {
  const { id: workspaceId } = await call("workspaces.getWorkspace", {});
  const apis: { apiId: string; keySpaceId: string }[] = [];
  for (const name of ["shop", HOSTILE]) {
    const { apiId } = await call("apis.createApi", { name });
    const [named] = await call("admin.resolveNames", { kind: "api", ids: [apiId] });
    apis.push({ apiId, keySpaceId: named?.keySpaceId ?? "" });
  }
  const keys: { keyId: string; name: string; api: number }[] = [];
  for (const [place, name] of ["billing", HOSTILE, "nightly"].entries()) {
    const api = place % 2;
    const { keyId } = await call("keys.createKey", { apiId: apis[api]?.apiId ?? "", name });
    keys.push({ keyId, name, api });
  }
  const { namespaceId } = await call("ratelimit.createNamespace", { name: "sms" });
  const nowMs = Date.now();
  const unique = randomBytes(4).toString("hex");
  const events = Array.from({ length: 600 }, (_, n) => {
    const key = keys[n % keys.length] as (typeof keys)[number];
    return aVerificationEvent({
      id: `ev_${unique}_${n}`,
      workspaceId,
      timeMs: nowMs - 2 * MINUTE_MS - (n % 2 === 0 ? n * MINUTE_MS * 2 : n * 18 * MINUTE_MS),
      keyId: key.keyId,
      keySpaceId: apis[key.api]?.keySpaceId ?? "",
      externalId: n % 4 === 0 ? undefined : n % 5 === 0 ? HOSTILE : "customer_7",
      outcome: OUTCOMES[n % OUTCOMES.length] ?? "",
      spentCredits: n % 3,
      latencyMs: (n % 80) / 8,
    });
  });
  const others = Array.from({ length: 2_000 }, (_, n) =>
    aVerificationEvent({
      id: `ev_${unique}_o${n}`,
      workspaceId: "ws_other",
      timeMs: nowMs - 3 * MINUTE_MS,
      keyId: "key_other",
    }),
  );
  const limits = Array.from({ length: 60 }, (_, n) =>
    aRatelimitEvent({
      id: `ev_${unique}_l${n}`,
      workspaceId,
      namespaceId,
      timeMs: nowMs - n * MINUTE_MS,
      identifier: n % 3 === 0 ? HOSTILE : "client_1",
      passed: n % 4 !== 0,
    }),
  );
  await storeUsage(databaseUrl, [...events, ...others, ...limits]);
  return { workspaceId, apis, keys, events };
}

const test = dashboardTest().extend<{ seeded: Seeded }>({
  seeded: [async ({ dashboard }, use) => use(await seed(dashboard)), { scope: "file" }],
});

/** By outcome, as the legend has them. */
async function legendOf(page: Page, label = "Verifications by outcome"): Promise<Record<string, number>> {
  const plot = page.getByRole("figure", { name: label });
  const entries = await plot
    .locator("li[data-series]")
    .evaluateAll((items) =>
      items.map((item) => [item.getAttribute("data-series"), item.querySelector("strong")?.textContent] as const),
    );
  return Object.fromEntries(entries.map(([name, text]) => [name, Number(text?.replaceAll(",", ""))]));
}

function countsOf(events: readonly VerificationEvent[]): Record<string, number> {
  return Object.fromEntries(
    [...Map.groupBy(events, ({ outcome }) => outcome)].map(([outcome, of]) => [outcome, of.length]),
  );
}

const within = ({ events }: Seeded, range: "1h" | "6h" | "24h" | "7d" | "30d"): VerificationEvent[] => {
  const { fromMs, toMs } = windowOf(range, Date.now());
  return events.filter(({ timeMs }) => timeMs >= fromMs && timeMs < toMs);
};

const panel = (page: Page, title: string) => page.getByRole("region", { name: title, exact: true });
const top = async (page: Page, title: string): Promise<(string | null)[][]> => {
  const rows = panel(page, title).locator("tbody tr");
  await rows.first().waitFor();
  return rows.evaluateAll((all) => all.map((row) => [...row.querySelectorAll("td")].map((cell) => cell.textContent)));
};

describe("the charts", () => {
  test.for(["1h", "6h", "24h", "7d", "30d"] as const)(
    "usage charts show the recorded data of the workspace for %s",
    async (range, { seeded, open }) => {
      const page = await open("/usage");
      await page.getByRole("button", { name: range, exact: true }).click();
      await waitFor("the counts of the range", async () => {
        const [shown, expected] = [await legendOf(page), countsOf(within(seeded, range))];
        expect(shown).toEqual(expected);
        return true;
      });
      const search = new URL(page.url()).searchParams.get("range");
      expect(search).toBe(range === "24h" ? null : range);
    },
  );

  test("usage charts draw outcomes in their colors", async ({ seeded, open }) => {
    expect(seeded.events.length).toBeGreaterThan(0);
    const page = await open("/usage?range=7d");
    const canvas = page.getByRole("figure", { name: "Verifications by outcome" }).locator("canvas");
    await canvas.waitFor();
    await waitFor("something drawn", async () =>
      canvas.evaluate((element) => {
        const { data } = (element as HTMLCanvasElement)
          .getContext("2d")
          ?.getImageData(0, 0, (element as HTMLCanvasElement).width, (element as HTMLCanvasElement).height) ?? {
          data: [],
        };
        let colored = 0;
        for (let at = 0; at < data.length; at += 4) {
          const [r = 0, g = 0, b = 0, a = 0] = data.slice(at, at + 4);
          if (a > 100 && Math.max(r, g, b) - Math.min(r, g, b) > 60) colored += 1;
        }
        return colored > 500;
      }),
    );
  });

  test("usage charts list the most used keys and owners with denials and credits", async ({ seeded, open }) => {
    const page = await open("/usage?range=7d");
    const of = within(seeded, "7d");
    const expected = (groups: Map<string, VerificationEvent[]>) =>
      [...groups]
        .toSorted(([a, x], [b, y]) => y.length - x.length || (a < b ? -1 : 1))
        .map(([name, events]) => [
          name,
          events.length.toLocaleString("en"),
          events.filter(({ outcome }) => outcome !== "VALID").length.toLocaleString("en"),
          events.reduce((sum, { spentCredits }) => sum + spentCredits, 0).toLocaleString("en"),
        ]);
    const nameOf = (keyId: string) => seeded.keys.find((key) => key.keyId === keyId)?.name ?? "";
    await page.getByRole("link", { name: "billing" }).waitFor();
    expect(new Set((await top(page, "Top keys")).map(String))).toEqual(
      new Set(expected(Map.groupBy(of, ({ keyId }) => nameOf(keyId))).map(String)),
    );
    const owned = of.filter(({ externalId }) => externalId !== undefined);
    expect(await top(page, "Top owners")).toEqual(expected(Map.groupBy(owned, ({ externalId }) => externalId ?? "")));
    expect(await page.title()).toBe("Usage · Postern");
  });

  test("usage charts list only limits with denials", async ({ open, seeded }) => {
    expect(seeded.keys).toHaveLength(3);
    const page = await open("/usage?range=6h");
    await panel(page, "Limits with the most rejections").getByText("sms").first().waitFor();
    const rows = await top(page, "Limits with the most rejections");
    expect(rows.map(([name, refused, checked]) => [name, refused, checked])).toEqual([
      ["sms › client_1", "10", "40"],
      [`sms › ${HOSTILE}`, "5", "20"],
    ]);
  });

  test("usage charts show latencies for a day, and explain why none are shown for a week", async ({ open, seeded }) => {
    expect(within(seeded, "6h").length).toBeGreaterThan(0);
    const page = await open("/usage?range=6h");
    await page.getByRole("figure", { name: "Latency of verification" }).waitFor();
    await page.getByRole("button", { name: "7d", exact: true }).click();
    await page.getByText("periods of up to 24 hours").waitFor();
  });
});

describe("filters", () => {
  test("usage filters narrow all charts and are stored in the URL", async ({ seeded, open }) => {
    const page = await open("/usage?range=7d");
    const expectCounts = (fits: (event: VerificationEvent) => boolean) =>
      waitFor("the counts", async () => {
        expect(await legendOf(page)).toEqual(countsOf(within(seeded, "7d").filter(fits)));
        return true;
      });
    await expectCounts(() => true);
    const [, second] = seeded.apis;
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("API", { exact: true }).selectOption(second?.apiId ?? "");
    await expectCounts(({ keySpaceId }) => keySpaceId === second?.keySpaceId);
    await page.getByRole("button", { name: "Done" }).click();
    await panel(page, "Top owners").getByRole("link", { name: HOSTILE }).click();
    await expectCounts((event) => event.keySpaceId === second?.keySpaceId && event.externalId === HOSTILE);
    await page.getByRole("button", { name: "Filters" }).click();
    await page.getByLabel("Outcome", { exact: true }).selectOption("EXPIRED");
    await expectCounts(
      (event) => event.keySpaceId === second?.keySpaceId && event.externalId === HOSTILE && event.outcome === "EXPIRED",
    );
    const address = new URL(page.url()).searchParams;
    expect([address.get("api"), address.get("owner"), address.get("outcome")]).toEqual([
      second?.apiId,
      HOSTILE,
      "EXPIRED",
    ]);
    await page.reload();
    await expectCounts(
      (event) => event.keySpaceId === second?.keySpaceId && event.externalId === HOSTILE && event.outcome === "EXPIRED",
    );
    await page.goBack();
    await expectCounts((event) => event.keySpaceId === second?.keySpaceId && event.externalId === HOSTILE);
  });

  test("usage of a missing API or key is empty", async ({ open, seeded }) => {
    expect(seeded.events.length).toBeGreaterThan(0);
    const page = await open("/usage?range=7d&api=api_missing00000");
    await page.getByText("No verifications in this period.").first().waitFor();
  });
});

describe("zoom", () => {
  test("usage chart zooms by dragging", async ({ open, seeded }) => {
    expect(seeded.events.length).toBeGreaterThan(0);
    const page = await open("/usage?range=7d");
    const over = page.getByRole("figure", { name: "Verifications by outcome" }).locator(".u-over");
    await over.waitFor();
    const box = await over.boundingBox();
    if (box === null) throw new Error("the plot has no size");
    await page.mouse.move(box.x + box.width * 0.5, box.y + box.height / 2);
    await page.mouse.down();
    await page.mouse.move(box.x + box.width * 0.8, box.y + box.height / 2, { steps: 5 });
    await page.mouse.up();
    await page.waitForURL(/from=/);
    const { searchParams } = new URL(page.url());
    const span = Number(searchParams.get("to")) - Number(searchParams.get("from"));
    expect(span / (168 * HOUR_MS)).toBeCloseTo(0.3, 1);
    await page.getByRole("button", { name: "Zoom out" }).click();
    await page.waitForFunction(
      (from) => new URLSearchParams(location.search).get("from") !== from,
      searchParams.get("from"),
    );
  });

  test("usage chart zooms by keyboard and announces each step", async ({ open, seeded }) => {
    const page = await open("/usage?range=24h");
    await waitFor("the counts", async () => Object.keys(await legendOf(page)).length > 0);
    const plot = page.getByRole("group", { name: "Verifications by outcome" });
    await plot.focus();
    await page.keyboard.press("End");
    await page.keyboard.press("ArrowLeft");
    const { fromMs } = windowOf("24h", Date.now());
    const pointed = fromMs + 22 * HOUR_MS;
    await page.getByText(fullText(pointed, "UTC")).first().waitFor();
    const counts = countsOf(seeded.events.filter(({ timeMs }) => timeMs >= pointed && timeMs < pointed + HOUR_MS));
    const shown = await legendOf(page);
    for (const outcome of Object.keys(shown)) expect(shown[outcome], outcome).toBe(counts[outcome] ?? 0);
    for (let step = 0; step < 3; step++) await page.keyboard.press("Shift+ArrowLeft");
    await page.keyboard.press("Enter");
    await page.waitForURL(/from=/);
    const { searchParams } = new URL(page.url());
    expect([Number(searchParams.get("from")), Number(searchParams.get("to"))]).toEqual([
      pointed - 3 * HOUR_MS,
      pointed + HOUR_MS,
    ]);
    await plot.focus();
    await page.keyboard.press("Tab");
    expect(await plot.evaluate((element) => element === document.activeElement)).toBe(false);
  });

  test("usage chart has a table with all values", async ({ open, seeded }) => {
    const page = await open("/usage?range=30d");
    const plot = page.getByRole("figure", { name: "Verifications by outcome" });
    await plot.getByText("As a table").click();
    const table = plot.getByRole("table");
    await table.waitFor();
    expect(await table.locator("tbody tr").count()).toBe(30);
    const rollbacks = await table.locator("thead th").allTextContents();
    const valid = rollbacks.indexOf("valid");
    const column = await table
      .locator("tbody tr")
      .evaluateAll(
        (rows, place) => rows.map((row) => Number(row.children[place]?.textContent?.replaceAll(",", ""))),
        valid,
      );
    expect(column.reduce((sum, n) => sum + n, 0)).toBe(countsOf(within(seeded, "30d")).VALID);
  });
});

describe("the query of a chart", () => {
  test("usage chart shows its query and opens it in the editor", async ({ open, seeded }) => {
    const page = await open(`/usage?range=7d&key=${seeded.keys[0]?.keyId}`);
    const shown = panel(page, "Top keys");
    await shown.getByText("SQL", { exact: false }).first().click();
    const sql = await shown.locator("pre").textContent();
    expect(sql).toContain(`AND key_id = '${seeded.keys[0]?.keyId}'`);
    await shown.getByRole("link", { name: "Open in the editor" }).click();
    await page.getByRole("heading", { name: "Usage with SQL" }).waitFor();
    expect(decodeURIComponent(new URL(page.url()).hash)).toContain(sql);
  });
});

describe("a chart that cannot be shown", () => {
  const withSettings = async (dashboard: Dashboard, workspaceId: string, set: string, work: () => Promise<void>) => {
    const db = createPool(dashboard.databaseUrl, { connectionsMax: 1 });
    try {
      const [column = "", value = ""] = set.split("=");
      await db.query(
        `insert into analytics_settings (workspace_id, ${column}) values ($1, ${value})
         on conflict (workspace_id) do update set ${column} = excluded.${column}`,
        [workspaceId],
      );
      await work();
    } finally {
      await db.query("delete from analytics_settings where workspace_id = $1", [workspaceId]);
      await db.end();
    }
  };

  test("usage charts give advice while usage is disabled", async ({ dashboard, open, seeded }) => {
    await withSettings(dashboard, seeded.workspaceId, "enabled=false", async () => {
      const page = await open("/usage");
      await page.getByText("Usage queries are off for this workspace.").waitFor();
      await page.getByText("postern workspace update --analytics on").waitFor();
    });
  });

  test("usage charts show one message that tells when the hourly query quota resets", async ({
    dashboard,
    open,
    seeded,
    faults,
  }) => {
    faults.expect(/429/);
    await withSettings(dashboard, seeded.workspaceId, "queries_per_hour=0", async () => {
      const page = await open("/usage");
      await page.getByText(/used up its 0 analytics queries per hour/).waitFor();
      await page.getByText(/try again in \d+ (h|min|s)/).waitFor();
      expect(await page.getByRole("alert").count()).toBe(1);
    });
  });

  test.for([
    { status: 422, kind: "query_execution_timeout", says: "Query less data: a shorter period" },
    { status: 403, kind: "forbidden", says: "An admin of the workspace can assign you a role" },
    { status: 503, kind: "analytics_connection_failed", says: "events wait until the analytics store is available" },
  ])("usage charts give advice for $kind", async ({ status, kind, says }, { open, context, faults, seeded }) => {
    expect(seeded.events.length).toBeGreaterThan(0);
    faults.expect(new RegExp(String(status)));
    await context.route(/v2\/(analytics\.|admin\.getLatencies)/, (route) =>
      route.fulfill({
        status,
        json: { meta: { requestId: "req_x" }, error: { type: `/errors/${kind}`, detail: "It was refused." } },
      }),
    );
    const page = await open("/usage");
    await page.getByText(says).first().waitFor();
  });
});

test("usage page runs at most two queries concurrently", async ({ open, seeded, context }) => {
  expect(seeded.events.length).toBeGreaterThan(0);
  let [running, most, asked] = [0, 0, 0];
  await context.route(/v2\/analytics\./, async (route) => {
    asked++;
    running++;
    most = Math.max(most, running);
    await sleep(300);
    running--;
    await route.continue();
  });
  const page = await open("/usage");
  await page.getByRole("heading", { name: "Top owners" }).waitFor();
  await expect.poll(() => [asked, running]).toEqual([4, 0]);
  expect(most).toBe(2);
});

test("usage page shows the data age and pauses polling in the background", async ({ open, seeded, context }) => {
  expect(seeded.events.length).toBeGreaterThan(0);
  let asked = 0;
  context.on("request", (request) => {
    if (request.url().endsWith("/v2/analytics.getVerifications")) asked += 1;
  });
  await context.clock.install();
  const page = await open("/usage?range=1h");
  await page
    .getByText(/Counted until \w+ \d+, \d{4},/)
    .first()
    .waitFor();
  await waitFor("the first answers", () => asked >= 3);
  const hide = (hidden: boolean) =>
    page.evaluate((value) => {
      Object.defineProperty(document, "hidden", { value, configurable: true });
      document.dispatchEvent(new Event("visibilitychange"));
    }, hidden);
  await hide(true);
  const before = asked;
  await context.clock.fastForward(5 * MINUTE_MS);
  expect(asked).toBe(before);
  await hide(false);
  await waitFor("another round", () => asked > before);
  await page.getByRole("button", { name: /^Refreshes every/ }).click();
  await page.getByText("Refresh is paused").waitFor();
});

describe("the page", () => {
  test("usage page is accessible and fits every window size", async ({ open, seeded }) => {
    expect(seeded.keys).toHaveLength(3);
    const page = await open("/usage?range=7d");
    await page.getByRole("link", { name: "billing" }).waitFor();
    await page.locator("canvas").first().waitFor();
    await expectPresentable(page);
  });

  test("usage page shows a viewer the same charts", async ({ open, seeded }) => {
    const page = await open("/usage?range=7d", { role: "viewer" });
    await waitFor("the counts", async () => {
      expect(await legendOf(page)).toEqual(countsOf(within(seeded, "7d")));
      return true;
    });
  });
});

describe("on paper", () => {
  test.override("timeZone", "Asia/Kathmandu");

  test("printed usage report is complete, in the light theme and local time, and has no buttons", async ({
    open,
    seeded,
  }) => {
    expect(seeded.events.length).toBeGreaterThan(0);
    const page = await open("/usage?range=24h&outcome=EXPIRED", { colorScheme: "dark" });
    await page.getByRole("button", { name: "Remove the filter Outcome: expired" }).waitFor();
    await page.locator(".plot-canvas canvas").first().waitFor();
    await page.evaluate(() =>
      Object.assign(globalThis, { print: () => document.body.setAttribute("data-printed", "") }),
    );
    await page.getByRole("button", { name: "Print" }).click();
    expect(await page.locator("body").getAttribute("data-printed")).toBe("");
    await page
      .getByText(/times are in Asia\/Kath?mandu/)
      .first()
      .waitFor();

    await page.emulateMedia({ media: "print", colorScheme: "dark" });
    // As wide as A4 between its margins.
    await page.setViewportSize({ width: 688, height: 1000 });
    const head = page.locator(".print-head");
    await head.getByText(/^Workspace default$/).waitFor();
    await head.getByText(/\d\d:45 to \w+ \d+, \d{4}, \d\d:45 \(Asia\/Kath?mandu\), by the hour$/).waitFor();
    await head.getByText("Only outcome expired").waitFor();
    await head.getByText(/^Report of .* GMT\+5:45$/).waitFor();
    for (const away of ["button:visible", "nav:visible", "header.top:visible", "summary:visible"]) {
      expect(await page.locator(away).count(), away).toBe(0);
    }
    await expectNoSideways(page);
    const paper = await page.evaluate(() => getComputedStyle(document.documentElement).backgroundColor);
    expect(paper).toBe("rgb(255, 255, 255)");
    await expect.poll(() => darkest(page)).toBeLessThan(120);
    const pdf = await page.pdf({ format: "A4" });
    expect(pdf.toString("latin1")).toMatch(/\/Count [1-4]\b/);
    await page.emulateMedia({ media: "screen", colorScheme: "dark" });
    await page.getByRole("button", { name: "Print" }).waitFor();
  });
});

/** The lowest brightness of opaque pixels beside the first chart, where the labels of its axis are: dark on paper, light in the dark theme. */
const darkest = (page: Page): Promise<number> =>
  page
    .locator(".plot-canvas canvas")
    .first()
    .evaluate((element) => {
      const canvas = element as HTMLCanvasElement;
      const { data = [] } = canvas.getContext("2d")?.getImageData(0, 0, 50, canvas.height) ?? {};
      let lowest = 255;
      for (let at = 0; at < data.length; at += 4) {
        if (data[at + 3] === 255) lowest = Math.min(lowest, data[at] ?? 255);
      }
      return lowest;
    });
