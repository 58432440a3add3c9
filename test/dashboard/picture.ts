import { mkdirSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Page } from "playwright-core";

const FOLDER = resolve(import.meta.dirname, "../../docs/pictures");
/** Sharp enough to read, and a tenth of a PNG. */
const QUALITY = 70;

export const pictureFile = (name: string): string => join(FOLDER, `${name}.webp`);

/** Writes what the window shows into docs/pictures/. Playwright itself makes no WebP. */
export async function takePicture(page: Page, name: string): Promise<void> {
  const protocol = await page.context().newCDPSession(page);
  const { data } = await protocol.send("Page.captureScreenshot", { format: "webp", quality: QUALITY });
  mkdirSync(FOLDER, { recursive: true });
  writeFileSync(pictureFile(name), Buffer.from(data, "base64"));
}
