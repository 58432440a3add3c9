import { testWindows } from "./window.ts";

testWindows("keys");
