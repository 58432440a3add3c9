import type { Browser, BrowserContext, Page } from "playwright-core";
import { newWatchedContext } from "./faults.ts";

/**
 * A page for the tests of a file, one after the other. Loading the app where it was loaded before takes a third of the CPU time of a new page
 * (0.19 against 0.55 s), because its scripts are compiled and cached.
 */
export class KeptPage {
  readonly #dashboard: { readonly browser: Browser; readonly url: string };
  #timeZone = "";
  #context: BrowserContext | undefined;
  #page: Page | undefined;
  #isTaken = false;
  #report: (fault: string) => void = () => undefined;

  constructor(dashboard: { readonly browser: Browser; readonly url: string }) {
    this.#dashboard = dashboard;
  }

  /** Returns the context for one test. `report` is called with each fault of its pages. */
  async context(timeZone: string, report: (fault: string) => void): Promise<BrowserContext> {
    if (this.#timeZone !== timeZone) await this.close();
    this.#timeZone = timeZone;
    this.#report = report;
    this.#context ??= await newWatchedContext(this.#dashboard, timeZone, (fault) => this.#report(fault));
    return this.#context;
  }

  /** The kept page, and new ones while the test has it. */
  async page(): Promise<Page> {
    const context = this.#context;
    if (context === undefined) throw new Error("a page comes after its context");
    if (this.#isTaken) return await context.newPage();
    this.#isTaken = true;
    this.#page ??= await context.newPage();
    return this.#page;
  }

  /** Leaves nothing of a test: no route, cookie or stored value, and no other page. */
  async reset(): Promise<void> {
    this.#isTaken = false;
    const page = this.#page;
    if (this.#context === undefined || page === undefined || page.isClosed()) return await this.close();
    try {
      for (const other of this.#context.pages()) if (other !== page) await other.close();
      await page.unrouteAll({ behavior: "ignoreErrors" });
      page.removeAllListeners("dialog");
      // A page of the same origin without the app.
      await page.goto(`${this.#dashboard.url}/livez`);
      await page.evaluate(() => {
        localStorage.clear();
        sessionStorage.clear();
      });
      await page.emulateMedia({ media: null });
      await this.#context.clearCookies();
    } catch {
      // Such as a page that hangs, or a server that the test stopped.
      await this.close();
    }
  }

  async close(): Promise<void> {
    const context = this.#context;
    this.#context = undefined;
    this.#page = undefined;
    this.#isTaken = false;
    await context?.close();
  }
}
