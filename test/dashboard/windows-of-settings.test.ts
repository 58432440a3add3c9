import { testWindows } from "./window.ts";

testWindows("settings");
