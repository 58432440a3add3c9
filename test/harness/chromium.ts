import { type Browser, chromium } from "playwright-core";
import { unpackedProgram } from "./parts/debian-packages.ts";
import { findBinary, findPart, isExecutable } from "./parts/find.ts";

/** Chromium without a window system: a page costs half the CPU time. */
const SHELLS = ["chromium-headless-shell", "chrome-headless-shell"];
const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];
const ADVICE =
  "install chromium-headless-shell or chromium (packages of Debian), or set PLAYWRIGHT_CHROMIUM to the program";

/** Finds Chromium or unpacks it into the cache. Throws `MissingPart`. */
export async function findChromium(): Promise<string> {
  return await findPart("Chromium", ADVICE, [
    { name: "PLAYWRIGHT_CHROMIUM", attempt: fromEnvironment },
    { name: SHELLS.join(" or "), attempt: () => findBinary(SHELLS) },
    {
      name: "Debian's packages",
      attempt: () => unpackedProgram({ packages: ["chromium-headless-shell", "chromium-common"] }, SHELLS),
    },
    { name: BROWSERS.join(" or "), attempt: () => findBinary(BROWSERS) },
  ]);
}

/** Starts a headless browser. Throws `MissingPart` if it is unavailable. */
export async function startChromium(): Promise<Browser> {
  const executablePath = await findChromium();
  // V8's optimizing compilers would take an eighth of the browser's CPU time. A test shows a page too briefly to profit from them.
  const args = ["--disable-dev-shm-usage", "--js-flags=--no-opt --no-maglev"];
  // The Chromium sandbox does not run as root.
  if (process.getuid?.() === 0) args.push("--no-sandbox");
  return chromium.launch({ executablePath, args });
}

async function fromEnvironment(): Promise<string | undefined> {
  const path = process.env.PLAYWRIGHT_CHROMIUM;
  if (!path) return undefined;
  if (!(await isExecutable(path))) throw new Error(`${path} is no program`);
  return path;
}
