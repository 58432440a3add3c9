import * as z from "zod";

/* Schemas make functions of texts where they may. The policy of these pages forbids it, and would report the attempt. To be imported before any schema. */
z.config({ jitless: true });
