import { testWindows } from "./window.ts";

testWindows("rights");
