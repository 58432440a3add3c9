import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { test as base, expect } from "vitest";
import { makeSignInLink, signInAddress } from "../../api-server/domain/administration/sign-in-links.ts";
import { withWorkspace } from "../../cli/administration.ts";
import { parseOptions } from "../../cli/command.ts";
import { type DevOptions, dev, startDev } from "../../cli/commands/dev.ts";
import { Closers, openLog } from "../../cli/process.ts";
import type { Data, Input, Procedure } from "../../core/api/procedures.ts";
import type { PersonRole } from "../../core/permissions/person-roles.ts";
import { ensureDashboard } from "../../scripts/build-dashboard.ts";
import { startChromium } from "../harness/chromium.ts";
import { createTestDatabase } from "../harness/postgres.ts";
import { Faults, newWatchedContext } from "./faults.ts";
import { KeptPage } from "./kept-page.ts";

/*
 * The dashboard as a person has it: a real `postern dev` with the quickstart's manifests, on a database of its own, and a real browser. A
 * file has one of both for all of its tests, and a page that is reset after each. A test that asks for `context` has one of its own.
 *
 *   const test = dashboardTest();
 *   test("…", async ({ dashboard, open, faults }) => {
 *     const page = await open("/identities");
 *   });
 */

/** Long for a person, and short enough that a test which waits in vain says so before its own end. */
const TIMEOUT_MS = 15_000;
const SHOWN_CHARS_MAX = 3000;
const ROOT = resolve(import.meta.dirname, "../..");

export interface Dashboard {
  /** `http://127.0.0.1:PORT` */
  readonly url: string;
  readonly sidecarUrl: string | null;
  /** With every permission, in the workspace `default`. */
  readonly rootKey: string;
  readonly databaseUrl: string;
  /** Where its manifests are: a test may edit them. */
  readonly manifests: string;
  readonly browser: Browser;
  /** The cookies of its sessions, by role and workspace. */
  readonly sessions: Map<string, Cookies>;
  /** Calls the API with the root key, to prepare and to look at what became of it. Throws when it is refused. */
  call<P extends Procedure>(procedure: P, body: Input<P>): Promise<Data<P>>;
}

export interface DashboardSetting {
  /** A free one when left out. */
  readonly apiPort?: number;
  /** More arguments for `postern dev`, such as `["--api-v1", "off"]`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  /** The folder of manifests; the quickstart's when left out. */
  readonly manifests?: string;
}

export interface OpenSetting {
  /** `admin` when left out. */
  readonly role?: PersonRole;
  /** Where the person has that role, by name. When it is left out, an admin has it in all workspaces, others in `default`. */
  readonly roleIn?: string;
  readonly width?: number;
  readonly height?: number;
  readonly colorScheme?: "light" | "dark";
}

export async function startDashboard(
  setting: DashboardSetting & { browser?: Browser } = {},
): Promise<Dashboard & { close(): Promise<void> }> {
  const folder = mkdtempSync(join(tmpdir(), "postern-dashboard-test-"));
  const manifests = join(folder, "manifests");
  const source = setting.manifests ?? join(ROOT, "examples/quickstart");
  cpSync(source, manifests, { recursive: true, filter: (path) => !path.endsWith(".ts") });
  const [database, browser] = await Promise.all([
    createTestDatabase(),
    setting.browser ?? startChromium(),
    ensureDashboard(),
  ]);
  const ports = ["--api-port", String(setting.apiPort ?? 0), "--sidecar-port", "0"];
  const args = ["--database-url", database.url, "--data-dir", join(folder, "data"), "--manifests", manifests, ...ports];
  const env = { POSTERN_LOG_LEVEL: "fatal", ...setting.env };
  const closers = new Closers();
  const log = openLog("dev", env);
  const ready = await startDev({
    options: parseOptions(dev, [...args, ...(setting.args ?? [])], env) as unknown as DevOptions,
    io: { env, out: () => undefined, note: () => undefined },
    log,
    closers,
  }).catch(async (error) => {
    // The worker goes on with other files.
    await closers.close(log);
    throw error;
  });
  return {
    url: ready.apiUrl,
    sidecarUrl: ready.sidecarUrl,
    rootKey: ready.rootKey,
    databaseUrl: database.url,
    manifests,
    browser,
    sessions: new Map(),
    async call(procedure, body) {
      const response = await fetch(`${ready.apiUrl}/v2/${procedure}`, {
        method: "POST",
        headers: { authorization: `Bearer ${ready.rootKey}`, "content-type": "application/json" },
        body: JSON.stringify(body),
      });
      const answer = (await response.json()) as { data: never; error?: unknown };
      if (!response.ok) throw new Error(`${procedure} answered ${response.status}: ${JSON.stringify(answer.error)}`);
      return answer.data;
    },
    async close() {
      if (setting.browser === undefined) await browser.close();
      await closers.close(log);
      await database.drop();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

let running: Promise<Browser> | undefined;

/** Returns the browser of this worker. A fixture alone would start one per file, because each file extends `test` anew. */
async function browserOfWorker(): Promise<Browser> {
  if (!(await running)?.isConnected()) running = startChromium();
  return await (running as Promise<Browser>);
}

/** A test with a dashboard that its file shares. It fails when one of its pages has a fault that it did not expect. */
export function dashboardTest(setting: DashboardSetting = {}) {
  return base.extend<{
    browser: Browser;
    dashboard: Dashboard;
    /** Time zone of the browser; UTC, so that tests pass anywhere. A test of another one says `test.override("timeZone", …)`. */
    timeZone: string;
    faults: Faults;
    /** A context of the test's own, in which `open` then opens its pages: with routes, a cache or a clock that no other test has. */
    context: BrowserContext;
    /** Contains the test's `context` if the test requests it. */
    own: { context?: BrowserContext };
    /** Where `open` opens the pages of all other tests. */
    kept: KeptPage;
    /** Opens an address below /dashboard, signed in, and waits until the page shows its title. */
    open: (path: string, how?: OpenSetting) => Promise<Page>;
  }>({
    browser: [
      // biome-ignore lint/correctness/noEmptyPattern: the test runner reads from the pattern what a fixture needs.
      async ({}, use) => {
        const browser = await browserOfWorker();
        await use(browser);
        await browser.close();
      },
      // The browser closes when the worker ends, not after each file.
      { scope: "worker" },
    ],
    dashboard: [
      async ({ browser }, use) => {
        const dashboard = await startDashboard({ ...setting, browser });
        try {
          await use(dashboard);
        } finally {
          await dashboard.close();
        }
      },
      { scope: "file" },
    ],
    timeZone: "UTC",
    // biome-ignore lint/correctness/noEmptyPattern: the test runner reads from the pattern what a fixture needs.
    faults: async ({}, use) => {
      const faults = new Faults();
      await use(faults);
      expect(faults.list()).toEqual([]);
    },
    // biome-ignore lint/correctness/noEmptyPattern: as above.
    own: async ({}, use) => use({}),
    context: async ({ dashboard, faults, own, task, timeZone }, use) => {
      const context = await newWatchedContext(dashboard, timeZone, faults.report);
      own.context = context;
      await use(context);
      faults.close();
      if (hasFailed(task)) await showPages(context);
      await context.close();
    },
    kept: [
      async ({ dashboard }, use) => {
        const kept = new KeptPage(dashboard);
        await use(kept);
        await kept.close();
      },
      { scope: "file" },
    ],
    open: async ({ dashboard, faults, kept, own, task, timeZone }, use) => {
      await use(async (path, { role = "admin", roleIn, width = 1280, height = 800, colorScheme = "light" } = {}) => {
        const context = own.context ?? (await kept.context(timeZone));
        await signIn(dashboard, context, { role, where: roleIn ?? (role === "admin" ? "*" : "default") });
        const page = own.context === undefined ? await kept.page() : await context.newPage();
        page.setDefaultTimeout(TIMEOUT_MS);
        await page.setViewportSize({ width, height });
        await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
        await kept.goto(page, `${dashboard.url}/dashboard${path}`, faults.report);
        await page.locator("main h1").first().waitFor();
        return page;
      });
      if (own.context !== undefined) return;
      faults.close();
      if (hasFailed(task)) {
        await showPages(await kept.context(timeZone));
        await kept.close();
      } else await kept.reset();
    },
  });
}

const hasFailed = ({ result }: { readonly result?: { readonly errors?: readonly unknown[] } }): boolean =>
  (result?.errors?.length ?? 0) > 0;

/** What the pages of a failed test show, for who reads its output. */
async function showPages(context: BrowserContext): Promise<void> {
  for (const page of context.pages()) {
    const text = await page.locator("body").innerText({ timeout: 2000 }).catch(String);
    console.error(`${page.url()} showed:\n${text.slice(0, SHOWN_CHARS_MAX)}`);
  }
}

interface Assigned {
  readonly role: PersonRole;
  /** `*` is all workspaces. */
  readonly where: string;
}

/** Signs the context in, unless it is. */
async function signIn(dashboard: Dashboard, context: BrowserContext, assigned: Assigned): Promise<void> {
  if ((await context.cookies()).length > 0) return;
  const name = `${assigned.role} of ${assigned.where}`;
  const cookies = dashboard.sessions.get(name) ?? (await newSession(dashboard, assigned));
  dashboard.sessions.set(name, cookies);
  await context.addCookies(cookies);
}

type Cookies = Awaited<ReturnType<BrowserContext["cookies"]>>;

/** Signs in with a link, as the sign-in page does. */
async function newSession(dashboard: Dashboard, { role, where }: Assigned): Promise<Cookies> {
  const { url } = dashboard;
  const link = await linkOf(dashboard, { name: `Ada (${role})`, role, where });
  const response = await fetch(`${url}/dashboard/auth/link`, {
    method: "POST",
    headers: { origin: url, "postern-dashboard": "1", "content-type": "application/json" },
    body: JSON.stringify({ token: new URL(link).hash.slice("#token=".length) }),
  });
  const [cookie = ""] = response.headers.getSetCookie();
  const [, name, value] = /^([^=]+)=([^;]+);/.exec(cookie) ?? [];
  if (name === undefined || value === undefined) throw new Error(`sign-in answered ${response.status}`);
  return [
    { name, value, domain: "127.0.0.1", path: "/", expires: -1, httpOnly: true, secure: true, sameSite: "Strict" },
  ];
}

/** Returns the address that `postern dashboard link` prints. */
export async function linkOf(
  { databaseUrl, url }: Dashboard,
  { name = "Ada", role = "admin", where = "*" }: Partial<Assigned> & { readonly name?: string } = {},
): Promise<string> {
  const workspace = where === "*" ? undefined : where;
  const options = { "database-url": databaseUrl, "database-url-file": undefined, "data-dir": "", workspace };
  return await withWorkspace(options, async (administrator, { id }) => {
    const workspaceId = workspace === undefined ? undefined : id;
    const { token } = await makeSignInLink(administrator, { name, role, workspaceId, logWorkspaceId: id });
    return signInAddress(url, token);
  });
}
