import * as z from "zod";

/*
 * Zod compiles schemas with `eval` if allowed. The Content-Security-Policy of these pages forbids `eval` and would report the attempt.
 * Import this module before any schema.
 */
z.config({ jitless: true });
