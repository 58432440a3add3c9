import type { Pool } from "pg";
import { countVerifications } from "../api-server/analytics/postgres/count-verifications.ts";
import type { CountVerifications } from "../api-server/domain/analytics/usage.ts";

/** What counts usage for a command: the store that the api-servers write. */
export const openUsage =
  (db: Pool): CountVerifications =>
  (question) =>
    countVerifications(db, question);
