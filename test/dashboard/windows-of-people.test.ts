import { testWindows } from "./window.ts";

testWindows("people");
