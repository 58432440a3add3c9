import type { Browser, BrowserContext, Page } from "playwright-core";
import { newWatchedContext } from "./faults.ts";

type Report = (fault: string) => void;

/**
 * A page for the tests of a file, one after the other. Loading the app where it was loaded before takes a third of the CPU time of a new page
 * (0.19 against 0.55 s), because its scripts are compiled and cached. The page of one test therefore stays until the next test opens another
 * address in it.
 */
export class KeptPage {
  readonly #dashboard: { readonly browser: Browser; readonly url: string };
  #timeZone = "";
  #context: BrowserContext | undefined;
  #page: Page | undefined;
  #isTaken = false;
  /** Called with each fault of the pages of the context. */
  #report: Report = () => undefined;

  constructor(dashboard: { readonly browser: Browser; readonly url: string }) {
    this.#dashboard = dashboard;
  }

  async context(timeZone: string): Promise<BrowserContext> {
    if (this.#timeZone !== timeZone) await this.close();
    this.#timeZone = timeZone;
    this.#context ??= await newWatchedContext(this.#dashboard, timeZone, (fault) => this.#report(fault));
    return this.#context;
  }

  /** Returns the kept page, and new pages while the test has it. */
  async page(): Promise<Page> {
    const context = this.#context;
    if (context === undefined) throw new Error("a page comes after its context");
    if (this.#isTaken) return await context.newPage();
    this.#isTaken = true;
    this.#page ??= await context.newPage();
    return this.#page;
  }

  /** Opens an address in a page of a test. In the kept page, faults are reported to `report` from then on. */
  async goto(page: Page, address: string, report: Report): Promise<void> {
    if (page !== this.#page) return void (await page.goto(address));
    // The page of the last test may cause faults and store values until the browser leaves it.
    page.once("framenavigated", () => {
      this.#report = report;
    });
    const clearing = await page.addInitScript(() => {
      localStorage.clear();
      sessionStorage.clear();
    });
    await page.goto(address);
    await clearing.dispose();
  }

  /** Removes the routes, the cookies and the other pages of a test. */
  async reset(): Promise<void> {
    this.#isTaken = false;
    const page = this.#page;
    if (this.#context === undefined || page === undefined || page.isClosed()) return await this.close();
    try {
      for (const other of this.#context.pages()) if (other !== page) await other.close();
      await page.unrouteAll({ behavior: "ignoreErrors" });
      page.removeAllListeners("dialog");
      await page.emulateMedia({ media: null });
      await this.#context.clearCookies();
    } catch {
      // For example, the page has crashed.
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
